#include "gloss/attention/scaled_dot_product.h"

#include <array>
#include <memory>

#include "gloss/kernels/attention.h"
#include "gloss/kernels/elementwise.h"

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

// Where the gradients of the three projections go. Projections that stand side by side in one variable are
// written in place; where they leave a gap its gradient begins as zeros, and one that overlaps an earlier one
// (keys that are their own values) is made apart and added at the end.
template <class T>
class GradientColumns {
 public:
  GradientColumns(Tape<T>& tape, const std::array<const Projection<T>*, 3>& projections,
                  const std::array<int64_t, 3>& widths) {
    std::array<bool, 3> apart{};
    const auto shares = [&](size_t i, size_t j) {
      return projections[i]->rows.same_place(projections[j]->rows);
    };
    for (size_t i = 0; i < 3; ++i) {
      const int64_t first = projections[i]->first;
      for (size_t j = 0; j < i; ++j) {
        const int64_t other = projections[j]->first;
        apart[i] |= shares(i, j) && first < other + widths[j] && other < first + widths[i];
      }
    }
    for (size_t i = 0; i < 3; ++i) {
      const Var<T>& rows = projections[i]->rows;
      size_t leader = i;
      int64_t covered = 0;
      for (size_t j = 0; j < 3; ++j) {
        if (j != i && !shares(i, j)) continue;
        leader = std::min(leader, j);
        if (!apart[j]) covered += widths[j];
      }
      slots_[i] = leader < i ? slots_[leader] : tape.slot(rows);
      if (leader == i && slots_[i] && slots_[i].accumulate == Accumulate::no && covered != rows.cols()) {
        slots_[i].tensor.fill(0);
        slots_[i].accumulate = Accumulate::yes;
      }
      if (slots_[i]) columns_[i] = kernels::columns(slots_[i].matrix(), projections[i]->first, widths[i]);
      if (!slots_[i] || apart[i]) own_[i] = tape.allocate({rows.rows(), widths[i]});
    }
  }
  Matrix<T> target(size_t i) const { return own_[i] ? matrix(own_[i]) : columns_[i]; }
  Accumulate accumulate(size_t i) const { return own_[i] ? Accumulate::no : slots_[i].accumulate; }
  // After the kernel: what was made apart joins the rest.
  void finish(ThreadPool& pool) const {
    for (size_t i = 0; i < 3; ++i) {
      if (own_[i] && slots_[i]) kernels::add<T>(pool, matrix(own_[i]), columns_[i], Accumulate::yes);
    }
  }

 private:
  Slot<T> slots_[3];
  Matrix<T> columns_[3];
  Tensor<T> own_[3];
};

// Before memory is read: the bias has a number for each head and every distance there is.
template <class T>
void require_distances(const DistanceBias<T>& bias, const Offsets& queries, const Offsets& keys,
                       int64_t heads) {
  require(bias.by_distance.rows() == heads, "a bias of {} heads does not fit attention of {}",
          bias.by_distance.rows(), heads);
  require(bias.first_query >= 0 && bias.first_query <= bias.zero,
          "a bias for distances from {} is none for a query at position {}", -bias.zero, bias.first_query);
  for (int64_t s = 0; s < queries.count(); ++s) {
    if (queries.length(s) == 0 || keys.length(s) == 0) continue;
    const int64_t before = bias.first_query + queries.length(s) - 1,
                  behind = keys.length(s) - 1 - bias.first_query;
    require(before <= bias.zero && bias.zero + behind < bias.by_distance.cols(),
            "a bias for distances from {} to {} does not reach from {} to {}", -bias.zero,
            bias.by_distance.cols() - 1 - bias.zero, -before, behind);
  }
}

}  // namespace

template <class T>
Attended<T> scaled_dot_product_attention(Tape<T>& tape, const Projection<T>& query, const Offsets& queries,
                                         const Projection<T>& key, const Projection<T>& value,
                                         const Offsets& keys, const HeadShape& shape,
                                         std::vector<int64_t> visible, double dropout, Request request,
                                         const DistanceBias<T>& bias) {
  require(queries.count() == keys.count(), "{} sequences of queries look at {} sequences of keys",
          queries.count(), keys.count());
  require(query.rows.rows() == queries.total() && key.rows.rows() == keys.total() &&
              value.rows.rows() == keys.total(),
          "attention got {} query, {} key and {} value rows for offsets of {} queries and {} keys",
          query.rows.rows(), key.rows.rows(), value.rows.rows(), queries.total(), keys.total());
  require(shape.heads > 0 && shape.d_k > 0, "attention needs heads and d_k above 0, not {} and {}",
          shape.heads, shape.d_k);
  const auto fits = [&](const Projection<T>& p, int64_t d) {
    require(p.first >= 0 && p.first + shape.heads * d <= p.rows.cols(),
            "attention of {} heads of {} numbers from column {} does not fit rows of {} numbers", shape.heads,
            d, p.first, p.rows.cols());
  };
  fits(query, shape.d_k);
  fits(key, shape.d_k);
  fits(value, shape.d_v);
  require(visible.empty() || static_cast<int64_t>(visible.size()) == queries.total(),
          "numbers of visible keys were given for {} of {} queries", visible.size(), queries.total());
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
  if (bias.by_distance) {
    require_distances(bias, queries, keys, shape.heads);
    in.bias = {matrix(bias.by_distance.value()), bias.zero};
    in.first_query = bias.first_query;
  }

  Attended<T> result;
  const Tensor<T> output = tape.allocate({queries.total(), shape.heads * shape.d_v});
  const bool recorded = query.rows.wants_gradient() || key.rows.wants_gradient() ||
                        value.rows.wants_gradient() || bias.by_distance.wants_gradient();
  const Tensor<T> statistics = recorded ? tape.allocate({queries.total(), shape.heads, 2}) : Tensor<T>();
  if (request.scores || request.weights) result.offsets = kernels::weight_offsets(in);
  if (request.scores) result.scores = tape.allocate({result.offsets.back()});
  const Tensor<T> weights = request.weights ? tape.allocate({result.offsets.back()}) : Tensor<T>();
  kernels::attention_forward<T>(tape.pool(), in, matrix(output), statistics.data(), result.scores.data(),
                                weights.data());

  const auto make_backward = [&] {
    return [in, limits, query, key, value, by_distance = bias.by_distance, output, statistics, shape](
               Tape<T>& t, const Tensor<T>& doutput, const Tensor<T>& dweights) {
      const int64_t key_width = shape.heads * shape.d_k, value_width = shape.heads * shape.d_v;
      const GradientColumns<T> columns(t, {&query, &key, &value}, {key_width, key_width, value_width});
      kernels::AttentionGradient<T> gradient;
      gradient.output = matrix(output);
      if (doutput) gradient.doutput = matrix(doutput);
      gradient.statistics = statistics.data();
      gradient.dweights = dweights.data();
      gradient.dquery = columns.target(0);
      gradient.dkey = columns.target(1);
      gradient.dvalue = columns.target(2);
      gradient.accumulate_query = columns.accumulate(0);
      gradient.accumulate_key = columns.accumulate(1);
      gradient.accumulate_value = columns.accumulate(2);
      const Slot<T> dbias = t.slot(by_distance);
      gradient.dbias = dbias.matrix();
      gradient.accumulate_bias = dbias.accumulate;
      kernels::attention_backward(t.pool(), in, gradient);
      columns.finish(t.pool());
    };
  };
  if (request.weights) {
    std::tie(result.output, result.weights) = tape.record2(
        output, weights, {&query.rows, &key.rows, &value.rows, &bias.by_distance}, make_backward);
  } else {
    result.output = tape.record(output, {&query.rows, &key.rows, &value.rows, &bias.by_distance}, [&] {
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
                                                      double, Request, const DistanceBias<float>&);
template Attended<double> scaled_dot_product_attention(Tape<double>&, const Projection<double>&,
                                                       const Offsets&, const Projection<double>&,
                                                       const Projection<double>&, const Offsets&,
                                                       const HeadShape&, std::vector<int64_t>, double,
                                                       Request, const DistanceBias<double>&);
template Attended<float> scaled_dot_product_attention(Tape<float>&, const Ragged<Var<float>>&,
                                                      const Ragged<Var<float>>&, const Ragged<Var<float>>&,
                                                      const Mask&, Request);
template Attended<double> scaled_dot_product_attention(Tape<double>&, const Ragged<Var<double>>&,
                                                       const Ragged<Var<double>>&, const Ragged<Var<double>>&,
                                                       const Mask&, Request);

}  // namespace gloss::attention
