#include "gloss/attention/multi_head.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <type_traits>

#include "gloss/kernels/elementwise.h"
#include "gloss/nn/linear.h"

namespace gloss::attention {

using autograd::Init;
using autograd::Parameter;
using autograd::ParameterSet;
using autograd::Part;
using autograd::Tape;
using autograd::Var;
using kernels::matrix;

namespace {

// Keys and values as a cache keeps them.
template <class Stored, class T>
Tensor<Stored> stored(Tape<T>& tape, std::type_identity_t<kernels::Matrix<const T>> rows) {
  const Tensor<Stored> kept(tape.context().arena, {rows.rows, rows.cols});
  for (int64_t i = 0; i < rows.rows; ++i) kernels::store_numbers(rows.row(i), rows.cols, kept.row(i));
  return kept;
}

}  // namespace

template <class T>
MultiHeadAttention<T>::MultiHeadAttention(ParameterSet<T>& parameters, const std::string& prefix,
                                          MultiHeadShape shape, Stacking stacking)
    : shape_(shape) {
  MultiHeadShape& s = shape_;
  require(s.d_model > 0 && s.heads > 0, "multi-head attention needs d_model and heads above 0, not {} and {}",
          s.d_model, s.heads);
  require((s.d_k > 0 && s.d_v > 0) || s.d_model % s.heads == 0,
          "d_model {} is not divisible by {} heads: choose heads that divide it, or give d_k and d_v",
          s.d_model, s.heads);
  for (int64_t* width : {&s.d_query, &s.d_key, &s.d_value}) {
    if (*width == 0) *width = s.d_model;
  }
  for (int64_t* width : {&s.d_k, &s.d_v}) {
    if (*width == 0) *width = s.d_model / s.heads;
  }

  struct Wanted {
    const char* name;
    int64_t rows, cols;
    Place* place;
  };
  const std::array<Wanted, 3> wanted{{{"q_proj", s.heads * s.d_k, s.d_query, &query_},
                                      {"k_proj", s.heads * s.d_k, s.d_key, &key_},
                                      {"v_proj", s.heads * s.d_v, s.d_value, &value_}}};
  // Projections of one width stand under each other in one parameter.
  const auto declare = [&](size_t first, size_t last) {
    std::vector<Part> weights, biases;
    int64_t row = 0;
    for (size_t i = first; i < last; ++i) {
      const Wanted& w = wanted[i];
      // Three matrices for one input: the gain of a single [3 d, d] matrix, as in fairseq.
      const double gain = w.rows == w.cols ? 1 / std::sqrt(2.0) : 1;
      weights.push_back({prefix + w.name + ".weight", w.rows, Init::xavier(w.rows, w.cols, gain)});
      biases.push_back({prefix + w.name + ".bias", w.rows, Init::zeros()});
    }
    const Parameter<T>* weight = &parameters.declare(std::move(weights), wanted[first].cols);
    const Parameter<T>* bias = s.bias ? &parameters.declare(std::move(biases), 0) : nullptr;
    for (size_t i = first; i < last; ++i) {
      *wanted[i].place = {weight, bias, row, wanted[i].rows};
      row += wanted[i].rows;
    }
  };
  const size_t stacked = stacking == Stacking::query_key_value ? 3 : stacking == Stacking::key_value ? 2 : 1;
  for (size_t i = 3 - stacked; i < 3; ++i) {
    require(wanted[i].cols == wanted[2].cols,
            "projections of inputs of {} and {} numbers cannot share a product", wanted[i].cols,
            wanted[2].cols);
  }
  for (size_t i = 0; i < 3 - stacked; ++i) declare(i, i + 1);
  declare(3 - stacked, 3);
  out_weight_ = &parameters.matrix(prefix + "out_proj.weight", s.d_model, s.heads * s.d_v,
                                   Init::xavier(s.d_model, s.heads * s.d_v));
  if (s.bias) out_bias_ = &parameters.vector(prefix + "out_proj.bias", s.d_model, Init::zeros());
}

template <class T>
Var<T> MultiHeadAttention<T>::project(Tape<T>& tape, const Var<T>& x, const Place& place) const {
  const auto use = [&](const Parameter<T>* parameter) {
    if (!parameter) return Var<T>();
    return place.rows == parameter->value.shape()[0] ? tape.use(*parameter)
                                                     : tape.use_rows(*parameter, place.row, place.rows);
  };
  return nn::linear(tape, x, use(place.weight), use(place.bias));
}

template <class T>
Var<T> MultiHeadAttention<T>::output(Tape<T>& tape, const Var<T>& concat) const {
  return nn::linear(tape, concat, tape.use(*out_weight_), out_bias_ ? tape.use(*out_bias_) : Var<T>());
}

template <class T>
Attended<T> MultiHeadAttention<T>::operator()(Tape<T>& tape, const Rows& query, const Rows& key,
                                              const Rows& value, const Mask& mask, double dropout,
                                              Request request, const DistanceBias<T>& bias) const {
  DistanceBias<T> placed = bias;
  placed.first_query = mask.query_offset.value_or(bias.first_query);
  return attend(tape, query, key, value, visible_keys(mask, query.offsets, key.offsets), dropout, request,
                placed);
}

template <class T>
Attended<T> MultiHeadAttention<T>::attend(Tape<T>& tape, const Rows& query, const Rows& key,
                                          const Rows& value, std::vector<int64_t> visible, double dropout,
                                          Request request, const DistanceBias<T>& bias) const {
  require(key.offsets == value.offsets, "key and value lengths differ: {} key rows, {} value rows",
          key.offsets.total(), value.offsets.total());
  const std::array<const Rows*, 3> inputs{&query, &key, &value};
  const std::array<const Place*, 3> places{&query_, &key_, &value_};
  const auto same = [](const Var<T>& a, const Var<T>& b) {
    return a.value().data() == b.value().data() && a.shape() == b.shape() &&
           (a.same_place(b) || (!a.wants_gradient() && !b.wants_gradient()));
  };
  // One product for neighbours that share input and parameter.
  std::array<Projection<T>, 3> made;
  for (size_t i = 0; i < 3;) {
    Place all = *places[i];
    size_t j = i + 1;
    for (; j < 3 && places[j]->weight == all.weight && same(inputs[j]->rows, inputs[i]->rows); ++j) {
      all.rows += places[j]->rows;
    }
    const Var<T> rows = project(tape, inputs[i]->rows, all);
    for (; i < j; ++i) made[i] = {rows, places[i]->row - all.row};
  }
  Attended<T> result = scaled_dot_product_attention(tape, made[0], query.offsets, made[1], made[2],
                                                    key.offsets, {shape_.heads, shape_.d_k, shape_.d_v},
                                                    std::move(visible), dropout, request, bias);
  if (request.tensors) {
    const std::array<const char*, 3> names{"q", "k", "v"};
    for (size_t i = 0; i < 3; ++i) {
      const Tensor<T> copy = tape.allocate({made[i].rows.rows(), places[i]->rows});
      kernels::add<T>(tape.pool(), kernels::columns(matrix(made[i].rows.value()), made[i].first, copy.cols()),
                      matrix(copy), kernels::Accumulate::no);
      result.tensors.emplace_back(names[i], copy);
    }
    result.tensors.emplace_back("concat", result.output.value());
  }
  result.output = output(tape, result.output);
  return result;
}

template <class T>
template <class Stored>
Var<T> MultiHeadAttention<T>::cached(Tape<T>& tape, kernels::Matrix<const T> query,
                                     std::span<const kernels::CachedRows<Stored>> rows,
                                     const DistanceBias<T>& bias) const {
  require(query.rows == static_cast<int64_t>(rows.size()), "{} queries for a cache step of {} rows",
          query.rows, rows.size());
  kernels::CachedAttention<Stored> in;
  in.query = query;
  in.rows = rows;
  in.key_stride = in.value_stride = widths().row();
  in.heads = shape_.heads;
  in.d_k = shape_.d_k;
  in.d_v = shape_.d_v;
  in.scale = static_cast<T>(1 / std::sqrt(static_cast<double>(shape_.d_k)));
  if (bias.by_distance) {
    int64_t most = 0;
    for (const kernels::CachedRows<Stored>& each : rows) most = std::max(most, each.count);
    require(bias.by_distance.rows() == shape_.heads && bias.zero + 1 >= most &&
                bias.zero < bias.by_distance.cols(),
            "a bias of {} heads for distances from {} does not fit {} heads and {} rows",
            bias.by_distance.rows(), -bias.zero, shape_.heads, most);
    in.bias = {matrix(bias.by_distance.value()), bias.zero};
  }
  const Tensor<T> concat = tape.allocate({query.rows, shape_.heads * shape_.d_v});
  kernels::cached_attention(tape.pool(), in, matrix(concat));
  return output(tape, Var<T>(concat));
}

template <class T>
Tensor<T> MultiHeadAttention<T>::project_all(Tape<T>& tape, const Var<T>& x) const {
  require(query_.weight == value_.weight, "a cached step needs query, key and value in one parameter");
  return project(tape, x, {query_.weight, query_.bias, 0, query_.weight->value.shape()[0]}).value();
}

template <class T>
template <class Stored>
Var<T> MultiHeadAttention<T>::self_step(Tape<T>& tape, const Var<T>& x, KvCache<Stored>& cache, int64_t layer,
                                        const DistanceBias<T>& bias) const {
  const Tensor<T> rows = project_all(tape, x);
  const int64_t query_width = shape_.heads * shape_.d_k;
  cache.append(layer, kernels::columns(matrix(rows), query_width, widths().row()));
  return cached(tape, kernels::columns(matrix(rows), 0, query_width), cache.self_rows(layer), bias);
}

template <class T>
template <class Stored>
Var<T> MultiHeadAttention<T>::memory_step(Tape<T>& tape, const Var<T>& x, KvCache<Stored>& cache,
                                          int64_t layer) const {
  const Var<T> query = project(tape, x, query_);
  return cached(tape, matrix(query.value()), cache.memory_rows(layer), {});
}

template <class T>
template <class Stored>
Var<T> MultiHeadAttention<T>::self_whole(Tape<T>& tape, const Rows& x, const DistanceBias<T>& bias) const {
  const Tensor<T> rows = project_all(tape, x.rows);
  const int64_t query_width = shape_.heads * shape_.d_k;
  const auto kept = stored<Stored>(tape, kernels::columns(matrix(rows), query_width, widths().row()));
  std::vector<kernels::CachedRows<Stored>> seen;
  for (int64_t s = 0; s < x.offsets.count(); ++s) {
    const Stored* first = kept.row(x.offsets.begin(s));
    for (int64_t i = 0; i < x.offsets.length(s); ++i)
      seen.push_back({first, first + widths().key, nullptr, i + 1});
  }
  return cached<Stored>(tape, kernels::columns(matrix(rows), 0, query_width), seen, bias);
}

template <class T>
template <class Stored>
Var<T> MultiHeadAttention<T>::memory_whole(Tape<T>& tape, const Rows& x, const Rows& memory) const {
  require(x.offsets.count() == memory.offsets.count(), "{} sequences of queries look at {} sequences of keys",
          x.offsets.count(), memory.offsets.count());
  const Var<T> query = project(tape, x.rows, query_);
  const auto kept = stored<Stored>(tape, matrix(project_memory(tape, memory.rows)));
  std::vector<kernels::CachedRows<Stored>> seen;
  for (int64_t s = 0; s < x.offsets.count(); ++s) {
    const Stored* first = kept.row(memory.offsets.begin(s));
    seen.insert(seen.end(), static_cast<size_t>(x.offsets.length(s)),
                {first, first + widths().key, nullptr, memory.offsets.length(s)});
  }
  return cached<Stored>(tape, matrix(query.value()), seen, {});
}

template <class T>
Tensor<T> MultiHeadAttention<T>::project_memory(Tape<T>& tape, const Var<T>& memory) const {
  require(key_.weight == value_.weight && query_.weight != key_.weight,
          "project_memory needs keys and values in one parameter");
  return project(tape, memory, {key_.weight, key_.bias, 0, key_.rows + value_.rows}).value();
}

template class MultiHeadAttention<float>;
template class MultiHeadAttention<double>;

using Float = MultiHeadAttention<float>;
using Double = MultiHeadAttention<double>;
template Var<float> Float::self_step(Tape<float>&, const Var<float>&, KvCache<float>&, int64_t,
                                     const DistanceBias<float>&) const;
template Var<float> Float::self_step(Tape<float>&, const Var<float>&, KvCache<kernels::Bfloat16>&, int64_t,
                                     const DistanceBias<float>&) const;
template Var<double> Double::self_step(Tape<double>&, const Var<double>&, KvCache<double>&, int64_t,
                                       const DistanceBias<double>&) const;
template Var<float> Float::memory_step(Tape<float>&, const Var<float>&, KvCache<float>&, int64_t) const;
template Var<float> Float::memory_step(Tape<float>&, const Var<float>&, KvCache<kernels::Bfloat16>&,
                                       int64_t) const;
template Var<double> Double::memory_step(Tape<double>&, const Var<double>&, KvCache<double>&, int64_t) const;
template Var<float> Float::self_whole<float>(Tape<float>&, const Rows&, const DistanceBias<float>&) const;
template Var<float> Float::self_whole<kernels::Bfloat16>(Tape<float>&, const Rows&,
                                                         const DistanceBias<float>&) const;
template Var<float> Float::memory_whole<float>(Tape<float>&, const Rows&, const Rows&) const;
template Var<float> Float::memory_whole<kernels::Bfloat16>(Tape<float>&, const Rows&, const Rows&) const;

}  // namespace gloss::attention
