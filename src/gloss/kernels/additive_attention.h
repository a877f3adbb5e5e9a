// Additive attention over ragged sequences in one pass a query (Bahdanau et al. 2015, section A.1.2 and eq.
// 5-6). The joint vectors tanh(W_a s_{i-1} + U_a h_j) exist one at a time; backward computes them again.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "gloss/base/thread_pool.h"
#include "gloss/kernels/matrix.h"
#include "gloss/tensor/ragged.h"

namespace gloss::kernels {

template <class T>
struct AdditiveAttention {
  Matrix<const T> query;                  // [rows of queries, d_a]: W_a s_{i-1}
  Matrix<const T> keys;                   // [rows of sources, d_a]: U_a h_j
  Matrix<const T> h;                      // [rows of sources, d_h]
  Offsets query_offsets, source_offsets;  // of the same number of sequences
  const T* v_a = nullptr;                 // [d_a]
};

// Where a sequence's weights [n_q, n_k] begin in the ragged tensor of all weights; the last is the total.
template <class T>
std::vector<int64_t> weight_offsets(const AdditiveAttention<T>& in);

// context [rows of queries, d_h]; a query of an empty source gives zeros. `scores` and `weights`, laid out by
// weight_offsets, are filled when not null.
template <class T>
void additive_attention_forward(ThreadPool& pool, const AdditiveAttention<T>& in, Matrix<T> context,
                                T* scores, T* weights);

template <class T>
struct AdditiveAttentionGradient {
  const T* weights = nullptr;   // what forward gave
  Matrix<const T> dcontext;     // no data: zero
  const T* dweights = nullptr;  // gradient of the returned weights, or null
  // No data: not wanted. Rows of sequences without queries are touched when nothing is there to add to, and
  // then set to zero. dkeys and dh may be the same numbers; dquery may share none with them.
  Matrix<T> dquery, dkeys, dh;
  T* dv_a = nullptr;  // [d_a], always added to
  Accumulate accumulate_query = Accumulate::no, accumulate_keys = Accumulate::no,
             accumulate_h = Accumulate::no;
};
template <class T>
void additive_attention_backward(ThreadPool& pool, const AdditiveAttention<T>& in,
                                 const AdditiveAttentionGradient<T>& gradient);

// What a query looks at, wherever it lies.
template <class T>
struct RowsOfSource {
  Matrix<const T> keys;  // [n, d_a]
  Matrix<const T> h;     // [n, d_h]
};

// One decoding step: query i [d_a] looks at sources[i], which others may look at too. The same bits as
// forward. context [queries, d_h]
template <class T>
void additive_attention_step(ThreadPool& pool, Matrix<const T> query,
                             std::span<const RowsOfSource<T>> sources, const T* v_a, Matrix<T> context);

// z_j = tanh(query + keys_j), as the score of key j uses it: [n, d_a]
template <class T>
void joint_vectors(ThreadPool& pool, const T* query, Matrix<const T> keys, Matrix<T> z);

}  // namespace gloss::kernels
