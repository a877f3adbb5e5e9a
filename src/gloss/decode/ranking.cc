#include "gloss/decode/ranking.h"

#include <algorithm>
#include <limits>

namespace gloss::decode {

using kernels::kRowPart;

void Ranking::begin(int64_t rows, int64_t vocabulary, int64_t width, int threads) {
  width_ = width;
  parts_ = (vocabulary + kRowPart - 1) / kRowPart;
  constexpr int64_t kPartsOfARun = 8;
  cut_ = {kRowPart, (threads == 1 ? std::max<int64_t>(parts_, 1) : kPartsOfARun) * kRowPart};
  runs_ = (vocabulary + cut_.run - 1) / cut_.run;
  if (masked_.size() < static_cast<size_t>(rows)) masked_.resize(static_cast<size_t>(rows));
  for (int64_t row = 0; row < rows; ++row) masked(row).clear();
  sums_.resize(static_cast<size_t>(rows * parts_));
  best_.resize(static_cast<size_t>(rows * runs_ * width));
}

void Ranking::see(int64_t row, int64_t token, kernels::Matrix<float> logits) {
  for (int64_t i = 0; i < logits.rows; ++i, ++row) {
    const std::vector<int32_t>& masked = masked_[static_cast<size_t>(row)];
    auto next_masked = std::ranges::lower_bound(masked, static_cast<int32_t>(token));
    for (int64_t begin = 0; begin < logits.cols; begin += kRowPart) {
      const int64_t first = token + begin, count = std::min(kRowPart, logits.cols - begin);
      const std::span<float> part(logits.row(i) + begin, static_cast<size_t>(count));
      const kernels::PartOfSum sum = kernels::sum_exp(part);
      sums_[static_cast<size_t>(row * parts_ + first / kRowPart)] = sum;

      const std::span<kernels::Ranked> best = best_of(row, first / cut_.run);
      if (first % cut_.run == 0) kernels::top_k_begin(best);
      for (; next_masked != masked.end() && *next_masked < first + count; ++next_masked)
        part[static_cast<size_t>(*next_masked - first)] = -std::numeric_limits<float>::infinity();
      // Far into a run, few parts hold a token that is better than what was found before.
      if (sum.largest > best.front().value) kernels::top_k_add(part, static_cast<int32_t>(first), best);
    }
  }
}

RowChoice Ranking::choice(int64_t row) {
  const std::span<kernels::Ranked> best = best_of(row, 0);
  for (int64_t run = 1; run < runs_; ++run) {
    for (const kernels::Ranked& other : best_of(row, run)) {
      if (!kernels::Better()(other, best.front())) continue;
      std::ranges::pop_heap(best, kernels::Better());
      best.back() = other;
      std::ranges::push_heap(best, kernels::Better());
    }
  }
  kernels::top_k_end(best);
  const auto sums = std::span(sums_).subspan(static_cast<size_t>(row * parts_), static_cast<size_t>(parts_));
  return {best, kernels::log_sum_exp_of(sums)};
}

}  // namespace gloss::decode
