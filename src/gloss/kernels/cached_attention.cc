#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "gloss/kernels/cached_attention.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <limits>

#include "gloss/kernels/attention.h"
#include "gloss/kernels/dispatch.h"
#include "gloss/kernels/scratch.h"
#include "gloss/kernels/wide-inl.h"

HWY_BEFORE_NAMESPACE();
namespace gloss::kernels::HWY_NAMESPACE {
namespace {

// out = inverse * sum_t w[t] value_t, columns c .. c + 16 C of head h. Several chunks at once, because each
// is one long chain of additions.
template <int C, class T>
HWY_INLINE void mix_values(const CachedAttention<T>& in, const CachedRows<T>& rows, int64_t h, int64_t c,
                           const T* w, T inverse, T* out) {
  Wide<T> mixed[C];
  for (Wide<T>& chunk : mixed) chunk = zero<T>();
  const int64_t width = in.d_v - c;
  for (int64_t t = 0; t < rows.count; ++t) {
    const T* value = rows.value + (rows.index ? rows.index[t] : t) * in.value_stride + h * in.d_v + c;
    const Wide<T> weight = set(w[t]);
    for (int i = 0; i < C; ++i)
      mixed[i] = mul_add(weight, load_chunk(value + i * kWide, width - i * kWide), mixed[i]);
  }
  for (int i = 0; i < C; ++i) store_chunk(mixed[i] * set(inverse), out + i * kWide, width - i * kWide);
}

template <class T>
void attend_row(const CachedAttention<T>& in, int64_t i, T* out) {
  const T* query = in.query.row(i);
  const CachedRows<T>& rows = in.rows[static_cast<size_t>(i)];
  const int64_t n = rows.count, stride = (n + kWide - 1) / kWide * kWide;
  std::fill_n(out, in.heads * in.d_v, T{0});
  if (n == 0) return;
  const Scratch<T> weights(in.heads * stride), scaled(in.heads * in.d_k + kWide);
  for (int64_t c = 0; c < in.heads * in.d_k; ++c) scaled[c] = query[c] * in.scale;
  // Each key row is read once, for all heads.
  for (int64_t t = 0; t < n; ++t) {
    const T* key = rows.key + (rows.index ? rows.index[t] : t) * in.key_stride;
    for (int64_t h = 0; h < in.heads; ++h) {
      const T *q = scaled.data() + h * in.d_k, *k = key + h * in.d_k;
      Wide<T> dot = zero<T>();
      for (int64_t c = 0; c < in.d_k; c += kWide) {
        dot = mul_add(load_chunk(q + c, in.d_k - c), load_chunk(k + c, in.d_k - c), dot);
      }
      weights[h * stride + t] = sum(dot);
    }
  }
  for (int64_t h = 0; h < in.heads; ++h) {
    T* w = weights.data() + h * stride;
    if (in.bias.by_distance.data) {
      const T* bias = in.bias.by_distance.row(h) + (in.bias.zero - (n - 1));
      for (int64_t t = 0; t < n; ++t) w[t] += bias[t];
    }
    std::fill(w + n, w + stride, -std::numeric_limits<T>::infinity());
    Wide<T> most = load(w);
    for (int64_t t = kWide; t < stride; t += kWide) most = max(most, load(w + t));
    const Wide<T> top = set(largest(most));
    Wide<T> total = zero<T>();
    for (int64_t t = 0; t < stride; t += kWide) {
      const Wide<T> p = exp(load(w + t) - top);
      store(p, w + t);
      total = total + p;
    }
    const T inverse = T{1} / sum(total);
    T* o = out + h * in.d_v;
    int64_t c = 0;
    for (; c + 2 * kWide <= in.d_v; c += 2 * kWide) mix_values<2>(in, rows, h, c, w, inverse, o + c);
    for (; c < in.d_v; c += kWide) mix_values<1>(in, rows, h, c, w, inverse, o + c);
  }
}

GLOSS_KERNEL(attend_row);

}  // namespace
}  // namespace gloss::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gloss::kernels {
namespace {
GLOSS_EXPORT(attend_row);
}  // namespace

template <class T>
void cached_attention(ThreadPool& pool, const CachedAttention<T>& in, Matrix<T> output) {
  pool.parallel_ranges(in.query.rows, 16, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      GLOSS_CALL(attend_row, T)(in, i, output.row(i));
    }
  });
}

template void cached_attention(ThreadPool&, const CachedAttention<float>&, Matrix<float>);
template void cached_attention(ThreadPool&, const CachedAttention<double>&, Matrix<double>);

}  // namespace gloss::kernels
#endif  // HWY_ONCE
