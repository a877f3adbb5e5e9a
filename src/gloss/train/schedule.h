// Learning rates.
#pragma once

#include <algorithm>
#include <cmath>

#include "gloss/train/options.h"

namespace gloss::train {

// The rate of an update, counted from 1.
inline double learning_rate(const TrainOptions& options, int64_t d_model, int64_t update) {
  const auto t = static_cast<double>(update), warmup = static_cast<double>(options.warmup);
  if (options.schedule == Schedule::paper) {
    return options.learning_rate * std::pow(static_cast<double>(d_model), -0.5) *
           std::min(std::pow(t, -0.5), t * std::pow(warmup, -1.5));
  }
  return options.learning_rate * std::min(t / warmup, std::sqrt(warmup / t));
}

}  // namespace gloss::train
