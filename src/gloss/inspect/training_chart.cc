#include "gloss/inspect/training_chart.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "gloss/base/error.h"

namespace gloss::inspect {
namespace {

// What is to be known about a metric.
struct Subject {
  Metric metric;
  const char* title;                                       // of its panel
  Curve TrainingRun::*training, TrainingRun::*validation;  // either may be null
  bool smoothable, logarithmic, from_zero;
  const char* source;  // where its values come from, when there are none
};
constexpr const char* kReports = "gloss train reports it every few seconds";
constexpr Subject kSubjects[] = {
    {Metric::loss, "loss", &TrainingRun::loss, nullptr, true, false, false, kReports},
    {Metric::perplexity, "perplexity", &TrainingRun::perplexity, &TrainingRun::valid_perplexity, true, true,
     false, kReports},
    {Metric::bleu, "BLEU", nullptr, &TrainingRun::valid_bleu, false, false, false,
     "it comes with --valid-metric bleu of gloss train"},
    {Metric::learning_rate, "learning rate", &TrainingRun::learning_rate, nullptr, false, false, true,
     kReports},
    {Metric::speed, "target tokens a second", &TrainingRun::speed, nullptr, true, false, true, kReports},
};

// Seconds in the unit that gives the axis numbers of a handy size.
struct TimeUnit {
  const char* name;
  double seconds;
};

TimeUnit time_unit(std::span<const TrainingRun> runs) {
  double longest = 0;
  for (const TrainingRun& run : runs) {
    for (const Subject& subject : kSubjects) {
      for (const auto curve : {subject.training, subject.validation}) {
        if (!curve) continue;
        for (const double seconds : (run.*curve).seconds) longest = std::max(longest, seconds);
      }
    }
  }
  constexpr double kMinute = 60, kHour = 3600, kDay = 86400;
  constexpr double kFew = 3;
  if (longest < kFew * kMinute) return {"seconds of training", 1};
  if (longest < kFew * kHour) return {"minutes of training", kMinute};
  if (longest < kFew * kDay) return {"hours of training", kHour};
  return {"days of training", kDay};
}

// A curve as a line, in the order of its places: a log that was put together by hand may go back.
Series series_of(const Curve& curve, Over over, double unit) {
  const std::vector<double>& places = over == Over::time ? curve.seconds : curve.update;
  std::vector<size_t> order;
  for (size_t i = 0; i < places.size(); ++i) {
    if (std::isfinite(places[i])) order.push_back(i);
  }
  std::ranges::stable_sort(order, [&](size_t a, size_t b) { return places[a] < places[b]; });
  Series series;
  for (const size_t i : order) {
    series.x.push_back(places[i] / unit);
    series.y.push_back(curve.value[i]);
  }
  return series;
}

std::vector<double> smoothed_for(const Subject& subject, const std::vector<double>& values, int64_t width) {
  if (!subject.logarithmic) return smoothed(values, width);
  std::vector<double> logarithms = values;
  for (double& value : logarithms) value = std::log(value);
  logarithms = smoothed(logarithms, width);
  for (double& value : logarithms) value = std::exp(value);
  return logarithms;
}

Panel panel_of(const Subject& subject, std::span<const TrainingRun> runs, const TrainingChartOptions& options,
               double unit) {
  Panel panel{subject.title, {}};
  panel.scaling = subject.logarithmic ? Scaling::logarithmic : Scaling::linear;
  panel.from_zero = subject.from_zero;
  const bool several = runs.size() > 1;
  for (size_t i = 0; i < runs.size(); ++i) {
    if (subject.training) {
      Series series = series_of(runs[i].*subject.training, options.over, unit);
      series.name = several ? runs[i].name : "training";
      series.style = i;
      constexpr int64_t kShare = 100;
      const int64_t width =
          options.smooth > 0 ? options.smooth : static_cast<int64_t>(series.y.size()) / kShare;
      if (width > 1 && subject.smoothable) {
        Series pale = series;
        pale.faint = true;
        series.y = smoothed_for(subject, series.y, width);
        panel.series.push_back(std::move(pale));
      }
      panel.series.push_back(std::move(series));
    }
    if (subject.validation) {
      Series series = series_of(runs[i].*subject.validation, options.over, unit);
      series.name = several ? runs[i].name + ", validation" : "validation";
      series.style = several ? i : 1;
      series.marks = true;
      panel.series.push_back(std::move(series));
    }
  }
  // A run without a value needs no place in the legend.
  std::erase_if(panel.series, [](const Series& series) {
    return std::ranges::none_of(series.y, [](double y) { return std::isfinite(y); });
  });
  return panel;
}

}  // namespace

std::vector<double> smoothed(std::span<const double> values, int64_t width) {
  std::vector<double> means(values.begin(), values.end());
  const auto count = static_cast<int64_t>(values.size());
  // Sums of what is finite, and how many that were, up to each place.
  std::vector<double> sums(values.size() + 1, 0);
  std::vector<int64_t> counts(values.size() + 1, 0);
  for (size_t i = 0; i < values.size(); ++i) {
    const bool finite = std::isfinite(values[i]);
    sums[i + 1] = sums[i] + (finite ? values[i] : 0);
    counts[i + 1] = counts[i] + (finite ? 1 : 0);
  }
  for (int64_t i = 0; i < count; ++i) {
    if (!std::isfinite(values[static_cast<size_t>(i)])) continue;
    const int64_t half = std::min(width / 2, i);
    const auto begin = static_cast<size_t>(i - half),
               end = static_cast<size_t>(std::min(i + half + 1, count));
    means[static_cast<size_t>(i)] =
        (sums[end] - sums[begin]) / static_cast<double>(counts[end] - counts[begin]);
  }
  return means;
}

Chart training_chart(std::span<const TrainingRun> runs, const TrainingChartOptions& options) {
  const TimeUnit unit = options.over == Over::time ? time_unit(runs) : TimeUnit{"updates", 1};
  Chart chart;
  chart.title =
      runs.size() == 1 ? "Training of " + runs[0].name : fmt::format("Training of {} models", runs.size());
  chart.x_axis = unit.name;
  for (const Subject& subject : kSubjects) {
    const bool wanted = std::ranges::find(options.metrics, subject.metric) != options.metrics.end();
    if (!wanted && !options.metrics.empty()) continue;
    Panel panel = panel_of(subject, runs, options, unit.seconds);
    const bool empty = panel.series.empty();
    if (empty && wanted)
      fail("{} no value of {} to draw: {}", runs.size() == 1 ? runs[0].name + " has" : "the runs have",
           subject.title, subject.source);
    if (!empty) chart.panels.push_back(std::move(panel));
  }
  require(!chart.panels.empty(), "{} no value to draw yet: {}",
          runs.size() == 1 ? runs[0].name + " has" : "the runs have", kReports);
  return chart;
}

}  // namespace gloss::inspect
