#include "gloss/decode/sampling.h"

#include <algorithm>
#include <cmath>

#include "gloss/kernels/top_k.h"

namespace gloss::decode {

RandomKey sampling_key(uint64_t seed, std::span<const int32_t> source) {
  RandomKey key = RandomKey(seed).with("sampling");
  for (const int32_t token : source) key = key.with(static_cast<uint64_t>(token));
  return key;
}

TokenDistribution::TokenDistribution(std::span<const float> row, const Sampling& options,
                                     std::span<float> scratch)
    : row_(row), limit_(static_cast<int64_t>(row.size())) {
  if (options.temperature != 1) {
    const auto scale = static_cast<float>(1 / options.temperature);
    for (size_t i = 0; i < row.size(); ++i) scratch[i] = row[i] * scale;
    row_ = scratch.first(row.size());
  }
  if (options.top_k > 0) limit_ = std::min(limit_, options.top_k);
  if (!reach(0)) return;
  if (options.top_k > 0) {
    while (reach(ranked_.size())) {
    }
    kept_ = ranked_.back().cumulated;
  } else {
    kept_ = std::exp(static_cast<double>(kernels::log_sum_exp(row_)) - highest_);
  }
  if (options.top_p < 1) {
    size_t rank = 0;
    while (ranked_[rank].cumulated < options.top_p * kept_ && reach(rank + 1)) ++rank;
    kept_ = ranked_[rank].cumulated;
  }
}

int32_t TokenDistribution::draw(double u) {
  // Rounding may leave the cumulated mass a little short of kept_: the last token takes the difference.
  size_t rank = 0;
  while (ranked_[rank].cumulated <= u * kept_ && reach(rank + 1)) ++rank;
  return ranked_[rank].token;
}

bool TokenDistribution::reach(size_t rank) {
  if (rank >= ranked_.size()) extend();
  return rank < ranked_.size();
}

// Most draws fall among the first few tokens, so the vocabulary is ranked in pieces four times as large.
void TokenDistribution::extend() {
  const size_t known = ranked_.size();
  const auto wanted = static_cast<size_t>(std::min<int64_t>(limit_, std::max<int64_t>(64, 4 * known)));
  if (wanted <= known) return;
  std::vector<kernels::Ranked> best(wanted);
  kernels::top_k(row_, best);
  highest_ = best[0].value;
  double cumulated = known ? ranked_.back().cumulated : 0;
  for (size_t i = known; i < wanted; ++i) {
    const double mass = std::exp(best[i].value - highest_);
    if (!(mass > 0)) break;  // also a row of nothing but -infinity, whose mass is NaN
    cumulated += mass;
    ranked_.push_back({best[i].index, cumulated});
  }
}

}  // namespace gloss::decode
