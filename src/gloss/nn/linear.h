// y = f(x W^T + b): one fused operation, forward and backward.
#pragma once

#include "gloss/autograd/tape.h"

namespace gloss::nn {

// x [n, in], weight [out, in], bias [out] or empty -> [n, out]. Backward keeps x and, for ReLU and tanh, the
// result; for swish and GELU the sum before the activation. dX = dS W, dW = dS^T X, db = column sums of dS,
// with dS = dY f'(S).
template <class T>
autograd::Var<T> linear(autograd::Tape<T>& tape, const autograd::Var<T>& x, const autograd::Var<T>& weight,
                        const autograd::Var<T>& bias,
                        kernels::Activation activation = kernels::Activation::none);

}  // namespace gloss::nn
