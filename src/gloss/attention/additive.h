// Additive attention (Bahdanau, Cho and Bengio 2015, section A.1.2 and eq. 5-6), forward and backward:
//   score      e_ij = v_a^T tanh(W_a s_{i-1} + U_a h_j)
//   normalise  a_ij = exp(e_ij) / sum_k exp(e_ik)
//   aggregate  c_i = sum_j a_ij h_j
// The query is the decoder's state s_{i-1} [d_s], the annotations h_j [d_h] are keys and values, and d_a is
// the width in which they meet. The same as v_a^T tanh([W_a U_a][s_{i-1}; h_j]), with U_a h_j computed once
// a sentence. No recurrence: all j, and all i whose states are known, are scored at once.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "gloss/attention/scaled_dot_product.h"
#include "gloss/kernels/additive_attention.h"

namespace gloss::attention {

using kernels::RowsOfSource;

// Scores and weights are ragged, made on request: sequence after sequence, [n_q, n] each, beginning at
// `offsets`.
template <class T>
struct AdditiveAttended {
  autograd::Var<T> context;  // [queries, d_h]; zeros for a query of an empty source
  autograd::Var<T> weights;  // rows sum to 1
  Tensor<T> scores;          // before the softmax
  std::vector<int64_t> offsets;
};

// query [queries, d_a] = W_a s_{i-1} and keys [n, d_a] = U_a h_j; h [n, d_h]; v_a [d_a]. Sequence i has any
// number of queries, 0 too, over its own source rows. Never stores the [queries, n, d_a] joint vectors:
// backward computes the tanh again and keeps only the weights.
//
// Cheap to call step after step over the same keys and h: their gradients are added in place, and but for the
// first call of a backward pass only rows of sequences that have queries are touched. Errors name the numbers
// that do not fit.
template <class T>
AdditiveAttended<T> additive_attention(autograd::Tape<T>& tape, const autograd::Var<T>& query,
                                       const Offsets& queries, const autograd::Var<T>& keys,
                                       const autograd::Var<T>& h, const Offsets& sources,
                                       const autograd::Var<T>& v_a, Request request = {});

// Translating: query i [d_a] looks at sources[i], rows that lie anywhere and that others may look at too
// (hypotheses share their source). The same bits as above, whatever the company. context [queries, d_h]
template <class T>
void additive_attention(ThreadPool& pool, kernels::Matrix<const T> query,
                        std::span<const RowsOfSource<T>> sources, const Tensor<T>& v_a,
                        kernels::Matrix<T> context);

// What one query made of one source.
template <class T>
struct AdditiveStep {
  autograd::Var<T> context;  // c_i [1, d_h]
  autograd::Var<T> weights;  // a_ij [n]
  Tensor<T> scores;          // e_ij [n]
  Tensor<T> z;               // [n, d_a], if asked for: z_ij = tanh(W_a s_{i-1} + U_a h_j); e_ij = v_a^T z_ij
};
enum class JointVectors : bool { no, yes };

// One query, from the formula's own terms: s_prev [d_s], h [n, d_h], W_a [d_a, d_s], U_a [d_a, d_h], v_a
// [d_a].
template <class T>
AdditiveStep<T> additive_attention(autograd::Tape<T>& tape, const autograd::Var<T>& s_prev,
                                   const autograd::Var<T>& h, const autograd::Var<T>& W_a,
                                   const autograd::Var<T>& U_a, const autograd::Var<T>& v_a,
                                   JointVectors joint = JointVectors::no);

template <class T>
class AdditiveAttention {
 public:
  // Declares <prefix>W_a [d_a, d_s], <prefix>U_a [d_a, d_h] and <prefix>v_a [d_a]; there is no bias.
  AdditiveAttention(autograd::ParameterSet<T>& parameters, const std::string& prefix, int64_t d_s,
                    int64_t d_h, int64_t d_a);

  using Rows = Ragged<autograd::Var<T>>;
  // U_a h_j of all rows of h [n, d_h], once a sentence: [n, d_a].
  autograd::Var<T> project_memory(autograd::Tape<T>& tape, const autograd::Var<T>& h) const;
  // W_a s_{i-1} of all rows of s_prev [queries, d_s]: [queries, d_a].
  autograd::Var<T> query(autograd::Tape<T>& tape, const autograd::Var<T>& s_prev) const;

  // s_prev [queries, d_s] over h [n, d_h] with memory = project_memory(h.rows).
  AdditiveAttended<T> operator()(autograd::Tape<T>& tape, const Rows& s_prev, const autograd::Var<T>& memory,
                                 const Rows& h, Request request = {}) const;
  AdditiveAttended<T> operator()(autograd::Tape<T>& tape, const Rows& s_prev, const Rows& h,
                                 Request request = {}) const {
    return (*this)(tape, s_prev, project_memory(tape, h.rows), h, request);
  }
  // Translating: row i of s_prev looks at sources[i], whose keys project_memory made. [queries, d_h]
  autograd::Var<T> memory_step(autograd::Tape<T>& tape, const autograd::Var<T>& s_prev,
                               std::span<const RowsOfSource<T>> sources) const;

  int64_t d_s() const { return W_a_->value.cols(); }
  int64_t d_h() const { return U_a_->value.cols(); }
  int64_t d_a() const { return v_a_->value.size(); }

 private:
  const autograd::Parameter<T>*W_a_, *U_a_, *v_a_;
};

}  // namespace gloss::attention
