// Ranking for rows that choose among few tokens, each row among its own.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "gloss/decode/ranking.h"
#include "gloss/kernels/matrix.h"
#include "gloss/kernels/top_k.h"

namespace gloss::decode {

// Logits of each row's own tokens, taken out of what the output layer hands over for all rows, and what
// search asks of them. What a row gets depends on its own tokens and their logits alone. Reused for the next
// rows, with the memory of the last.
class ShortRanking {
 public:
  void begin(int64_t width);
  // The next row: its tokens, ascending, and the columns in which they come, ascending too. Both stay where
  // they are as long as the rows are ranked.
  void add_row(std::span<const int32_t> tokens, std::span<const int32_t> columns);
  // Before the first part.
  void end_rows();
  // Takes logits [rows, columns] of rows from `row` and columns from `column` on. As kernels::SeePart, in
  // parts of any size: several threads may hand over different ones at the same time.
  void see(int64_t row, int64_t column, kernels::Matrix<const float> logits);

  // When all was seen; rows may take their turns on several threads. First the normaliser over the row's own
  // tokens, those of `masked` (ascending) too, which are -infinity from then on; NaN where the model gave a
  // number that is none, or no logit of one of the tokens.
  float normalise(int64_t row, std::span<const int32_t> masked);
  // After normalise: the row's logits in the order of its tokens.
  std::span<const float> logits(int64_t row) const;
  int32_t token(int64_t row, int32_t index) const {
    return rows_[static_cast<size_t>(row)].tokens[static_cast<size_t>(index)];
  }
  // Room for `width` choices of the row.
  std::span<kernels::Ranked> choices(int64_t row) {
    return std::span(best_).subspan(static_cast<size_t>(row * width_), static_cast<size_t>(width_));
  }
  // After normalise, which gave a number: fills choices(row) with the likeliest tokens, the best first, and
  // with -infinity where they are fewer.
  void rank(int64_t row);

 private:
  struct Row {
    std::span<const int32_t> tokens, columns;
    size_t first;  // in logits_
  };
  std::span<float> own(int64_t row) {
    const Row& of = rows_[static_cast<size_t>(row)];
    return std::span(logits_).subspan(of.first, of.tokens.size());
  }

  int64_t width_ = 0;
  size_t count_ = 0;  // of logits
  std::vector<Row> rows_;
  std::vector<float> logits_;
  std::vector<kernels::Ranked> best_;  // [rows, width]
};

}  // namespace gloss::decode
