// The plain recurrent network (Elman 1990), which attention is compared with.
#pragma once

#include "gloss/nn/linear.h"
#include "gloss/nn/rows.h"

namespace gloss::nn {

// h_t = tanh(W_x x_t + W_h h_{t-1} + b): x_t [n, d_x], h_prev [n, d_h], W_x [d_h, d_x], W_h [d_h, d_h], b
// [d_h] or empty -> [n, d_h]. One product, [W_x W_h] [x_t; h_{t-1}].
template <class T>
autograd::Var<T> vanilla_rnn_step(autograd::Tape<T>& tape, const autograd::Var<T>& x_t,
                                  const autograd::Var<T>& h_prev, const autograd::Var<T>& W_x,
                                  const autograd::Var<T>& W_h, const autograd::Var<T>& b) {
  return linear(tape, concat_columns(tape, x_t, h_prev), concat_columns(tape, W_x, W_h), b,
                kernels::Activation::tanh);
}

}  // namespace gloss::nn
