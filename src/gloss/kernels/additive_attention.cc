#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "gloss/kernels/additive_attention.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "gloss/kernels/additive_attention.h"
#include "gloss/kernels/dispatch.h"
#include "gloss/kernels/scratch.h"
#include "gloss/kernels/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace gloss::kernels::HWY_NAMESPACE {
namespace {

constexpr int64_t kTile = 32;  // queries whose weights are in hand at once

template <class T>
void set_to_zero(Matrix<T> m) {
  for (int64_t i = 0; i < m.rows; ++i) std::fill_n(m.row(i), m.cols, T{0});
}

// n of the numbers of z = tanh(query + key).
template <class T>
HWY_INLINE Wide<T> joint(const T* query, const T* key, int64_t n) {
  return hyperbolic_tangent(load_chunk(query, n) + load_chunk(key, n));
}

template <class T>
HWY_INLINE T energy(const T* query, const T* key, const T* v_a, int64_t d_a) {
  Wide<T> total = zero<T>();
  int64_t c = 0;
  for (; c + kWide <= d_a; c += kWide) {
    total = mul_add(load(v_a + c), joint(query + c, key + c, kWide), total);
  }
  if (c < d_a) {
    const int64_t n = d_a - c;
    total = mul_add(load_first(v_a + c, n), joint(query + c, key + c, n), total);
  }
  return sum(total);
}

// Score: e_ij = v_a^T tanh(W_a s_{i-1} + U_a h_j).
template <class T>
HWY_INLINE void score(Matrix<const T> query, Matrix<const T> keys, const T* v_a, T* e, int64_t stride) {
  for (int64_t i = 0; i < query.rows; ++i) {
    for (int64_t j = 0; j < keys.rows; ++j) {
      e[i * stride + j] = energy(query.row(i), keys.row(j), v_a, query.cols);
    }
  }
}

// Normalise: a_ij = exp(e_ij) / sum_k exp(e_ik), in place, with the maximum subtracted.
template <class T>
HWY_INLINE void normalise(T* e, int64_t m, int64_t n, int64_t stride) {
  const T infinity = std::numeric_limits<T>::infinity();
  for (int64_t i = 0; i < m; ++i) {
    T* row = e + i * stride;
    std::fill(row + n, row + stride, -infinity);
    Wide<T> most = set(-infinity);
    for (int64_t c = 0; c < stride; c += kWide) most = max(most, load(row + c));
    const Wide<T> top = set(largest(most));
    Wide<T> total = zero<T>();
    for (int64_t c = 0; c < stride; c += kWide) {
      const Wide<T> p = exp(load(row + c) - top);
      store(p, row + c);
      total = total + p;
    }
    const Wide<T> inverse = set(T{1} / sum(total));
    for (int64_t c = 0; c < stride; c += kWide) store(load(row + c) * inverse, row + c);
  }
}

// Aggregate: c_i = sum_j a_ij h_j.
template <class T>
HWY_INLINE void aggregate(const T* a, int64_t stride, Matrix<const T> h, Matrix<T> context) {
  const Strided<T> weights{a, stride, 1};
  int64_t c = 0;
  if (context.rows == 1) {  // many chunks at once, because each is one long chain of additions
    constexpr int kChunks = Wide<T>::kVectors == 1 ? 8 : Wide<T>::kVectors == 2 ? 4 : 2;
    constexpr int64_t kWidth = kChunks * kWide;
    for (; c + kWidth <= context.cols; c += kWidth) {
      product_block<1, kChunks>(weights, h.data + c, h.stride, context.data + c, context.stride, h.rows,
                                kWidth, false);
    }
  }
  small_product(weights, h.data + c, h.stride, context.data + c, context.stride, context.rows, h.rows,
                context.cols - c, false);
}

// Queries over one source. `scores` and `weights` [query.rows, n] are filled when not null.
template <class T>
void attend(Matrix<const T> query, const RowsOfSource<T>& source, const T* v_a, Matrix<T> context, T* scores,
            T* weights) {
  const int64_t n = source.keys.rows, stride = round_up(n);
  if (n == 0) {
    set_to_zero(context);
    return;
  }
  const Scratch<T> e(query.rows * stride);
  const auto copy_to = [&](T* out) {
    for (int64_t i = 0; i < query.rows; ++i) std::copy_n(e.data() + i * stride, n, out + i * n);
  };
  score(query, source.keys, v_a, e.data(), stride);
  if (scores) copy_to(scores);
  normalise(e.data(), query.rows, n, stride);
  if (weights) copy_to(weights);
  aggregate(e.data(), stride, source.h, context);
}

// d [Q, R] = the dot products of Q rows of a with R rows of b.
template <int Q, int R, class T>
HWY_INLINE void dot_block(const T* a, int64_t a_stride, const T* b, int64_t b_stride, int64_t width, T* d,
                          int64_t d_stride) {
  Wide<T> total[Q][R];
  for (int q = 0; q < Q; ++q) {
    for (int r = 0; r < R; ++r) total[q][r] = zero<T>();
  }
  for (int64_t c = 0; c < width; c += kWide) {
    const bool whole = c + kWide <= width;
    Wide<T> row[R];
    for (int r = 0; r < R; ++r) {
      const T* p = b + r * b_stride + c;
      row[r] = whole ? load(p) : load_first(p, width - c);
    }
    for (int q = 0; q < Q; ++q) {
      const T* p = a + q * a_stride + c;
      const Wide<T> x = whole ? load(p) : load_first(p, width - c);
      for (int r = 0; r < R; ++r) total[q][r] = mul_add(x, row[r], total[q][r]);
    }
  }
  for (int q = 0; q < Q; ++q) {
    for (int r = 0; r < R; ++r) d[q * d_stride + r] = sum(total[q][r]);
  }
}
template <int Q, class T>
HWY_INLINE void dot_rows(const T* a, int64_t a_stride, Matrix<const T> b, T* d, int64_t d_stride) {
  constexpr int kRows = 4;
  for (int64_t j = 0; j < b.rows; j += kRows) {
    const int64_t last = b.rows - kRows;
    if (last >= 0) {  // the last block makes some products again, the same ones
      const int64_t at = std::min(j, last);
      dot_block<Q, kRows>(a, a_stride, b.row(at), b.stride, b.cols, d + at, d_stride);
    } else {
      for (int64_t r = 0; r < b.rows; ++r) {
        dot_block<Q, 1>(a, a_stride, b.row(r), b.stride, b.cols, d + r, d_stride);
      }
    }
  }
}
// d [a.rows, b.rows] = a b^T, row by row of both.
template <class T>
HWY_INLINE void dot_products(Matrix<const T> a, Matrix<const T> b, T* d, int64_t d_stride) {
  constexpr int kRows = Wide<T>::kVectors == 1 ? 4 : 1;
  int64_t i = 0;
  for (; i + kRows <= a.rows; i += kRows) dot_rows<kRows>(a.row(i), a.stride, b, d + i * d_stride, d_stride);
  for (; i < a.rows; ++i) dot_rows<1>(a.row(i), a.stride, b, d + i * d_stride, d_stride);
}

// de_j = a_j (da_j - sum_k a_k da_k), in place of da: the softmax's Jacobian p_j (delta_jk - p_k). `up` (or
// null) is added to da first.
template <class T>
HWY_INLINE void normalise_backward(const T* a, const T* up, T* da, int64_t n) {
  Wide<T> total = zero<T>();
  for (int64_t c = 0; c < n; c += kWide) {
    Wide<T> x = load_chunk(da + c, n - c);
    if (up) x = x + load_chunk(up + c, n - c);
    store_chunk(x, da + c, n - c);
    total = mul_add(load_chunk(a + c, n - c), x, total);
  }
  const Wide<T> mean = set(sum(total));
  for (int64_t c = 0; c < n; c += kWide) {
    store_chunk(load_chunk(a + c, n - c) * (load_chunk(da + c, n - c) - mean), da + c, n - c);
  }
}

// With g = de v_a (1 - z^2): dquery += g, dkey += g, dv_a += de z, for n of the numbers.
template <class T>
HWY_INLINE void energy_backward_step(const T* query, const T* key, const T* v_a, T de, T* dquery, T* dkey,
                                     T* dv_a, int64_t n) {
  const Wide<T> z = joint(query, key, n);
  const Wide<T> u = set(de) * load_chunk(v_a, n);
  const Wide<T> g = neg_mul_add(u * z, z, u);
  store_chunk(load_chunk(dquery, n) + g, dquery, n);
  store_chunk(load_chunk(dkey, n) + g, dkey, n);
  store_chunk(mul_add(set(de), z, load_chunk(dv_a, n)), dv_a, n);
}
template <class T>
HWY_INLINE void energy_backward(const T* query, const T* key, const T* v_a, T de, T* dquery, T* dkey, T* dv_a,
                                int64_t d_a) {
  int64_t c = 0;
  for (; c + kWide <= d_a; c += kWide) {
    energy_backward_step(query + c, key + c, v_a + c, de, dquery + c, dkey + c, dv_a + c, kWide);
  }
  if (c < d_a) {
    energy_backward_step(query + c, key + c, v_a + c, de, dquery + c, dkey + c, dv_a + c, d_a - c);
  }
}

// All queries of a sequence, whose weights begin at `weights_at`. Adds this sequence's share to dv_a.
template <class T>
void backward_sequence(const AdditiveAttention<T>& in, const AdditiveAttentionGradient<T>& gr,
                       int64_t sequence, int64_t weights_at, T* dv_a) {
  const int64_t first = in.query_offsets.begin(sequence), n_q = in.query_offsets.length(sequence);
  const int64_t source = in.source_offsets.begin(sequence), n = in.source_offsets.length(sequence);
  const int64_t d_a = in.query.cols, stride = round_up(n);
  if (gr.dkeys.data && gr.accumulate_keys == Accumulate::no) set_to_zero(rows(gr.dkeys, source, n));
  if (gr.dh.data && gr.accumulate_h == Accumulate::no) set_to_zero(rows(gr.dh, source, n));
  if (gr.dquery.data && gr.accumulate_query == Accumulate::no) set_to_zero(rows(gr.dquery, first, n_q));
  if (n_q == 0 || n == 0) return;

  const Scratch<T> da(std::min(kTile, n_q) * stride), spare(d_a);
  std::fill_n(spare.data(), d_a, T{0});  // takes the gradients that nobody wants
  for (int64_t i = 0; i < n_q; i += kTile) {
    const int64_t m = std::min(kTile, n_q - i);
    const T* a = gr.weights + weights_at + i * n;
    if (gr.dcontext.data) {
      const Matrix<const T> dc = rows(gr.dcontext, first + i, m);
      dot_products(dc, rows(in.h, source, n), da.data(), stride);  // da_ij = dc_i^T h_j
      if (gr.dh.data) {                                            // dh_j += sum_i a_ij dc_i
        small_product(Strided<T>{a, 1, n}, dc.data, dc.stride, gr.dh.row(source), gr.dh.stride, n, m, dc.cols,
                      true);
      }
    } else {
      std::fill_n(da.data(), m * stride, T{0});
    }
    for (int64_t r = 0; r < m; ++r) {
      const T* up = gr.dweights ? gr.dweights + weights_at + (i + r) * n : nullptr;
      normalise_backward(a + r * n, up, da.data() + r * stride, n);
    }
    for (int64_t r = 0; r < m; ++r) {
      const T* query = in.query.row(first + i + r);
      T* dquery = gr.dquery.data ? gr.dquery.row(first + i + r) : spare.data();
      for (int64_t j = 0; j < n; ++j) {
        T* dkey = gr.dkeys.data ? gr.dkeys.row(source + j) : spare.data();
        energy_backward(query, in.keys.row(source + j), in.v_a, da[r * stride + j], dquery, dkey, dv_a, d_a);
      }
    }
  }
}

template <class T>
void joint_rows(const T* query, Matrix<const T> keys, Matrix<T> z, int64_t begin, int64_t end) {
  for (int64_t j = begin; j < end; ++j) {
    for (int64_t c = 0; c < keys.cols; c += kWide) {
      const int64_t n = keys.cols - c;
      store_chunk(joint(query + c, keys.row(j) + c, n), z.row(j) + c, n);
    }
  }
}

GLOSS_KERNEL(attend);
GLOSS_KERNEL(backward_sequence);
GLOSS_KERNEL(joint_rows);

}  // namespace
}  // namespace gloss::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gloss::kernels {
namespace {
GLOSS_EXPORT(attend);
GLOSS_EXPORT(backward_sequence);
GLOSS_EXPORT(joint_rows);

constexpr int64_t kQueries = 12;  // of a task of the forward pass

// A task of the forward pass: queries [first, first + count) of a sequence, or of the backward pass: all of
// them.
struct Work {
  int64_t sequence, first, count, weights_at;
};
// Sequences without queries are left out unless `all`; at most `most` queries stand together.
template <class T>
std::vector<Work> work_of(const AdditiveAttention<T>& in, int64_t most, bool all) {
  std::vector<Work> work;
  int64_t at = 0;
  for (int64_t s = 0; s < in.query_offsets.count(); ++s) {
    const int64_t n_q = in.query_offsets.length(s), n = in.source_offsets.length(s);
    if (n_q == 0 && all) work.push_back({s, 0, 0, at});
    for (int64_t i = 0; i < n_q; i += most) work.push_back({s, i, std::min(most, n_q - i), at + i * n});
    at += n_q * n;
  }
  return work;
}
}  // namespace

template <class T>
std::vector<int64_t> weight_offsets(const AdditiveAttention<T>& in) {
  std::vector<int64_t> offsets{0};
  offsets.reserve(static_cast<size_t>(in.query_offsets.count()) + 1);
  for (int64_t s = 0; s < in.query_offsets.count(); ++s) {
    offsets.push_back(offsets.back() + in.query_offsets.length(s) * in.source_offsets.length(s));
  }
  return offsets;
}

template <class T>
void additive_attention_forward(ThreadPool& pool, const AdditiveAttention<T>& in, Matrix<T> context,
                                T* scores, T* weights) {
  const std::vector<Work> work = work_of(in, kQueries, false);
  pool.parallel_for(static_cast<int64_t>(work.size()), [&](int64_t task) {
    const Work& w = work[static_cast<size_t>(task)];
    const int64_t query = in.query_offsets.begin(w.sequence) + w.first;
    const int64_t source = in.source_offsets.begin(w.sequence), n = in.source_offsets.length(w.sequence);
    GLOSS_CALL(attend, T)
    (rows(in.query, query, w.count), {rows(in.keys, source, n), rows(in.h, source, n)}, in.v_a,
     rows(context, query, w.count), scores ? scores + w.weights_at : nullptr,
     weights ? weights + w.weights_at : nullptr);
  });
}

template <class T>
void additive_attention_backward(ThreadPool& pool, const AdditiveAttention<T>& in,
                                 const AdditiveAttentionGradient<T>& gradient) {
  const bool all = (gradient.dkeys.data && gradient.accumulate_keys == Accumulate::no) ||
                   (gradient.dh.data && gradient.accumulate_h == Accumulate::no);
  const std::vector<Work> work = work_of(in, std::numeric_limits<int64_t>::max(), all);
  // Sequences that share their part of dv_a: the order of its sum depends on this number, not on threads.
  constexpr int64_t kSequences = 4;
  const auto count = static_cast<int64_t>(work.size());
  const int64_t d_a = in.query.cols, parts = (count + kSequences - 1) / kSequences;
  const Scratch<T> partial(parts * d_a);
  pool.parallel_ranges(count, kSequences, [&](int64_t begin, int64_t end) {
    T* dv_a = partial.data() + begin / kSequences * d_a;
    std::fill_n(dv_a, d_a, T{0});
    for (int64_t task = begin; task < end; ++task) {
      const Work& w = work[static_cast<size_t>(task)];
      GLOSS_CALL(backward_sequence, T)(in, gradient, w.sequence, w.weights_at, dv_a);
    }
  });
  for (int64_t part = 0; gradient.dv_a && part < parts; ++part) {
    for (int64_t c = 0; c < d_a; ++c) gradient.dv_a[c] += partial[part * d_a + c];
  }
}

template <class T>
void additive_attention_step(ThreadPool& pool, Matrix<const T> query,
                             std::span<const RowsOfSource<T>> sources, const T* v_a, Matrix<T> context) {
  pool.parallel_for(query.rows, [&](int64_t i) {
    GLOSS_CALL(attend, T)
    (rows(query, i, 1), sources[static_cast<size_t>(i)], v_a, rows(context, i, 1), nullptr, nullptr);
  });
}

template <class T>
void joint_vectors(ThreadPool& pool, const T* query, Matrix<const T> keys, Matrix<T> z) {
  pool.parallel_ranges(keys.rows, 64, [&](int64_t begin, int64_t end) {
    GLOSS_CALL(joint_rows, T)(query, keys, z, begin, end);
  });
}

template std::vector<int64_t> weight_offsets(const AdditiveAttention<float>&);
template std::vector<int64_t> weight_offsets(const AdditiveAttention<double>&);
template void additive_attention_forward(ThreadPool&, const AdditiveAttention<float>&, Matrix<float>, float*,
                                         float*);
template void additive_attention_forward(ThreadPool&, const AdditiveAttention<double>&, Matrix<double>,
                                         double*, double*);
template void additive_attention_backward(ThreadPool&, const AdditiveAttention<float>&,
                                          const AdditiveAttentionGradient<float>&);
template void additive_attention_backward(ThreadPool&, const AdditiveAttention<double>&,
                                          const AdditiveAttentionGradient<double>&);
template void additive_attention_step(ThreadPool&, Matrix<const float>, std::span<const RowsOfSource<float>>,
                                      const float*, Matrix<float>);
template void additive_attention_step(ThreadPool&, Matrix<const double>,
                                      std::span<const RowsOfSource<double>>, const double*, Matrix<double>);
template void joint_vectors(ThreadPool&, const float*, Matrix<const float>, Matrix<float>);
template void joint_vectors(ThreadPool&, const double*, Matrix<const double>, Matrix<double>);

}  // namespace gloss::kernels
#endif  // HWY_ONCE
