// The position-wise feed-forward layer: f(x W_1^T + b_1) W_2^T + b_2 (Vaswani et al. 2017, eq. 2).
#pragma once

#include "gloss/nn/add_norm.h"
#include "gloss/nn/linear.h"

namespace gloss::nn {

// x [n, d], W_1 [d_ff, d], W_2 [d, d_ff]; `activation_dropout` drops what comes out of f.
template <class T>
autograd::Var<T> feed_forward(autograd::Tape<T>& tape, const autograd::Var<T>& x, const autograd::Var<T>& W_1,
                              const autograd::Var<T>& b_1, const autograd::Var<T>& W_2,
                              const autograd::Var<T>& b_2, kernels::Activation activation,
                              double activation_dropout) {
  const autograd::Var<T> hidden = dropout(tape, linear(tape, x, W_1, b_1, activation), activation_dropout);
  return linear(tape, hidden, W_2, b_2);
}

}  // namespace gloss::nn
