// Add & Norm in one pass: y = LayerNorm(x + dropout(branch)) (Vaswani et al. 2017, 3.1; Ba et al. 2016).
#pragma once

#include "gloss/base/thread_pool.h"
#include "gloss/kernels/dropout.h"
#include "gloss/kernels/matrix.h"

namespace gloss::kernels {

// sum = x + dropout(branch); y = gamma (sum - mean) / sqrt(variance + epsilon) + beta, row by row.
template <class T>
struct AddNorm {
  Matrix<const T> x;         // [n, d]
  Matrix<const T> branch;    // [n, d], or no data: plain layer norm
  Dropout dropout;           // of branch
  const T* gamma = nullptr;  // [d]
  const T* beta = nullptr;   // [d]
  T epsilon = T(1e-5);
};

// Keeps for backward: sum [n, d] (not written when there is no branch) and, a row, mean and 1 / deviation.
template <class T>
void add_norm_forward(ThreadPool& pool, const AddNorm<T>& in, Matrix<T> sum, Matrix<T> y, T* statistics);

template <class T>
struct AddNormGradient {
  Matrix<const T> dy;
  Matrix<const T> sum;            // x itself when there is no branch
  const T* statistics = nullptr;  // [n, 2]
  Matrix<T> dx;                   // any of these without data: not wanted; dx may be dy
  Accumulate accumulate_x = Accumulate::no;
  Matrix<T> dbranch;
  Accumulate accumulate_branch = Accumulate::no;
  T* dgamma = nullptr;  // [d], added to
  T* dbeta = nullptr;   // [d], added to
};
template <class T>
void add_norm_backward(ThreadPool& pool, const AddNorm<T>& in, const AddNormGradient<T>& gradient);

}  // namespace gloss::kernels
