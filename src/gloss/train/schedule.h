// What changes from update to update: the learning rate and the decay of the moving average.
#pragma once

#include <algorithm>
#include <cmath>

#include "gloss/train/options.h"

namespace gloss::train {

// The rate of an update, counted from 1.
inline double learning_rate(const TrainOptions& options, int64_t update) {
  const auto t = static_cast<double>(update), warmup = static_cast<double>(options.warmup);
  if (options.schedule == Schedule::paper) {
    return options.learning_rate * std::pow(static_cast<double>(options.d_model), -0.5) *
           std::min(std::pow(t, -0.5), t * std::pow(warmup, -1.5));
  }
  return options.learning_rate * std::min(t / warmup, std::sqrt(warmup / t));
}

// A young average forgets faster, or the random start would stay in it for long.
inline double average_decay(const TrainOptions& options, int64_t update) {
  const auto t = static_cast<double>(update);
  return std::min(options.ema, (1 + t) / (10 + t));
}

}  // namespace gloss::train
