#include "gloss/attention/scaled_dot_product.h"

#include <memory>

#include "gloss/kernels/attention.h"

namespace gloss::attention {

using autograd::Slot;
using autograd::Tape;
using autograd::Var;
using kernels::Accumulate;
using kernels::Matrix;
using kernels::matrix;

namespace {

template <class T>
Matrix<T> view(const Tensor<T>& rows, int64_t first, int64_t width) {
  return kernels::columns(matrix(rows), first, width);
}

// Gradient columns of one projection. Projections that stand in one variable share its gradient; its first
// use decides whether all of them write or add.
template <class T>
class GradientColumns {
 public:
  GradientColumns(Tape<T>& tape, const Projection<T>& query, const Projection<T>& key,
                  const Projection<T>& value) {
    const Projection<T>* projections[] = {&query, &key, &value};
    for (int i = 0; i < 3; ++i) {
      int same = i;
      for (int j = 0; j < i; ++j) {
        if (projections[i]->rows.same_place(projections[j]->rows)) same = j;
      }
      slots_[i] = same < i ? slots_[same] : tape.slot(projections[i]->rows);
    }
  }
  // Columns of projection i; a stand-in of `rows` x `width` when nobody wants them.
  Matrix<T> columns(Tape<T>& tape, int i, int64_t first, int64_t rows, int64_t width) {
    if (slots_[i]) return kernels::columns(slots_[i].matrix(), first, width);
    unwanted_[i] = tape.allocate({rows, width});
    return matrix(unwanted_[i]);
  }
  Accumulate accumulate(int i) const { return slots_[i].accumulate; }

 private:
  Slot<T> slots_[3];
  Tensor<T> unwanted_[3];
};

}  // namespace

template <class T>
Attended<T> scaled_dot_product_attention(Tape<T>& tape, const Projection<T>& query, const Offsets& queries,
                                         const Projection<T>& key, const Projection<T>& value,
                                         const Offsets& keys, const HeadShape& shape,
                                         std::vector<int64_t> visible, double dropout, Request request) {
  require(queries.count() == keys.count(), "{} sequences of queries look at {} sequences of keys",
          queries.count(), keys.count());
  require(query.rows.rows() == queries.total() && key.rows.rows() == keys.total() &&
              value.rows.rows() == keys.total(),
          "attention got {} query, {} key and {} value rows for offsets of {} queries and {} keys",
          query.rows.rows(), key.rows.rows(), value.rows.rows(), queries.total(), keys.total());
  // The kernel's arguments outlive this call when recorded, so they own their list of visible keys.
  const auto limits = std::make_shared<const std::vector<int64_t>>(std::move(visible));
  kernels::Attention<T> in;
  in.query = view(query.rows.value(), query.first, shape.heads * shape.d_k);
  in.key = view(key.rows.value(), key.first, shape.heads * shape.d_k);
  in.value = view(value.rows.value(), value.first, shape.heads * shape.d_v);
  in.query_offsets = queries;
  in.key_offsets = keys;
  in.heads = shape.heads;
  in.d_k = shape.d_k;
  in.d_v = shape.d_v;
  in.scale = static_cast<T>(1 / std::sqrt(static_cast<double>(shape.d_k)));
  in.visible = limits->empty() ? nullptr : limits->data();
  in.dropout = tape.dropout(dropout);

  Attended<T> result;
  const Tensor<T> output = tape.allocate({queries.total(), shape.heads * shape.d_v});
  const bool recorded =
      query.rows.wants_gradient() || key.rows.wants_gradient() || value.rows.wants_gradient();
  const Tensor<T> statistics = recorded ? tape.allocate({queries.total(), shape.heads, 2}) : Tensor<T>();
  if (request.scores || request.weights) result.offsets = kernels::weight_offsets(in);
  if (request.scores) result.scores = tape.allocate({result.offsets.back()});
  const Tensor<T> weights = request.weights ? tape.allocate({result.offsets.back()}) : Tensor<T>();
  kernels::attention_forward<T>(tape.pool(), in, matrix(output), statistics.data(), result.scores.data(),
                                weights.data());

  const auto make_backward = [&] {
    return [in, limits, query, key, value, output, statistics, shape](Tape<T>& t, const Tensor<T>& doutput,
                                                                      const Tensor<T>& dweights) {
      GradientColumns<T> columns(t, query, key, value);
      kernels::AttentionGradient<T> gradient;
      gradient.output = matrix(output);
      if (doutput) gradient.doutput = matrix(doutput);
      gradient.statistics = statistics.data();
      gradient.dweights = dweights.data();
      gradient.dquery = columns.columns(t, 0, query.first, in.query.rows, shape.heads * shape.d_k);
      gradient.dkey = columns.columns(t, 1, key.first, in.key.rows, shape.heads * shape.d_k);
      gradient.dvalue = columns.columns(t, 2, value.first, in.value.rows, shape.heads * shape.d_v);
      gradient.accumulate_query = columns.accumulate(0);
      gradient.accumulate_key = columns.accumulate(1);
      gradient.accumulate_value = columns.accumulate(2);
      kernels::attention_backward(t.pool(), in, gradient);
    };
  };
  if (request.weights) {
    std::tie(result.output, result.weights) =
        tape.record2(output, weights, {&query.rows, &key.rows, &value.rows}, make_backward);
  } else {
    result.output = tape.record(output, {&query.rows, &key.rows, &value.rows}, [&] {
      return [backward = make_backward()](Tape<T>& t, const Tensor<T>& doutput) { backward(t, doutput, {}); };
    });
  }
  return result;
}

template <class T>
Attended<T> scaled_dot_product_attention(Tape<T>& tape, const Ragged<Var<T>>& query,
                                         const Ragged<Var<T>>& key, const Ragged<Var<T>>& value,
                                         const Mask& mask, Request request) {
  require(query.rows.cols() == key.rows.cols(), "d_k differs: queries have {} numbers, keys {}",
          query.rows.cols(), key.rows.cols());
  require(key.offsets == value.offsets, "key and value lengths differ: {} key rows, {} value rows",
          key.offsets.total(), value.offsets.total());
  return scaled_dot_product_attention<T>(tape, {query.rows, 0}, query.offsets, {key.rows, 0}, {value.rows, 0},
                                         key.offsets, {1, key.rows.cols(), value.rows.cols()},
                                         visible_keys(mask, query.offsets, key.offsets), 0, request);
}

template Attended<float> scaled_dot_product_attention(Tape<float>&, const Projection<float>&, const Offsets&,
                                                      const Projection<float>&, const Projection<float>&,
                                                      const Offsets&, const HeadShape&, std::vector<int64_t>,
                                                      double, Request);
template Attended<double> scaled_dot_product_attention(Tape<double>&, const Projection<double>&,
                                                       const Offsets&, const Projection<double>&,
                                                       const Projection<double>&, const Offsets&,
                                                       const HeadShape&, std::vector<int64_t>, double,
                                                       Request);
template Attended<float> scaled_dot_product_attention(Tape<float>&, const Ragged<Var<float>>&,
                                                      const Ragged<Var<float>>&, const Ragged<Var<float>>&,
                                                      const Mask&, Request);
template Attended<double> scaled_dot_product_attention(Tape<double>&, const Ragged<Var<double>>&,
                                                       const Ragged<Var<double>>&, const Ragged<Var<double>>&,
                                                       const Mask&, Request);

}  // namespace gloss::attention
