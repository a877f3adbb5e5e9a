// What search wants to know of rows of logits, gathered while the output layer hands them over in parts.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "gloss/kernels/packed_matrix.h"
#include "gloss/kernels/top_k.h"

namespace gloss::decode {

// What one row of logits offers the sentence's search: logits and tokens of its likeliest continuations, the
// best first, or of the tokens drawn. -infinity marks what is forbidden.
struct RowChoice {
  std::span<kernels::Ranked> best;
  float log_sum_exp = 0;  // over the whole vocabulary, masked tokens too
};

// The `width` likeliest tokens of each row that are not masked, and each row's normaliser. Which parts rows
// come in changes nothing. Reused for the next rows, with the memory of the last.
class Ranking {
 public:
  // For `rows` rows of `vocabulary` tokens, which come from `threads` threads.
  void begin(int64_t rows, int64_t vocabulary, int64_t width, int threads);
  // How the rows may be cut. A run begins without knowing what others found, so one thread has a single one.
  const kernels::ColumnParts& parts() const { return cut_; }
  // Tokens that row may not choose, to be filled after begin; in rising order.
  std::vector<int32_t>& masked(int64_t row) { return masked_[static_cast<size_t>(row)]; }
  // Takes logits [rows, columns] of rows from `row` and tokens from `token` on, and masks them in place. As
  // kernels::SeePart: parts of a run of a row come in order, others at the same time.
  void see(int64_t row, int64_t token, kernels::Matrix<float> logits);
  // When all was seen. Valid until the next begin.
  RowChoice choice(int64_t row);

 private:
  std::span<kernels::Ranked> best_of(int64_t row, int64_t run) {
    return std::span(best_).subspan(static_cast<size_t>((row * runs_ + run) * width_),
                                    static_cast<size_t>(width_));
  }

  kernels::ColumnParts cut_;
  int64_t width_ = 0, runs_ = 0, parts_ = 0;
  std::vector<std::vector<int32_t>> masked_;  // by row
  std::vector<kernels::PartOfSum> sums_;      // [rows, parts]
  std::vector<kernels::Ranked> best_;         // [rows, runs, width]
};

}  // namespace gloss::decode
