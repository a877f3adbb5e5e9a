#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "gloss/kernels/attention_backward.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <vector>

#include "gloss/kernels/attention-inl.h"
#include "gloss/kernels/attention.h"
#include "gloss/kernels/attention_heads.h"
#include "gloss/kernels/dispatch.h"
#include "gloss/kernels/dropout-inl.h"
#include "gloss/kernels/scratch.h"

HWY_BEFORE_NAMESPACE();
namespace gloss::kernels::HWY_NAMESPACE {
namespace {

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

GLOSS_KERNEL(backward_head);

}  // namespace
}  // namespace gloss::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gloss::kernels {
namespace {
GLOSS_EXPORT(backward_head);

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
}  // namespace

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

template void attention_backward(ThreadPool&, const Attention<float>&, const AttentionGradient<float>&);
template void attention_backward(ThreadPool&, const Attention<double>&, const AttentionGradient<double>&);

}  // namespace gloss::kernels
#endif  // HWY_ONCE
