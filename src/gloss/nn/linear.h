// y = f(x W^T + b): one fused operation, forward and backward.
#pragma once

#include "gloss/autograd/tape.h"
#include "gloss/kernels/gemm.h"

namespace gloss::nn {

// y [n, out] = f(x [n, in] W^T + b), without a trace on the tape: by the packed weights where the parameter
// has them.
template <class T>
void multiply(autograd::Tape<T>& tape, kernels::Matrix<const T> x, const autograd::Var<T>& weight,
              kernels::Matrix<T> y, const kernels::Epilogue<T>& epilogue);

// x W^T + b in parts of its columns, for whoever uses each while it is in the cache (packed_matrix.h): the
// bits of linear, without a trace on the tape.
void multiply_parts(autograd::Tape<float>& tape, const autograd::Var<float>& x,
                    const autograd::Var<float>& weight, const autograd::Var<float>& bias,
                    kernels::ColumnParts parts, const kernels::SeePart& see);

// x [n, in], weight [out, in], bias [out] or empty -> [n, out]. Backward keeps x and, for ReLU and tanh, the
// result; for swish and GELU the sum before the activation. dX = dS W, dW = dS^T X, db = column sums of dS,
// with dS = dY f'(S).
template <class T>
autograd::Var<T> linear(autograd::Tape<T>& tape, const autograd::Var<T>& x, const autograd::Var<T>& weight,
                        const autograd::Var<T>& bias,
                        kernels::Activation activation = kernels::Activation::none);

}  // namespace gloss::nn
