#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "gloss/kernels/attention.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "gloss/kernels/attention.h"
#include "gloss/kernels/dispatch.h"
#include "gloss/kernels/dropout-inl.h"
#include "gloss/kernels/scratch.h"
#include "gloss/kernels/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace gloss::kernels::HWY_NAMESPACE {
namespace {

constexpr int64_t kQueries = 32, kKeys = 128;  // of a tile
constexpr int64_t round_up(int64_t n) {
  return (n + kWide - 1) / kWide * kWide;
}

// One head of one sequence.
template <class T>
struct Head {
  Head(const Attention<T>& attention, int64_t sequence, int64_t which)
      : in(attention),
        first_query(in.query_offsets.begin(sequence)),
        n_q(in.query_offsets.length(sequence)),
        first_key(in.key_offsets.begin(sequence)),
        n_k(in.key_offsets.length(sequence)),
        head(which) {}
  const Attention<T>& in;
  const int64_t first_query, n_q, first_key, n_k, head;

  const T* query(int64_t i) const { return in.query.row(first_query + i) + head * in.d_k; }
  const T* key(int64_t j) const { return in.key.row(first_key + j) + head * in.d_k; }
  const T* value(int64_t j) const { return in.value.row(first_key + j) + head * in.d_v; }
  // How many of the keys [0, n_k) query i may look at.
  int64_t visible(int64_t i) const {
    return in.visible ? std::clamp<int64_t>(in.visible[first_query + i], 0, n_k) : n_k;
  }
  // What is added to the scores of query i, key by key; null: nothing.
  const T* bias(int64_t i) const {
    const Matrix<const T>& m = in.bias.by_distance;
    return m.data ? m.row(head) + (in.bias.zero - in.first_query - i) : nullptr;
  }
  // The high half names the row of weights, well mixed; the low half the key.
  uint64_t dropout_index(int64_t i, int64_t j) const {
    auto row = static_cast<uint32_t>((first_query + i) * in.heads + head) * 0x9E3779B1u;
    row = (row ^ (row >> 15)) * 0x85EBCA77u;
    return static_cast<uint64_t>(row ^ (row >> 13)) << 32 | static_cast<uint64_t>(j);
  }
};

// s [m, stride] = scaled and biased scores of queries i.. against the transposed keys of a tile; hidden ones
// -infinity.
template <class T>
HWY_INLINE void score_tile(const Head<T>& h, int64_t i, int64_t m, const T* transposed, int64_t j, int64_t n,
                           T* s, int64_t stride) {
  small_product(Strided<T>{h.query(i), h.in.query.stride, 1}, transposed, stride, s, stride, m, h.in.d_k,
                stride, false);
  for (int64_t r = 0; r < m; ++r) {
    T* row = s + r * stride;
    const int64_t live = std::clamp<int64_t>(h.visible(i + r) - j, 0, n);
    const T* bias = h.bias(i + r);
    for (int64_t c = 0; c < stride; c += kWide) {
      Wide<T> x = load(row + c) * set(h.in.scale);
      if (bias) x = x + load_chunk(bias + j + c, n - c);
      store(live - c >= kWide
                ? x
                : keep_first(x, std::max<int64_t>(live - c, 0), -std::numeric_limits<T>::infinity()),
            row + c);
    }
  }
}

// out [m rows] += p [m, stride] v, where row r adds only its first live(r) keys: a hidden value is never
// read.
template <class T, class Live>
HWY_INLINE void add_weighted_rows(const T* p, int64_t stride, int64_t m, const T* rows, int64_t row_stride,
                                  T* out, int64_t out_stride, int64_t width, Live live) {
  for (int64_t r = 0; r < m;) {
    int64_t same = 1;
    while (r + same < m && live(r + same) == live(r)) ++same;
    small_product(Strided<T>{p + r * stride, stride, 1}, rows, row_stride, out + r * out_stride, out_stride,
                  same, live(r), width, true);
    r += same;
  }
}

template <class T>
HWY_INLINE void apply_dropout(const Head<T>& h, int64_t i, int64_t m, int64_t j, int64_t n, T* p,
                              int64_t stride) {
  for (int64_t r = 0; r < m; ++r) {
    for (int64_t c = 0; c < n; c += kWide) {
      T* at = p + r * stride + c;
      store(load(at) * dropout_factors(h.in.dropout, h.dropout_index(i + r, j + c), T{}), at);
    }
  }
}

// Of a row's sum: 0 when it saw nothing, NaN when it saw NaN.
template <class T>
T inverse_sum(T sum) {
  return sum == 0 ? T{0} : T{1} / sum;
}

template <class T>
void forward_head(const Attention<T>& in, int64_t sequence, int64_t head, Matrix<T> output, T* statistics,
                  T* scores, T* weights) {
  const Head<T> h(in, sequence, head);
  const T infinity = std::numeric_limits<T>::infinity();
  const int64_t widest = round_up(std::min(kKeys, h.n_k));
  const int64_t tiles = (h.n_k + kKeys - 1) / kKeys;
  // Short sequences keep their one tile of transposed keys for all queries.
  const Scratch<T> transposed(in.d_k * widest), s(kQueries * widest), sum_of(kQueries), top_of(kQueries);
  if (tiles == 1) transpose(h.key(0), in.key.stride, h.n_k, in.d_k, transposed.data(), widest);
  for (int64_t i = 0; i < h.n_q; i += kQueries) {
    const int64_t m = std::min(kQueries, h.n_q - i);
    T* out = output.row(h.first_query + i) + h.head * in.d_v;
    for (int64_t r = 0; r < m; ++r) {
      std::fill_n(out + r * output.stride, in.d_v, T{0});
      top_of[r] = -infinity;
      sum_of[r] = 0;
    }
    for (int64_t j = 0; j < h.n_k; j += kKeys) {
      const int64_t n = std::min(kKeys, h.n_k - j), stride = round_up(n);
      if (tiles > 1) transpose(h.key(j), in.key.stride, n, in.d_k, transposed.data(), stride);
      score_tile(h, i, m, transposed.data(), j, n, s.data(), stride);
      for (int64_t r = 0; r < m; ++r) {
        T* row = s.data() + r * stride;
        if (scores) std::copy_n(row, n, scores + (i + r) * h.n_k + j);
        if (h.visible(i + r) <= j) continue;  // sees nothing of this tile: its weights here are not read
        Wide<T> most = set(-infinity);
        for (int64_t c = 0; c < stride; c += kWide) most = max(most, load(row + c));
        const T top = std::max(largest(most), top_of[r]);
        Wide<T> total = zero<T>();
        for (int64_t c = 0; c < stride; c += kWide) {
          const Wide<T> p = exp(load(row + c) - set(top));
          store(p, row + c);
          total = total + p;
        }
        if (j > 0 && top != top_of[r]) {  // a larger score came up: rescale what was summed
          const T factor = std::exp(top_of[r] - top);
          sum_of[r] *= factor;
          for (int64_t c = 0; c < in.d_v; ++c) out[r * output.stride + c] *= factor;
        }
        top_of[r] = top;
        sum_of[r] += sum(total);
      }
      if (in.dropout.active()) apply_dropout(h, i, m, j, n, s.data(), stride);
      add_weighted_rows(s.data(), stride, m, h.value(j), in.value.stride, out, output.stride, in.d_v,
                        [&](int64_t r) { return std::clamp<int64_t>(h.visible(i + r) - j, 0, n); });
    }
    for (int64_t r = 0; r < m; ++r) {
      const T inverse = inverse_sum(sum_of[r]);
      for (int64_t c = 0; c < in.d_v; c += kWide) {
        T* at = out + r * output.stride + c;
        store_chunk(load_chunk(at, in.d_v - c) * set(inverse), at, in.d_v - c);
      }
      if (statistics) {
        T* pair = statistics + ((h.first_query + i + r) * in.heads + h.head) * 2;
        pair[0] = top_of[r];
        pair[1] = inverse;
      }
    }
    if (!weights) continue;
    for (int64_t j = 0; j < h.n_k; j += kKeys) {
      const int64_t n = std::min(kKeys, h.n_k - j), stride = round_up(n);
      if (tiles > 1) transpose(h.key(j), in.key.stride, n, in.d_k, transposed.data(), stride);
      score_tile(h, i, m, transposed.data(), j, n, s.data(), stride);
      for (int64_t r = 0; r < m; ++r) {
        const T top = top_of[r] == -infinity ? T{0} : top_of[r];
        const T inverse = inverse_sum(sum_of[r]);
        for (int64_t c = 0; c < n; c += kWide) {
          store_chunk(exp(load(s.data() + r * stride + c) - set(top)) * set(inverse),
                      weights + (i + r) * h.n_k + j + c, n - c);
        }
      }
    }
  }
}

// With P the weights, D_i = sum_j P_ij dP_ij and dP = dO V^T (times the dropout factors) + dW:
// dS = P (dP - D); dQ = scale dS K, dK = scale dS^T Q, dV = (dropped P)^T dO. dS is the gradient of the bias
// too: `dbias` [n_q + n_k - 1 and slack], zeros so far, receives its sums over equal distances, that of the
// last query to the first key first.
template <class T>
void backward_head(const Attention<T>& in, int64_t sequence, int64_t head, const AttentionGradient<T>& gr,
                   const T* dweights, T* dbias) {
  const Head<T> h(in, sequence, head);
  const int64_t widest = round_up(std::min(kKeys, h.n_k));
  const Scratch<T> keys(in.d_k * widest), values(in.d_v * widest), p(kQueries * widest),
      dp(kQueries * widest);
  const Scratch<T> delta(std::max<int64_t>(h.n_q, 1));
  const int64_t q_column = h.head * in.d_k, v_column = h.head * in.d_v;
  const bool up = gr.doutput.data != nullptr;

  // P of a tile from the saved statistics.
  const auto weights_tile = [&](int64_t i, int64_t m, int64_t j, int64_t n, int64_t stride) {
    score_tile(h, i, m, keys.data(), j, n, p.data(), stride);
    for (int64_t r = 0; r < m; ++r) {
      const T* pair = gr.statistics + ((h.first_query + i + r) * in.heads + h.head) * 2;
      const T top = pair[1] == 0 ? T{0} : pair[0];
      for (int64_t c = 0; c < stride; c += kWide) {
        store(exp(load(p.data() + r * stride + c) - set(top)) * set(pair[1]), p.data() + r * stride + c);
      }
    }
  };

  for (int64_t i = 0; i < h.n_q; ++i) {
    delta[i] = 0;
    if (!up) continue;
    const T* o = gr.output.row(h.first_query + i) + v_column;
    const T* d = gr.doutput.row(h.first_query + i) + v_column;
    Wide<T> total = zero<T>();
    for (int64_t c = 0; c < in.d_v; c += kWide) {
      total = mul_add(keep_first(load_chunk(o + c, in.d_v - c), in.d_v - c), load_chunk(d + c, in.d_v - c),
                      total);
    }
    delta[i] = sum(total);
  }
  for (int64_t i = 0; i < h.n_q && gr.accumulate_query == Accumulate::no; ++i) {
    std::fill_n(gr.dquery.row(h.first_query + i) + q_column, in.d_k, T{0});
  }
  for (int64_t j = 0; j < h.n_k; ++j) {
    if (gr.accumulate_key == Accumulate::no)
      std::fill_n(gr.dkey.row(h.first_key + j) + q_column, in.d_k, T{0});
    if (gr.accumulate_value == Accumulate::no)
      std::fill_n(gr.dvalue.row(h.first_key + j) + v_column, in.d_v, T{0});
  }
  if (dweights) {  // D gets its second part before any tile is differentiated
    for (int64_t j = 0; j < h.n_k; j += kKeys) {
      const int64_t n = std::min(kKeys, h.n_k - j), stride = round_up(n);
      transpose(h.key(j), in.key.stride, n, in.d_k, keys.data(), stride);
      for (int64_t i = 0; i < h.n_q; i += kQueries) {
        const int64_t m = std::min(kQueries, h.n_q - i);
        weights_tile(i, m, j, n, stride);
        for (int64_t r = 0; r < m; ++r) {
          for (int64_t c = 0; c < std::min(n, h.visible(i + r) - j); ++c) {
            delta[i + r] += p[r * stride + c] * dweights[(i + r) * h.n_k + j + c];
          }
        }
      }
    }
  }

  for (int64_t j = 0; j < h.n_k; j += kKeys) {
    const int64_t n = std::min(kKeys, h.n_k - j), stride = round_up(n);
    transpose(h.key(j), in.key.stride, n, in.d_k, keys.data(), stride);
    if (up) transpose(h.value(j), in.value.stride, n, in.d_v, values.data(), stride);
    for (int64_t i = 0; i < h.n_q; i += kQueries) {
      const int64_t m = std::min(kQueries, h.n_q - i);
      const auto live = [&](int64_t r) { return std::clamp<int64_t>(h.visible(i + r) - j, 0, n); };
      weights_tile(i, m, j, n, stride);
      const T* d = up ? gr.doutput.row(h.first_query + i) + v_column : nullptr;
      if (up) {
        small_product(Strided<T>{d, gr.doutput.stride, 1}, values.data(), stride, dp.data(), stride, m,
                      in.d_v, stride, false);
      }
      // dp becomes dS; p becomes the dropped weights.
      for (int64_t r = 0; r < m; ++r) {
        for (int64_t c = 0; c < stride; c += kWide) {
          T* at_p = p.data() + r * stride + c;
          T* at_dp = dp.data() + r * stride + c;
          Wide<T> w = load(at_p), dw = up ? load(at_dp) : zero<T>();
          if (in.dropout.active()) {
            const Wide<T> factors = dropout_factors(in.dropout, h.dropout_index(i + r, j + c), T{});
            dw = dw * factors;
            store(w * factors, at_p);
          }
          if (dweights && c < n) dw = dw + load_chunk(dweights + (i + r) * h.n_k + j + c, n - c);
          const int64_t seen = std::max<int64_t>(live(r) - c, 0);
          Wide<T> ds = w * (dw - set(delta[i + r]));
          if (seen < kWide) ds = keep_first(ds, seen);
          if (dbias) {
            T* at = dbias + (h.n_q - 1 - i - r) + j + c;
            store(load(at) + ds, at);
          }
          store(ds * set(in.scale), at_dp);
        }
      }
      // Queries that see none of these keys are left out: what they hold is not read.
      for (int64_t r = 0; r < m;) {
        int64_t count = 0;
        while (r + count < m && live(r + count) > 0) ++count;
        if (count == 0) {
          ++r;
          continue;
        }
        if (up) {
          small_product(Strided<T>{p.data() + r * stride, 1, stride}, d + r * gr.doutput.stride,
                        gr.doutput.stride, gr.dvalue.row(h.first_key + j) + v_column, gr.dvalue.stride, n,
                        count, in.d_v, true);
        }
        small_product(Strided<T>{dp.data() + r * stride, 1, stride}, h.query(i + r), in.query.stride,
                      gr.dkey.row(h.first_key + j) + q_column, gr.dkey.stride, n, count, in.d_k, true);
        r += count;
      }
      add_weighted_rows(dp.data(), stride, m, h.key(j), in.key.stride,
                        gr.dquery.row(h.first_query + i) + q_column, gr.dquery.stride, in.d_k, live);
    }
  }
}

GLOSS_KERNEL(forward_head);
GLOSS_KERNEL(backward_head);

}  // namespace
}  // namespace gloss::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gloss::kernels {
namespace {
GLOSS_EXPORT(forward_head);
GLOSS_EXPORT(backward_head);

// Where the weights [n_q, n_k] of one head of a sequence begin.
template <class T>
int64_t weights_at(const Attention<T>& in, const std::vector<int64_t>& offsets, int64_t sequence,
                   int64_t head) {
  return offsets[static_cast<size_t>(sequence)] +
         head * in.query_offsets.length(sequence) * in.key_offsets.length(sequence);
}

// Room for the gradient of the bias from one head of one sequence. Vectors reach past the last distance and
// add zeros there.
constexpr int64_t kSlack = 16;
static_assert(kSlack >= HWY_NAMESPACE::kWide);
template <class T>
int64_t distances(const Attention<T>& in, int64_t sequence) {
  return in.query_offsets.length(sequence) + in.key_offsets.length(sequence) + kSlack;
}

// Adds up what the sequences have to say, `parts` [sequence: heads, distances], in their order.
template <class T>
void reduce_bias(ThreadPool& pool, const Attention<T>& in, const AttentionGradient<T>& gradient,
                 const T* parts) {
  pool.parallel_for(in.heads, [&](int64_t head) {
    T* total = gradient.dbias.row(head);
    if (gradient.accumulate_bias == Accumulate::no) std::fill_n(total, gradient.dbias.cols, T{0});
    const T* part = parts;
    for (int64_t s = 0; s < in.query_offsets.count(); ++s) {
      const int64_t n_q = in.query_offsets.length(s), n_k = in.key_offsets.length(s);
      const T* own = part + head * distances(in, s);
      part += in.heads * distances(in, s);
      if (n_q == 0 || n_k == 0) continue;
      T* first = total + (in.bias.zero - in.first_query - (n_q - 1));
      for (int64_t d = 0; d < n_q + n_k - 1; ++d) first[d] += own[d];
    }
  });
}

// Calls run(sequence, head) for all of them.
template <class T, class Run>
void each_head(ThreadPool& pool, const Attention<T>& in, Run run) {
  pool.parallel_for(in.query_offsets.count() * in.heads,
                    [&](int64_t task) { run(task / in.heads, task % in.heads); });
}
}  // namespace

template <class T>
std::vector<int64_t> weight_offsets(const Attention<T>& in) {
  std::vector<int64_t> offsets{0};
  for (int64_t s = 0; s < in.query_offsets.count(); ++s) {
    offsets.push_back(offsets.back() + in.heads * in.query_offsets.length(s) * in.key_offsets.length(s));
  }
  return offsets;
}

template <class T>
void attention_forward(ThreadPool& pool, const Attention<T>& in, Matrix<T> output, T* statistics, T* scores,
                       T* weights) {
  const std::vector<int64_t> offsets = scores || weights ? weight_offsets(in) : std::vector<int64_t>();
  each_head(pool, in, [&](int64_t sequence, int64_t head) {
    const int64_t at = offsets.empty() ? 0 : weights_at(in, offsets, sequence, head);
    GLOSS_CALL(forward_head, T)
    (in, sequence, head, output, statistics, scores ? scores + at : nullptr,
     weights ? weights + at : nullptr);
  });
}

template <class T>
void attention_backward(ThreadPool& pool, const Attention<T>& in, const AttentionGradient<T>& gradient) {
  const std::vector<int64_t> offsets = gradient.dweights ? weight_offsets(in) : std::vector<int64_t>();
  const auto run = [&](int64_t sequence, int64_t head, T* dbias) {
    const T* dweights =
        offsets.empty() ? nullptr : gradient.dweights + weights_at(in, offsets, sequence, head);
    GLOSS_CALL(backward_head, T)(in, sequence, head, gradient, dweights, dbias);
  };
  if (!gradient.dbias.data) {
    each_head(pool, in, [&](int64_t sequence, int64_t head) { run(sequence, head, nullptr); });
    return;
  }
  // Sequences share the bias: each head of each fills sums of its own, so that no order depends on threads.
  std::vector<int64_t> starts{0};
  for (int64_t s = 0; s < in.query_offsets.count(); ++s)
    starts.push_back(starts.back() + in.heads * distances(in, s));
  const Scratch<T> parts(starts.back());
  std::fill_n(parts.data(), starts.back(), T{0});
  each_head(pool, in, [&](int64_t sequence, int64_t head) {
    run(sequence, head,
        parts.data() + starts[static_cast<size_t>(sequence)] + head * distances(in, sequence));
  });
  reduce_bias(pool, in, gradient, parts.data());
}

template std::vector<int64_t> weight_offsets(const Attention<float>&);
template std::vector<int64_t> weight_offsets(const Attention<double>&);
template void attention_forward(ThreadPool&, const Attention<float>&, Matrix<float>, float*, float*, float*);
template void attention_forward(ThreadPool&, const Attention<double>&, Matrix<double>, double*, double*,
                                double*);
template void attention_backward(ThreadPool&, const Attention<float>&, const AttentionGradient<float>&);
template void attention_backward(ThreadPool&, const Attention<double>&, const AttentionGradient<double>&);

}  // namespace gloss::kernels
#endif  // HWY_ONCE
