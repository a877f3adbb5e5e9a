// Scaled dot-product attention over ragged sequences, all heads, in one pass a sentence and head (Vaswani et
// al. 2017, eq. 1). The n x n weights exist one tile at a time (as in Dao et al. 2022); backward computes
// them again.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "gloss/base/thread_pool.h"
#include "gloss/kernels/bfloat16.h"
#include "gloss/kernels/dropout.h"
#include "gloss/kernels/matrix.h"
#include "gloss/tensor/ragged.h"

namespace gloss::kernels {

// What is added to the scaled scores of a head: a number for each distance from the query to the key. A key d
// places behind the query (before it: d < 0) has by_distance.row(head)[zero + d].
template <class T>
struct DistanceBias {
  Matrix<const T> by_distance;  // [heads, distances]: every one that occurs; no data: nothing is added
  int64_t zero = 0;             // the column of distance 0
};

template <class T>
struct Attention {
  Matrix<const T> query;               // [rows of queries, heads * d_k]
  Matrix<const T> key;                 // [rows of keys, heads * d_k]
  Matrix<const T> value;               // [rows of keys, heads * d_v]
  Offsets query_offsets, key_offsets;  // of the same number of sequences
  int64_t heads = 1, d_k = 0, d_v = 0;
  T scale = 1;                       // of the scores, before the softmax
  const int64_t* visible = nullptr;  // [rows of queries]: a query sees the first so many keys; null: all
  Dropout dropout;                   // of the weights
  DistanceBias<T> bias;
  int64_t first_query = 0;  // where query 0 of a sequence stands among its keys; only the bias asks
};

// Where a sequence's weights [heads, n_q, n_k] begin in the ragged tensor of all weights; the last is the
// total.
template <class T>
std::vector<int64_t> weight_offsets(const Attention<T>& in);

// output [rows of queries, heads * d_v]; a query that sees no key gives zeros. `statistics` [rows of queries,
// heads, 2] receives the largest score and 1 / sum of e^(score - largest). `scores` and `weights` (before
// dropout), laid out by weight_offsets, are filled when not null; hidden scores are -infinity, hidden weights
// 0.
template <class T>
void attention_forward(ThreadPool& pool, const Attention<T>& in, Matrix<T> output, T* statistics, T* scores,
                       T* weights);

template <class T>
struct AttentionGradient {
  Matrix<const T> output, doutput;  // what forward gave, and its gradient (no data: zero)
  const T* statistics = nullptr;
  const T* dweights = nullptr;  // gradient of the returned weights, or null
  Matrix<T> dquery, dkey, dvalue;
  Accumulate accumulate_query = Accumulate::no, accumulate_key = Accumulate::no,
             accumulate_value = Accumulate::no;
  Matrix<T> dbias;  // as bias.by_distance; no data: nobody asks
  Accumulate accumulate_bias = Accumulate::no;
};
template <class T>
void attention_backward(ThreadPool& pool, const Attention<T>& in, const AttentionGradient<T>& gradient);

// One decoding step: every query row looks at rows of a cache through a table of indices. The cache keeps its
// numbers as `Stored`: as they are computed, or rounded (bfloat16.h) and widened where they are read.
inline constexpr int64_t kCachePage = 16;  // rows
template <class Stored>
struct CachedRows {
  // Rows under each other: those of the keys from here on, every key_stride; those of the values likewise.
  const Stored* key = nullptr;
  const Stored* value = nullptr;
  const int32_t* index = nullptr;  // which rows, oldest first; null: 0, 1, 2, ...
  int64_t count = 0;
  // Or in pages of kCachePage rows of keys with their values behind, at column `value_column`.
  const Stored* const* pages = nullptr;
  int64_t value_column = 0;
};
template <class Stored>
struct CachedAttention {
  using T = Widened<Stored>;
  Matrix<const T> query;                     // [rows, heads * d_k]
  std::span<const CachedRows<Stored>> rows;  // what each query row looks at
  int64_t key_stride = 0, value_stride = 0;
  int64_t heads = 1, d_k = 0, d_v = 0;
  T scale = 1;
  DistanceBias<T> bias;  // a query stands at the last of its rows
};
// output [rows, heads * d_v]. The same bits as from a cache that keeps the widened numbers as they are.
template <class Stored>
void cached_attention(ThreadPool& pool, const CachedAttention<Stored>& in, Matrix<Widened<Stored>> output);

}  // namespace gloss::kernels
