// The plain reference of label-smoothed cross-entropy: from the probabilities themselves.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "gloss/kernels/cross_entropy.h"

namespace gloss::kernels::reference {

struct CrossEntropyRow {
  double loss = 0, negative_log_likelihood = 0;
  std::vector<double> gradient;  // d loss / d logits
};

// The target distribution has 1 - e + e/S at the target and e/S elsewhere, over S symbols that can be
// produced; the loss is its cross-entropy, whose gradient is p minus that distribution.
inline CrossEntropyRow cross_entropy(const std::vector<double>& logits, int64_t target,
                                     const CrossEntropy& options) {
  const auto n = static_cast<int64_t>(logits.size());
  const auto produced = [&](int64_t c) { return c != options.forbidden; };
  double top = -std::numeric_limits<double>::infinity(), sum = 0, symbols = 0;
  for (int64_t c = 0; c < n; ++c) {
    if (produced(c)) top = std::max(top, logits[static_cast<size_t>(c)]);
  }
  for (int64_t c = 0; c < n; ++c) {
    if (!produced(c)) continue;
    sum += std::exp(logits[static_cast<size_t>(c)] - top);
    symbols += 1;
  }
  CrossEntropyRow row;
  for (int64_t c = 0; c < n; ++c) {
    if (!produced(c)) {
      row.gradient.push_back(0);
      continue;
    }
    const double log_p = logits[static_cast<size_t>(c)] - top - std::log(sum);
    const double wanted = options.smoothing / symbols + (c == target ? 1 - options.smoothing : 0);
    if (c == target) row.negative_log_likelihood = -log_p;
    row.loss -= wanted * log_p;
    row.gradient.push_back(std::exp(log_p) - wanted);
  }
  return row;
}

}  // namespace gloss::kernels::reference
