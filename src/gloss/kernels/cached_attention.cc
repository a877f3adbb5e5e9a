#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "gloss/kernels/cached_attention.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <limits>
#include <type_traits>

#include "gloss/kernels/attention.h"
#include "gloss/kernels/bfloat16-inl.h"
#include "gloss/kernels/dispatch.h"
#include "gloss/kernels/scratch.h"

HWY_BEFORE_NAMESPACE();
namespace gloss::kernels::HWY_NAMESPACE {
namespace {

// Row t of what a hypothesis looks at.
template <class Stored>
HWY_INLINE const Stored* row_of(const CachedRows<Stored>& of, const Stored* rows, int64_t column,
                                int64_t stride, int64_t t) {
  const int64_t row = of.index ? of.index[t] : t;
  if (!of.pages) return rows + row * stride;
  return of.pages[row / kCachePage] + row % kCachePage * stride + column;
}
template <class Stored>
HWY_INLINE const Stored* key_of(const CachedAttention<Stored>& in, const CachedRows<Stored>& of, int64_t t) {
  return row_of(of, of.key, 0, in.key_stride, t);
}
template <class Stored>
HWY_INLINE const Stored* value_of(const CachedAttention<Stored>& in, const CachedRows<Stored>& of,
                                  int64_t t) {
  return row_of(of, of.value, of.value_column, in.value_stride, t);
}

// scores[h * stride + i] = q_h k_{t+i,h} for sixteen keys; those that are missing repeat the last one, so
// that nothing branches. kChunks sixteens make up d_k; 0: as many as it takes.
template <int kChunks, class Stored, class T>
HWY_INLINE void score_keys(const CachedAttention<Stored>& in, const CachedRows<Stored>& rows, const T* query,
                           int64_t t, T* scores, int64_t stride) {
  const Stored* keys[kWide];
  for (int64_t i = 0; i < kWide; ++i) keys[i] = key_of(in, rows, std::min(t + i, rows.count - 1));
  for (int64_t h = 0; h < in.heads; ++h) {
    const T* q = query + h * in.d_k;
    Wide<T> dots[kWide];
    if constexpr (kChunks > 0) {
      Wide<T> chunks[kChunks];
      for (int c = 0; c < kChunks; ++c) chunks[c] = load(q + c * kWide);
#pragma GCC unroll 16
      for (int i = 0; i < kWide; ++i) {
        const Stored* k = keys[i] + h * in.d_k;
        dots[i] = zero<T>();
#pragma GCC unroll 4
        for (int c = 0; c < kChunks; ++c) dots[i] = mul_add(chunks[c], load(k + c * kWide), dots[i]);
      }
    } else {
      for (int i = 0; i < kWide; ++i) {
        const Stored* k = keys[i] + h * in.d_k;
        dots[i] = zero<T>();
        for (int64_t c = 0; c < in.d_k; c += kWide)
          dots[i] = mul_add(load_chunk(q + c, in.d_k - c), load_chunk(k + c, in.d_k - c), dots[i]);
      }
    }
    store(sums(dots), scores + h * stride);
  }
}

// out = sum_t w[t] value_t, `chunks` sixteens from column c on, each scaled by its head's inverse. Many at
// once, because each is one long chain of additions.
template <int kChunks, class Stored, class T>
HWY_INLINE void mix_chunks(const CachedAttention<Stored>& in, const CachedRows<Stored>& rows, int64_t c,
                           const T* weights, int64_t stride, const T* inverse, T* out) {
  Wide<T> mixed[kChunks];
  const T* w[kChunks];
  for (int i = 0; i < kChunks; ++i) {
    mixed[i] = zero<T>();
    w[i] = weights + (c + i * kWide) / in.d_v * stride;
  }
  for (int64_t t = 0; t < rows.count; ++t) {
    const Stored* value = value_of(in, rows, t) + c;
    for (int i = 0; i < kChunks; ++i) mixed[i] = mul_add(set(w[i][t]), load(value + i * kWide), mixed[i]);
  }
  for (int i = 0; i < kChunks; ++i)
    store(mixed[i] * set(inverse[(c + i * kWide) / in.d_v]), out + c + i * kWide);
}

// The same for a head whose width is no multiple of sixteen.
template <class Stored, class T>
HWY_INLINE void mix_head(const CachedAttention<Stored>& in, const CachedRows<Stored>& rows, int64_t h,
                         const T* w, T inverse, T* out) {
  for (int64_t c = 0; c < in.d_v; c += kWide) {
    const int64_t width = in.d_v - c, column = h * in.d_v + c;
    Wide<T> mixed = zero<T>();
    for (int64_t t = 0; t < rows.count; ++t) {
      const Stored* value = value_of(in, rows, t) + column;
      mixed = mul_add(set(w[t]), load_chunk(value, width), mixed);
    }
    store_chunk(mixed * set(inverse), out + column, width);
  }
}

// scores -> e^(score - largest), for n of them; returns 1 / their sum. The row is padded to whole sixteens.
template <class T>
HWY_INLINE T normalise(T* w, int64_t n) {
  const int64_t stride = (n + kWide - 1) / kWide * kWide;
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
  return T{1} / sum(total);
}

template <class Stored>
void attend_row(const CachedAttention<Stored>& in, int64_t i, Widened<Stored>* out) {
  using T = Widened<Stored>;
  const T* query = in.query.row(i);
  const CachedRows<Stored>& rows = in.rows[static_cast<size_t>(i)];
  const int64_t n = rows.count, stride = (n + kWide - 1) / kWide * kWide, width = in.heads * in.d_v;
  if (n == 0) {
    std::fill_n(out, width, T{0});
    return;
  }
  const Scratch<T> weights(in.heads * stride), scaled(in.heads * in.d_k + kWide), inverse(in.heads);
  for (int64_t c = 0; c < in.heads * in.d_k; ++c) scaled[c] = query[c] * in.scale;
  // Each key row is read once, for all heads.
  for (int64_t t = 0; t < n; t += kWide) {
    T* scores = weights.data() + t;
    if (in.d_k == 2 * kWide) {
      score_keys<2>(in, rows, scaled.data(), t, scores, stride);
    } else if (in.d_k == 4 * kWide) {
      score_keys<4>(in, rows, scaled.data(), t, scores, stride);
    } else {
      score_keys<0>(in, rows, scaled.data(), t, scores, stride);
    }
  }
  for (int64_t h = 0; h < in.heads; ++h) {
    T* w = weights.data() + h * stride;
    if (in.bias.by_distance.data) {
      const T* bias = in.bias.by_distance.row(h) + (in.bias.zero - (n - 1));
      for (int64_t t = 0; t < n; ++t) w[t] += bias[t];
    }
    inverse[h] = normalise(w, n);
  }
  if (in.d_v % kWide != 0) {
    for (int64_t h = 0; h < in.heads; ++h)
      mix_head(in, rows, h, weights.data() + h * stride, inverse[h], out);
    return;
  }
  int64_t c = 0;
  for (; c + 8 * kWide <= width; c += 8 * kWide)
    mix_chunks<8>(in, rows, c, weights.data(), stride, inverse.data(), out);
  for (; c + 2 * kWide <= width; c += 2 * kWide)
    mix_chunks<2>(in, rows, c, weights.data(), stride, inverse.data(), out);
  for (; c < width; c += kWide) mix_chunks<1>(in, rows, c, weights.data(), stride, inverse.data(), out);
}

GLOSS_KERNEL(attend_row);
constexpr auto& attend_row_bfloat16 = attend_row<Bfloat16>;

}  // namespace
}  // namespace gloss::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gloss::kernels {
namespace {
GLOSS_EXPORT(attend_row);
HWY_EXPORT(attend_row_bfloat16);

// The form of attend_row on this CPU.
template <class Stored>
auto attend_row_for() {
  if constexpr (std::is_same_v<Stored, Bfloat16>) {
    return &HWY_DYNAMIC_DISPATCH(attend_row_bfloat16);
  } else {
    return GLOSS_CALL(attend_row, Stored);
  }
}
}  // namespace

template <class Stored>
void cached_attention(ThreadPool& pool, const CachedAttention<Stored>& in, Matrix<Widened<Stored>> output) {
  pool.parallel_ranges(in.query.rows, 16, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) attend_row_for<Stored>()(in, i, output.row(i));
  });
}

template void cached_attention(ThreadPool&, const CachedAttention<float>&, Matrix<float>);
template void cached_attention(ThreadPool&, const CachedAttention<double>&, Matrix<double>);
template void cached_attention(ThreadPool&, const CachedAttention<Bfloat16>&, Matrix<float>);

}  // namespace gloss::kernels
#endif  // HWY_ONCE
