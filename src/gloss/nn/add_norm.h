// The residual connections: Add & Norm of the paper (post-norm), and the parts of a pre-norm layer.
#pragma once

#include "gloss/autograd/tape.h"

namespace gloss::nn {

// LayerNorm(x + dropout(branch)) (Vaswani et al. 2017, 3.1): x, branch [n, d]; gamma, beta [d] -> [n, d].
template <class T>
autograd::Var<T> add_norm(autograd::Tape<T>& tape, const autograd::Var<T>& x, const autograd::Var<T>& branch,
                          double dropout, const autograd::Var<T>& gamma, const autograd::Var<T>& beta,
                          double epsilon);

// gamma (x - mean) / sqrt(variance + epsilon) + beta, over each row (Ba et al. 2016).
template <class T>
autograd::Var<T> layer_norm(autograd::Tape<T>& tape, const autograd::Var<T>& x, const autograd::Var<T>& gamma,
                            const autograd::Var<T>& beta, double epsilon);

// x + dropout(branch).
template <class T>
autograd::Var<T> add_dropout(autograd::Tape<T>& tape, const autograd::Var<T>& x,
                             const autograd::Var<T>& branch, double dropout);

// dropout(x); x itself when nothing is dropped.
template <class T>
autograd::Var<T> dropout(autograd::Tape<T>& tape, const autograd::Var<T>& x, double dropout);

}  // namespace gloss::nn
