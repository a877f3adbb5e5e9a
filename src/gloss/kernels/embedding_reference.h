// The plain reference of token embeddings: a product with one-hot rows.
#pragma once

#include <cstdint>
#include <vector>

#include "gloss/kernels/matrix.h"

namespace gloss::kernels::reference {

// scale * onehot(id)^T table, column c.
inline double embedded(Matrix<const double> table, int32_t id, double scale, int64_t c) {
  double sum = 0;
  for (int64_t row = 0; row < table.rows; ++row) sum += (row == id ? scale : 0.0) * table.row(row)[c];
  return sum;
}

// Element (row, c) of the gradient of the table: scale times the sum over every token that is `row`.
inline double embedding_gradient(const std::vector<int32_t>& ids, Matrix<const double> dy, double scale,
                                 int64_t row, int64_t c) {
  double sum = 0;
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] == row) sum += scale * dy.row(static_cast<int64_t>(i))[c];
  }
  return sum;
}

}  // namespace gloss::kernels::reference
