// Scaled dot-product attention: softmax(Q K^T / sqrt(d_k)) V (Vaswani et al. 2017, eq. 1), forward and
// backward.
#pragma once

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "gloss/attention/mask.h"
#include "gloss/autograd/tape.h"
#include "gloss/tensor/ragged.h"

namespace gloss::attention {

// Columns [first, first + heads * d) of the rows of a variable: queries, keys and values may stand beside
// each other in the result of one product.
template <class T>
struct Projection {
  autograd::Var<T> rows;
  int64_t first = 0;
};

struct HeadShape {
  int64_t heads = 1, d_k = 0, d_v = 0;
};

// What to return besides the aggregate. Asking changes no number.
struct Request {
  bool scores = false;
  bool weights = false;
  bool tensors = false;  // multi-head attention: the matrices in between
};

// Scores and weights are ragged: sequence after sequence, [heads, n_q, n_k] each, beginning at `offsets`.
template <class T>
struct Attended {
  autograd::Var<T> output;   // [queries, heads * d_v]
  autograd::Var<T> weights;  // rows sum to 1; a query with nothing to look at has zeros
  Tensor<T> scores;          // before the softmax, scaled, with their bias; hidden ones are -infinity
  std::vector<int64_t> offsets;
  // q [queries, heads * d_k], k and v [keys, ...], concat [queries, heads * d_v] (head_i beside each other).
  std::vector<std::pair<std::string, Tensor<T>>> tensors;
};

// What is added to the scaled scores: a number for each head and distance, key position - query position.
template <class T>
struct DistanceBias {
  autograd::Var<T> by_distance;  // [heads, distances]; none: nothing is added
  int64_t zero = 0;              // the column of distance 0
  int64_t first_query = 0;       // where query 0 of each sequence stands among its keys
};

// `visible` from visible_keys (empty: every key). Never stores the n_q x n_k weights unless asked: backward
// computes them again from two numbers a row. `dropout` drops weights. Every distance that occurs, hidden
// ones too, must have its number in the bias.
template <class T>
Attended<T> scaled_dot_product_attention(autograd::Tape<T>& tape, const Projection<T>& query,
                                         const Offsets& queries, const Projection<T>& key,
                                         const Projection<T>& value, const Offsets& keys,
                                         const HeadShape& shape, std::vector<int64_t> visible,
                                         double dropout = 0, Request request = {},
                                         const DistanceBias<T>& bias = {});

// The plain form: Q [queries, d_k], K [keys, d_k], V [keys, d_v], one head. Errors name the numbers when d_k
// differs between query and key, or key and value lengths differ.
template <class T>
Attended<T> scaled_dot_product_attention(autograd::Tape<T>& tape, const Ragged<autograd::Var<T>>& query,
                                         const Ragged<autograd::Var<T>>& key,
                                         const Ragged<autograd::Var<T>>& value, const Mask& mask = {},
                                         Request request = {});

}  // namespace gloss::attention
