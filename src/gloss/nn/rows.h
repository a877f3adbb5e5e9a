// Rows and columns put elsewhere: selections of rows, matrices side by side.
#pragma once

#include <cstdint>
#include <span>

#include "gloss/autograd/tape.h"

namespace gloss::nn {

// Columns [first, first + count) of a matrix; count 0: all from there on.
struct Columns {
  int64_t first = 0, count = 0;
};

// y[i] = x[indices[i]], or zeros where the index is -1: x [n, d] -> [indices, count]. Backward adds to the
// rows that were taken, in the order of i. An index or a column outside x is an error.
template <class T>
autograd::Var<T> rows(autograd::Tape<T>& tape, const autograd::Var<T>& x, std::span<const int64_t> indices,
                      Columns columns = {});

// The rows of all parts under each other, in their order: [n_i, d] -> [sum of n_i, d]. At least one part.
template <class T>
autograd::Var<T> stack_rows(autograd::Tape<T>& tape, std::span<const autograd::Var<T>> parts);

// [a b]: a [n, p], b [n, q] -> [n, p + q].
template <class T>
autograd::Var<T> concat_columns(autograd::Tape<T>& tape, const autograd::Var<T>& a,
                                const autograd::Var<T>& b);

}  // namespace gloss::nn
