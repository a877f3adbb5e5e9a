#include "gloss/inspect/training_chart.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "io/scratch.h"

namespace gloss::inspect {
namespace {

using io::message_of;
using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::IsNan;
using ::testing::Pointwise;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

Curve curve(size_t count, double (*f)(double)) {
  Curve out;
  for (size_t i = 0; i < count; ++i) {
    const auto x = static_cast<double>(i);
    out.update.push_back(10 * x);
    out.seconds.push_back(60 * x);
    out.value.push_back(f(x));
  }
  return out;
}

TrainingRun run_named(const std::string& name, size_t reports = 20) {
  TrainingRun run;
  run.name = name;
  run.loss = curve(reports, [](double x) { return 10 - x / 4; });
  run.perplexity = curve(reports, [](double x) { return std::exp(10 - x / 4); });
  run.learning_rate = curve(reports, [](double x) { return x / 1000; });
  run.speed = curve(reports, [](double) { return 5000.0; });
  run.valid_perplexity = curve(3, [](double x) { return 100 - x; });
  return run;
}

std::vector<std::string> panel_names(const Chart& chart) {
  std::vector<std::string> names;
  for (const Panel& panel : chart.panels) names.push_back(panel.name);
  return names;
}

std::vector<std::string> series_names(const Panel& panel) {
  std::vector<std::string> names;
  for (const Series& series : panel.series) names.push_back(series.name);
  return names;
}

TEST(TrainingChart, HasAPanelForEachMetricThatHasValues) {
  TrainingRun runs[] = {run_named("one")};
  Chart chart = training_chart(runs, {});
  EXPECT_EQ(chart.title, "Training of one");
  EXPECT_THAT(panel_names(chart),
              ElementsAre("loss", "perplexity", "learning rate", "target tokens a second"));
  EXPECT_THAT(series_names(chart.panels[0]), ElementsAre("training"));
  EXPECT_THAT(series_names(chart.panels[1]), ElementsAre("training", "validation"));
  EXPECT_EQ(chart.panels[1].scaling, Scaling::logarithmic);
  EXPECT_TRUE(chart.panels[1].series[1].marks);
  runs[0].valid_bleu = curve(2, [](double x) { return x; });
  EXPECT_EQ(panel_names(training_chart(runs, {}))[2], "BLEU");
  chart = training_chart(runs, {{Metric::speed, Metric::loss}});
  EXPECT_THAT(panel_names(chart), ElementsAre("loss", "target tokens a second"));
}

TEST(TrainingChart, NamesRunsWhereThereAreSeveral) {
  const TrainingRun runs[] = {run_named("one"), run_named("two")};
  const Chart chart = training_chart(runs, {});
  EXPECT_EQ(chart.title, "Training of 2 models");
  EXPECT_THAT(series_names(chart.panels[1]), ElementsAre("one", "one, validation", "two", "two, validation"));
  EXPECT_EQ(chart.panels[1].series[0].style, chart.panels[1].series[1].style);
  EXPECT_NE(chart.panels[1].series[0].style, chart.panels[1].series[2].style);
}

TEST(TrainingChart, RunsOverUpdatesOrOverTime) {
  const TrainingRun runs[] = {run_named("one")};
  const Chart updates = training_chart(runs, {{Metric::loss}});
  EXPECT_EQ(updates.x_axis, "updates");
  EXPECT_EQ(updates.panels[0].series[0].x[3], 30);
  const Chart time = training_chart(runs, {{Metric::loss}, Over::time});
  EXPECT_EQ(time.x_axis, "minutes of training");
  EXPECT_EQ(time.panels[0].series[0].x[3], 3);
  const TrainingRun shorter[] = {run_named("one", 2)};
  EXPECT_EQ(training_chart(shorter, {{Metric::loss}, Over::time}).x_axis, "seconds of training");
  const TrainingRun longer[] = {run_named("one", 200)};
  EXPECT_EQ(training_chart(longer, {{Metric::loss}, Over::time}).x_axis, "hours of training");
  const TrainingRun longest[] = {run_named("one", 5000)};
  EXPECT_EQ(training_chart(longest, {{Metric::loss}, Over::time}).x_axis, "days of training");
}

TEST(TrainingChart, PutsPointsInOrderAndLeavesOutThoseWithoutAPlace) {
  TrainingRun run;
  run.loss = {{3, 1, 2}, {30, kNaN, 20}, {0.3, 0.1, 0.2}};
  const TrainingRun runs[] = {run};
  EXPECT_THAT(training_chart(runs, {}).panels[0].series[0].y, ElementsAre(0.1, 0.2, 0.3));
  EXPECT_THAT(training_chart(runs, {{}, Over::time}).panels[0].series[0].y, ElementsAre(0.2, 0.3));
}

TEST(TrainingChart, SmoothsWhatTrainingReports) {
  const TrainingRun runs[] = {run_named("one", 20)};
  const Chart chart = training_chart(runs, {{}, Over::updates, 5});
  for (const size_t panel : {0, 1, 3}) {
    ASSERT_GE(chart.panels[panel].series.size(), 2u);
    EXPECT_TRUE(chart.panels[panel].series[0].faint);
    EXPECT_FALSE(chart.panels[panel].series[1].faint);
  }
  EXPECT_EQ(chart.panels[2].series.size(), 1u);  // a learning rate has no noise
  // A loss on a straight line is its own mean, and its perplexity is smoothed as the loss is.
  EXPECT_THAT(std::vector(chart.panels[1].series[1].y.begin(), chart.panels[1].series[1].y.end() - 2),
              Pointwise(DoubleNear(1e-6), std::vector(chart.panels[1].series[0].y.begin(),
                                                      chart.panels[1].series[0].y.end() - 2)));
  // By default a hundredth, so that short runs are as they are.
  EXPECT_EQ(training_chart(runs, {{Metric::loss}}).panels[0].series.size(), 1u);
  const TrainingRun longer[] = {run_named("one", 1000)};
  EXPECT_EQ(training_chart(longer, {{Metric::loss}}).panels[0].series.size(), 2u);
  EXPECT_EQ(training_chart(longer, {{Metric::loss}, Over::updates, 1}).panels[0].series.size(), 1u);
}

TEST(TrainingChart, SaysWhichMetricHasNoValue) {
  TrainingRun runs[] = {run_named("one"), run_named("two")};
  EXPECT_EQ(message_of([&] { training_chart(runs, {{Metric::bleu}}); }),
            "the runs have no value of BLEU to draw: it comes with --valid-metric bleu of gloss train");
  EXPECT_EQ(message_of([&] {
              training_chart({runs, 1}, {{Metric::loss, Metric::bleu}});
            }),
            "one has no value of BLEU to draw: it comes with --valid-metric bleu of gloss train");
  runs[1].valid_bleu = curve(2, [](double x) { return x; });
  EXPECT_THAT(series_names(training_chart(runs, {{Metric::bleu}}).panels[0]), ElementsAre("two, validation"));
  const TrainingRun nothing[] = {TrainingRun{}};
  EXPECT_NE(message_of([&] { training_chart(nothing, {}); }), "");
}

TEST(Smoothed, IsAMeanOfNeighbours) {
  const std::vector<double> values = {1, 2, 6, 4, 5};
  EXPECT_THAT(smoothed(values, 1), ElementsAre(1, 2, 6, 4, 5));
  EXPECT_THAT(smoothed(values, 3), ElementsAre(1, 3, 4, 5, 4.5));
  EXPECT_THAT(smoothed(values, 100), ElementsAre(1, 3, 3.6, 3.6, 3.6));
  EXPECT_THAT(smoothed(std::vector<double>{}, 5), ElementsAre());
}

TEST(Smoothed, PassesOverWhatIsNotFinite) {
  const double infinity = std::numeric_limits<double>::infinity();
  const std::vector<double> means = smoothed(std::vector<double>{1, kNaN, 3, infinity, 5}, 3);
  EXPECT_THAT(means, ElementsAre(1, IsNan(), 3, infinity, 5));
}

}  // namespace
}  // namespace gloss::inspect
