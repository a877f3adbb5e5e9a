#include "gloss/decode/short_ranking.h"

#include <algorithm>
#include <limits>

namespace gloss::decode {

constexpr float kForbidden = -std::numeric_limits<float>::infinity();

void ShortRanking::begin(int64_t width) {
  width_ = width;
  count_ = 0;
  rows_.clear();
}

void ShortRanking::add_row(std::span<const int32_t> tokens, std::span<const int32_t> columns) {
  rows_.push_back({tokens, columns, count_});
  count_ += tokens.size();
}

void ShortRanking::end_rows() {
  logits_.assign(count_, std::numeric_limits<float>::quiet_NaN());
  best_.resize(rows_.size() * static_cast<size_t>(width_));
}

void ShortRanking::see(int64_t row, int64_t column, kernels::Matrix<const float> logits) {
  for (int64_t i = 0; i < logits.rows; ++i, ++row) {
    const std::span<const int32_t> columns = rows_[static_cast<size_t>(row)].columns;
    const std::span<float> to = own(row);
    const auto begin = std::ranges::lower_bound(columns, column);
    auto place = static_cast<size_t>(begin - columns.begin());
    for (; place < columns.size() && columns[place] < column + logits.cols; ++place)
      to[place] = logits.row(i)[columns[place] - column];
  }
}

float ShortRanking::normalise(int64_t row, std::span<const int32_t> masked) {
  const std::span<float> logits = own(row);
  const std::span<const int32_t> tokens = rows_[static_cast<size_t>(row)].tokens;
  const float sum = kernels::log_sum_exp(logits);
  auto at = tokens.begin();
  for (const int32_t token : masked) {
    at = std::lower_bound(at, tokens.end(), token);
    if (at == tokens.end()) break;
    if (*at == token) logits[static_cast<size_t>(at - tokens.begin())] = kForbidden;
  }
  return sum;
}

std::span<const float> ShortRanking::logits(int64_t row) const {
  const Row& of = rows_[static_cast<size_t>(row)];
  return std::span(logits_).subspan(of.first, of.tokens.size());
}

void ShortRanking::rank(int64_t row) {
  const std::span<float> logits = own(row);
  const std::span<kernels::Ranked> best = choices(row);
  const auto found = best.first(std::min(best.size(), logits.size()));
  kernels::top_k(logits, found);
  for (kernels::Ranked& each : found) each.index = token(row, each.index);
  std::ranges::fill(best.subspan(found.size()), kernels::Ranked{kForbidden, 0});
}

}  // namespace gloss::decode
