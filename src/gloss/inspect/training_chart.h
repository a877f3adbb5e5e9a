// Curves of trainings in one picture.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "gloss/inspect/chart.h"
#include "gloss/inspect/training_run.h"

namespace gloss::inspect {

enum class Metric { loss, perplexity, bleu, learning_rate, speed };
enum class Over { updates, time };

struct TrainingChartOptions {
  std::vector<Metric> metrics{};  // a panel each; empty: every one that has a value
  Over over = Over::updates;
  // Loss, perplexity and speed of training are shown as means of about this many reports in a row (of
  // perplexity the geometric mean: that of the loss behind it), with the reports themselves pale behind. 1:
  // as they are; 0: a hundredth of all.
  int64_t smooth = 0;
};

// Throws Error where a metric that was asked for has no value in any run, or no metric has.
Chart training_chart(std::span<const TrainingRun> runs, const TrainingChartOptions& options);

// The mean of each value and up to width / 2 neighbours on each side. Near the beginning, where curves are
// steep, as many on one side as on the other; near the end, where they are flat, what there is. What is not
// finite stays as it is and counts nowhere.
std::vector<double> smoothed(std::span<const double> values, int64_t width);

}  // namespace gloss::inspect
