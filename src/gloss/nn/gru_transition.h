// What single steps and whole runs of a gated recurrent unit share: transitions of rows, and the gradients of
// the weights. Only for gru.cc and gru_run.cc.
#pragma once

#include "gloss/nn/gru.h"

namespace gloss::nn {

// Of the two norms of a row of sums: mean and 1 / deviation of the sums of r and z, and of those of n;
// [tokens, 2] each.
template <class T>
using GateStatistics = std::array<Tensor<T>, 2>;

// Backward of both norms: from dy to dx [tokens, 3 d_h], which may be dy; gradients of gain and bias go to
// the tape.
template <class T>
void gate_norm_backward(autograd::Tape<T>& tape, const autograd::Var<T>& gain, const autograd::Var<T>& bias,
                        const Tensor<T>& sums, const GateStatistics<T>& statistics,
                        kernels::Matrix<const T> dy, kernels::Matrix<T> dx, kernels::Accumulate accumulate);

// What backward needs of the forward pass, a row a token.
template <class T>
struct GruKept {
  GruKept() = default;
  // `gates` may be given memory [tokens, 3 d_h] that is free to use.
  GruKept(const autograd::Tape<T>& tape, const GruShape& shape, int64_t tokens, Tensor<T> gates = {});

  Tensor<T> gates;    // [tokens, 3 d_h]: r, z, n; in the end the gradient of the sums W_hh h + b_hh
  Tensor<T> product;  // [tokens, d_h]: W_hn h + b_hn, or r h
  Tensor<T> sums;     // [tokens, 3 d_h]: before the norm
  GateStatistics<T> statistics;
};

// A step over `rows` rows with what its weights and `kept` determine filled in.
template <class T>
kernels::GruStep<T> make_step(const GruWeights<T>& weights, const GruKept<T>& kept, int64_t rows);
template <class T>
kernels::GruStepGradient<T> make_step_gradient(const GruWeights<T>& weights, const GruKept<T>& kept,
                                               int64_t rows);

// Where a transition comes from: zeros make its products known, and constants want no gradient.
enum class From { states, constants, zeros };

// Products and elementwise part of one transition; step.sums (and step.reset) are room to work in.
template <class T>
void transition(ThreadPool& pool, const GruWeights<T>& weights, const kernels::GruStep<T>& step, From from);

// The other way: step.dstate receives all of the gradient of h where it comes From::states.
template <class T>
void transition_backward(ThreadPool& pool, const GruWeights<T>& weights,
                         const kernels::GruStepGradient<T>& step, From from);

// Adds the gradients of W_hh, b_hh and the norm over all tokens, one product each, once kept.gates holds that
// of the (normalised) sums; previous [tokens, d_h] holds h.
template <class T>
void weight_gradients(autograd::Tape<T>& tape, const GruWeights<T>& weights, const GruKept<T>& kept,
                      kernels::Matrix<const T> previous);

}  // namespace gloss::nn
