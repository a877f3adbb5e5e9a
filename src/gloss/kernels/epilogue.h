// The way out of a matrix product: what happens to each element once its sum is complete.
#pragma once

#include "gloss/kernels/matrix.h"

namespace gloss::kernels {

// Applied after the sum is added to C, if accumulating.
template <class T>
struct Epilogue {
  const T* bias = nullptr;  // [N], added
  Activation activation = Activation::none;
  // [M, N]; if data is not null: receives the sum with bias before the activation, which the backward of
  // swish and GELU needs.
  Matrix<T> pre_activation{};
};

}  // namespace gloss::kernels
