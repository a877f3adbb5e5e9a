// One transition of a gated recurrent unit (Cho et al. 2014) for many independent rows, forward and backward.
// The sums W_ih x + b_ih and W_hh h + b_hh are products made elsewhere; here is what happens to them.
//   r = sigmoid(i_r + s_r), z = sigmoid(i_z + s_z), h' = (1 - z) n + z h
//   reset after the product (PyTorch):    n = tanh(i_n + r s_n)
//   reset before (Cho et al. 2014, eq. 8): n = tanh(i_n + s_n), where s_n = W_hn (r h) + b_hn
// An element of the result is computed from its row alone, by the same operations wherever the row stands.
#pragma once

#include <cstdint>

#include "gloss/base/thread_pool.h"
#include "gloss/kernels/matrix.h"

namespace gloss::kernels {

enum class ResetGate : uint8_t { after, before };

// Layer normalisation of the sums s (Ba et al. 2016, supplement): those of r and z together, those of n
// apart.
template <class T>
struct GruNorm {
  const T* gain = nullptr;  // [3 d_h]; null: none of this
  const T* bias = nullptr;  // [3 d_h]
  T epsilon = T(1e-5);
  // For backward, a row a token: the sums as they were [tokens, 3 d_h], and the mean and 1 / deviation of
  // both parts, [tokens, 2] each. Without data they are not kept.
  Matrix<T> sums;
  T *gate_statistics = nullptr, *candidate_statistics = nullptr;
};

// Row i of the dense matrices belongs to row place[i] of those that hold all tokens; place null: i.
template <class T>
struct GruStep {
  int64_t rows = 0, d_h = 0;
  const int64_t* place = nullptr;  // [rows], each once
  Matrix<const T> input;           // of all tokens, [., 3 d_h]: i_r, i_z, i_n
  Matrix<T> sums;                  // [rows, 3 d_h]: s_r, s_z, s_n; holds anything afterwards
  Matrix<const T> previous;        // [rows, d_h]: h
  Matrix<T> reset;                 // [rows, d_h]: receives r h; only of `before`
  Matrix<T> state;                 // [rows, d_h]: receives h'; may be `previous`, or have no data
  Matrix<T> states;                // of all tokens, [., d_h]: receives h'
  // For backward, of all tokens; without data they are not kept. `gates` may be `input`.
  Matrix<T> gates;    // [., 3 d_h]: r, z, n
  Matrix<T> product;  // [., d_h]: s_n, normalised if it is, or r h of `before`
  GruNorm<T> norm;
};

// The whole transition, reset after the product.
template <class T>
void gru_forward(ThreadPool& pool, const GruStep<T>& step);
// Reset before the product, first half: from s_r and s_z to r, z (which wait in `sums`) and r h. s_n is not
// read.
template <class T>
void gru_reset(ThreadPool& pool, const GruStep<T>& step);
// Second half, when s_n is there: n and h'.
template <class T>
void gru_candidate(ThreadPool& pool, const GruStep<T>& step);

template <class T>
struct GruStepGradient {
  int64_t rows = 0, d_h = 0;
  const int64_t* place = nullptr;
  Matrix<const T> dstates;   // of all tokens: what reaches h' from outside, or no data
  Matrix<const T> previous;  // of all tokens: h
  Matrix<const T> product;   // of all tokens, as forward kept it
  Matrix<T> gates;   // of all tokens, as forward kept it; receives the gradient of s (normalised, if it is)
  Matrix<T> dinput;  // of all tokens, or no data
  Accumulate accumulate = Accumulate::no;  // into dinput
  // In: what reaches h' from the next transition. Out: what reaches h, but for what passes through products.
  Matrix<T> dstate;  // [rows, d_h]
  Matrix<T> dsums;   // [rows, 3 d_h]: receives the gradient of s; may be `gates` when place is null
  Matrix<T> dreset;  // [rows, d_h]: the gradient of r h; only of `before`
  GruNorm<T> norm;   // what forward kept; gradients of its gain and bias are not made here
};

// The counterparts: the gradient of h needs dsums W_hh added afterwards.
template <class T>
void gru_backward(ThreadPool& pool, const GruStepGradient<T>& step);
// First n and z: from dstate to the gradients of i_n, s_n, i_z and z's sum. Then the caller sets dreset =
// ds_n W_hn, and gru_reset_backward finishes r and z.
template <class T>
void gru_candidate_backward(ThreadPool& pool, const GruStepGradient<T>& step);
template <class T>
void gru_reset_backward(ThreadPool& pool, const GruStepGradient<T>& step);

}  // namespace gloss::kernels
