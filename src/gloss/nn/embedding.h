// Token embeddings with their scale, positions and dropout in one operation.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "gloss/autograd/tape.h"

namespace gloss::nn {

// What is added to the embeddings: row position_of[i] of `rows` to token i. Empty rows: nothing.
template <class T>
struct PositionRows {
  Tensor<T> rows;
  std::vector<int64_t> position_of;
};

// dropout(scale * table[ids[i]] + positions): table [V, d], n ids -> [n, d]. Backward touches only rows of
// the table that occur, and not `frozen_row` (-1: none). An id outside the table is an error.
template <class T>
autograd::Var<T> embed(autograd::Tape<T>& tape, const autograd::Var<T>& table, std::span<const int32_t> ids,
                       double scale, PositionRows<T> positions, double dropout, int64_t frozen_row = -1);

}  // namespace gloss::nn
