// Kernel regression (Nadaraya 1964, Watson 1964) with a Gaussian kernel, read as attention: the query x looks
// at the keys x_i, and the values are y_i.
//   score      s_i = -|x - x_i|^2 / (2 b^2)
//   normalise  w_i = exp(s_i) / sum_j exp(s_j)
//   aggregate  f(x) = sum_i w_i y_i
// The bandwidth b runs from the nearest neighbour (b -> 0) to the plain mean of all y_i (b -> infinity).
#pragma once

#include "gloss/autograd/tape.h"

namespace gloss::attention {

template <class T>
struct KernelRegression {
  autograd::Var<T> prediction;  // [queries, d_y]
  autograd::Var<T> weights;     // [queries, n]; rows sum to 1
  Tensor<T> scores;             // [queries, n]
};

// Many queries at once: x [queries, d], x_i [n, d], y_i [n, d_y], b [1] (empty: 1); a scalar is d = 1. All
// four may want gradients. Exact however far x lies from every x_i: weights and gradients come from
// differences of distances, computed in double precision. Without any x_i predictions and gradients are zero.
// Throws Error if shapes do not fit or b is not a number above 0.
template <class T>
KernelRegression<T> kernel_regression(autograd::Tape<T>& tape, const autograd::Var<T>& x,
                                      const autograd::Var<T>& x_i, const autograd::Var<T>& y_i,
                                      const autograd::Var<T>& b = {});

}  // namespace gloss::attention
