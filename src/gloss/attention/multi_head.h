// Multi-head attention (Vaswani et al. 2017, 3.2.2): Concat(head_1, ..., head_h) W^O with
// head_i = Attention(Q W_i^Q, K W_i^K, V W_i^V). One product makes all heads; W_i^Q is a slice of it.
#pragma once

#include <string>

#include "gloss/attention/kv_cache.h"
#include "gloss/attention/scaled_dot_product.h"

namespace gloss::attention {

struct MultiHeadShape {
  int64_t d_model = 0;  // of the output, and of every input not given below
  int64_t heads = 1;
  int64_t d_query = 0, d_key = 0, d_value = 0;  // of the inputs; 0: d_model
  int64_t d_k = 0, d_v = 0;                     // of a head; 0: d_model / heads
  bool bias = true;
};

// Which projections stand in one parameter because they mostly share their input: all (self-attention), keys
// and values (cross-attention over a memory), or none. It changes no number.
enum class Stacking { query_key_value, key_value, none };

template <class T>
class MultiHeadAttention {
 public:
  // Declares <prefix>q_proj.weight [h d_k, d_query], k_proj.weight [h d_k, d_key], v_proj.weight [h d_v,
  // d_value], out_proj.weight [d_model, h d_v] and their biases. Throws if d_model is not divisible by heads
  // (unless d_k and d_v are given).
  MultiHeadAttention(autograd::ParameterSet<T>& parameters, const std::string& prefix, MultiHeadShape shape,
                     Stacking stacking);

  using Rows = Ragged<autograd::Var<T>>;
  // query [n_q, d_query] attends to key [n_k, d_key] with value [n_k, d_value] -> output [n_q, d_model]. With
  // a bias, query 0 stands where the mask's offset says, else at position 0.
  Attended<T> operator()(autograd::Tape<T>& tape, const Rows& query, const Rows& key, const Rows& value,
                         const Mask& mask = {}, double dropout = 0, Request request = {},
                         const DistanceBias<T>& bias = {}) const;
  // The same with visible keys counted by the caller (Padding::visible_keys), and queries placed by the bias.
  Attended<T> attend(autograd::Tape<T>& tape, const Rows& query, const Rows& key, const Rows& value,
                     std::vector<int64_t> visible, double dropout = 0, Request request = {},
                     const DistanceBias<T>& bias = {}) const;
  // Value defaults to key, key to query.
  Attended<T> operator()(autograd::Tape<T>& tape, const Rows& query, const Rows& key, const Mask& mask = {},
                         double dropout = 0, Request request = {}) const {
    return (*this)(tape, query, key, key, mask, dropout, request);
  }
  Attended<T> operator()(autograd::Tape<T>& tape, const Rows& query, const Mask& mask = {},
                         double dropout = 0, Request request = {}, const DistanceBias<T>& bias = {}) const {
    return (*this)(tape, query, query, query, mask, dropout, request, bias);
  }

  // Translating, one token a hypothesis: x [hypotheses, d_model] attends to its ancestors and itself, whose
  // keys and values are in the cache; its own are added there. A bias reaches from the first ancestor of any
  // row to itself.
  template <class Stored>
  autograd::Var<T> self_step(autograd::Tape<T>& tape, const autograd::Var<T>& x, KvCache<Stored>& cache,
                             int64_t layer, const DistanceBias<T>& bias = {}) const;
  // The same over the source, whose keys and values `project_memory` made.
  template <class Stored>
  autograd::Var<T> memory_step(autograd::Tape<T>& tape, const autograd::Var<T>& x, KvCache<Stored>& cache,
                               int64_t layer) const;
  // What self_step and memory_step give, bit for bit, for whole sequences at once and without a cache: keys
  // and values are rounded as a cache of `Stored` rounds them. No derivative.
  template <class Stored>
  autograd::Var<T> self_whole(autograd::Tape<T>& tape, const Rows& x, const DistanceBias<T>& bias = {}) const;
  template <class Stored>
  autograd::Var<T> memory_whole(autograd::Tape<T>& tape, const Rows& x, const Rows& memory) const;
  // Keys and values of a memory [n, d_key]: [n, h d_k + h d_v], as the cache stores them. Needs
  // Stacking::key_value.
  Tensor<T> project_memory(autograd::Tape<T>& tape, const autograd::Var<T>& memory) const;

  const MultiHeadShape& shape() const { return shape_; }
  KvWidths widths() const { return {shape_.heads * shape_.d_k, shape_.heads * shape_.d_v}; }

 private:
  // Where a projection stands: rows [row, row + rows) of a stacked weight and bias.
  struct Place {
    const autograd::Parameter<T>*weight = nullptr, *bias = nullptr;
    int64_t row = 0, rows = 0;
  };
  autograd::Var<T> project(autograd::Tape<T>& tape, const autograd::Var<T>& x, const Place& place) const;
  autograd::Var<T> output(autograd::Tape<T>& tape, const autograd::Var<T>& concat) const;
  // Query, key and value of every row beside each other: [rows, h d_k + widths().row()].
  Tensor<T> project_all(autograd::Tape<T>& tape, const autograd::Var<T>& x) const;
  template <class Stored>
  autograd::Var<T> cached(autograd::Tape<T>& tape, kernels::Matrix<const T> query,
                          std::span<const kernels::CachedRows<Stored>> rows,
                          const DistanceBias<T>& bias) const;

  MultiHeadShape shape_;
  Place query_, key_, value_;
  const autograd::Parameter<T>*out_weight_, *out_bias_ = nullptr;
};

}  // namespace gloss::attention
