#include "gloss/attention/additive.h"

#include <tuple>

#include "gloss/kernels/elementwise.h"
#include "gloss/nn/linear.h"

namespace gloss::attention {

using autograd::Init;
using autograd::ParameterSet;
using autograd::Slot;
using autograd::Tape;
using autograd::Var;
using kernels::Accumulate;
using kernels::Matrix;
using kernels::matrix;

template <class T>
AdditiveAttended<T> additive_attention(Tape<T>& tape, const Var<T>& query, const Offsets& queries,
                                       const Var<T>& keys, const Var<T>& h, const Offsets& sources,
                                       const Var<T>& v_a, Request request) {
  require(queries.count() == sources.count(), "{} sequences of queries look at {} sources", queries.count(),
          sources.count());
  require(
      query.rows() == queries.total() && keys.rows() == sources.total() && h.rows() == sources.total(),
      "additive attention got {} query, {} key and {} h rows for offsets of {} queries and {} source rows",
      query.rows(), keys.rows(), h.rows(), queries.total(), sources.total());
  require(query.cols() == keys.cols() && v_a.value().size() == keys.cols(),
          "d_a differs: queries have {} numbers, keys {}, v_a {}", query.cols(), keys.cols(),
          v_a.value().size());
  kernels::AdditiveAttention<T> in;
  in.query = matrix(query.value());
  in.keys = matrix(keys.value());
  in.h = matrix(h.value());
  in.query_offsets = queries;
  in.source_offsets = sources;
  in.v_a = v_a.value().data();

  AdditiveAttended<T> result;
  const Tensor<T> context = tape.allocate({queries.total(), h.cols()});
  const bool recorded =
      query.wants_gradient() || keys.wants_gradient() || h.wants_gradient() || v_a.wants_gradient();
  std::vector<int64_t> offsets;
  if (recorded || request.scores || request.weights) offsets = kernels::weight_offsets(in);
  if (request.scores) result.scores = tape.allocate({offsets.back()});
  // Backward reads the weights: a number for d_a joint ones that it computes again.
  const Tensor<T> weights = recorded || request.weights ? tape.allocate({offsets.back()}) : Tensor<T>();
  kernels::additive_attention_forward<T>(tape.pool(), in, matrix(context), result.scores.data(),
                                         weights.data());

  const auto make_backward = [&] {
    return
        [in, query, keys, h, v_a, weights](Tape<T>& t, const Tensor<T>& dcontext, const Tensor<T>& dweights) {
          const Slot<T> dkeys = t.slot(keys), dh = t.slot(h), dv_a = t.slot(v_a);
          // Rows that are queries and keys at once belong to two tasks: such a query's gradient is made
          // apart.
          const bool apart = query.same_place(keys) || query.same_place(h);
          const Slot<T> dquery = apart ? Slot<T>{t.allocate(query.shape())} : t.slot(query);
          if (dv_a && dv_a.accumulate == Accumulate::no) dv_a.tensor.fill(0);
          kernels::AdditiveAttentionGradient<T> gradient;
          gradient.weights = weights.data();
          if (dcontext) gradient.dcontext = matrix(dcontext);
          gradient.dweights = dweights.data();
          gradient.dquery = dquery.matrix();
          gradient.dkeys = dkeys.matrix();
          gradient.dh = dh.matrix();
          gradient.dv_a = dv_a.tensor.data();
          gradient.accumulate_query = dquery.accumulate;
          gradient.accumulate_keys = dkeys.accumulate;
          gradient.accumulate_h = dh.accumulate;
          kernels::additive_attention_backward(t.pool(), in, gradient);
          if (apart) kernels::add<T>(t.pool(), dquery.matrix(), t.slot(query).matrix(), Accumulate::yes);
        };
  };
  if (request.weights) {
    std::tie(result.context, result.weights) =
        tape.record2(context, weights, {&query, &keys, &h, &v_a}, make_backward);
  } else {
    result.context = tape.record(context, {&query, &keys, &h, &v_a}, [&] {
      return
          [backward = make_backward()](Tape<T>& t, const Tensor<T>& dcontext) { backward(t, dcontext, {}); };
    });
  }
  if (request.scores || request.weights) result.offsets = std::move(offsets);
  return result;
}

template <class T>
void additive_attention(ThreadPool& pool, Matrix<const T> query, std::span<const RowsOfSource<T>> sources,
                        const Tensor<T>& v_a, Matrix<T> context) {
  require(query.rows == static_cast<int64_t>(sources.size()) && query.rows == context.rows,
          "{} queries look at {} sources and give {} contexts", query.rows, sources.size(), context.rows);
  require(query.cols == v_a.size(), "d_a differs: queries have {} numbers, v_a {}", query.cols, v_a.size());
  for (const RowsOfSource<T>& source : sources) {
    require(source.keys.rows == source.h.rows, "a source has {} keys and {} rows of h", source.keys.rows,
            source.h.rows);
    require(source.keys.rows == 0 || (source.keys.cols == query.cols && source.h.cols == context.cols),
            "a source has keys of {} and h of {} numbers, queries have {} and contexts {}", source.keys.cols,
            source.h.cols, query.cols, context.cols);
  }
  kernels::additive_attention_step(pool, query, sources, v_a.data(), context);
}

template <class T>
AdditiveStep<T> additive_attention(Tape<T>& tape, const Var<T>& s_prev, const Var<T>& h, const Var<T>& W_a,
                                   const Var<T>& U_a, const Var<T>& v_a, JointVectors joint) {
  require(s_prev.rows() == 1, "additive attention of one query got {} states", s_prev.rows());
  const Var<T> q_add = nn::linear(tape, s_prev, W_a, Var<T>());  // [1, d_a]
  const Var<T> k_add = nn::linear(tape, h, U_a, Var<T>());       // [n, d_a]
  const Offsets one(std::vector<int64_t>{0, 1}), n(std::vector<int64_t>{0, h.rows()});
  AdditiveAttended<T> attended =
      additive_attention(tape, q_add, one, k_add, h, n, v_a, {.scores = true, .weights = true});
  AdditiveStep<T> step{attended.context, attended.weights, attended.scores, {}};
  if (joint == JointVectors::yes) {
    step.z = tape.allocate(k_add.shape());
    kernels::joint_vectors<T>(tape.pool(), q_add.value().data(), matrix(k_add.value()), matrix(step.z));
  }
  return step;
}

template <class T>
AdditiveAttention<T>::AdditiveAttention(ParameterSet<T>& parameters, const std::string& prefix, int64_t d_s,
                                        int64_t d_h, int64_t d_a) {
  require(d_s > 0 && d_h > 0 && d_a > 0,
          "additive attention needs d_s, d_h and d_a above 0, not {}, {} and {}", d_s, d_h, d_a);
  W_a_ = &parameters.matrix(prefix + "W_a", d_a, d_s, Init::xavier(d_a, d_s));
  U_a_ = &parameters.matrix(prefix + "U_a", d_a, d_h, Init::xavier(d_a, d_h));
  v_a_ = &parameters.vector(prefix + "v_a", d_a, Init::xavier(1, d_a));
}

template <class T>
Var<T> AdditiveAttention<T>::project_memory(Tape<T>& tape, const Var<T>& h) const {
  return nn::linear(tape, h, tape.use(*U_a_), Var<T>());
}

template <class T>
Var<T> AdditiveAttention<T>::query(Tape<T>& tape, const Var<T>& s_prev) const {
  return nn::linear(tape, s_prev, tape.use(*W_a_), Var<T>());
}

template <class T>
AdditiveAttended<T> AdditiveAttention<T>::operator()(Tape<T>& tape, const Rows& s_prev, const Var<T>& memory,
                                                     const Rows& h, Request request) const {
  const Var<T> q_add = query(tape, s_prev.rows);  // beside the memory's k_add_j = U_a h_j
  // score, normalise and aggregate: three functions of those names in one kernel.
  return additive_attention(tape, q_add, s_prev.offsets, memory, h.rows, h.offsets, tape.use(*v_a_), request);
}

template <class T>
Var<T> AdditiveAttention<T>::memory_step(Tape<T>& tape, const Var<T>& s_prev,
                                         std::span<const RowsOfSource<T>> sources) const {
  const Var<T> q_add = query(tape, s_prev);
  const Tensor<T> context = tape.allocate({s_prev.rows(), d_h()});
  additive_attention<T>(tape.pool(), matrix(q_add.value()), sources, v_a_->value, matrix(context));
  return Var<T>(context);
}

template AdditiveAttended<float> additive_attention(Tape<float>&, const Var<float>&, const Offsets&,
                                                    const Var<float>&, const Var<float>&, const Offsets&,
                                                    const Var<float>&, Request);
template AdditiveAttended<double> additive_attention(Tape<double>&, const Var<double>&, const Offsets&,
                                                     const Var<double>&, const Var<double>&, const Offsets&,
                                                     const Var<double>&, Request);
template void additive_attention(ThreadPool&, Matrix<const float>, std::span<const RowsOfSource<float>>,
                                 const Tensor<float>&, Matrix<float>);
template void additive_attention(ThreadPool&, Matrix<const double>, std::span<const RowsOfSource<double>>,
                                 const Tensor<double>&, Matrix<double>);
template AdditiveStep<float> additive_attention(Tape<float>&, const Var<float>&, const Var<float>&,
                                                const Var<float>&, const Var<float>&, const Var<float>&,
                                                JointVectors);
template AdditiveStep<double> additive_attention(Tape<double>&, const Var<double>&, const Var<double>&,
                                                 const Var<double>&, const Var<double>&, const Var<double>&,
                                                 JointVectors);
template class AdditiveAttention<float>;
template class AdditiveAttention<double>;

}  // namespace gloss::attention
