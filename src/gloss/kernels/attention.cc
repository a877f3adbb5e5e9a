#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "gloss/kernels/attention.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <limits>
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

GLOSS_KERNEL(forward_head);

}  // namespace
}  // namespace gloss::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gloss::kernels {
namespace {
GLOSS_EXPORT(forward_head);
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

template std::vector<int64_t> weight_offsets(const Attention<float>&);
template std::vector<int64_t> weight_offsets(const Attention<double>&);
template void attention_forward(ThreadPool&, const Attention<float>&, Matrix<float>, float*, float*, float*);
template void attention_forward(ThreadPool&, const Attention<double>&, Matrix<double>, double*, double*,
                                double*);

}  // namespace gloss::kernels
#endif  // HWY_ONCE
