// Layer normalisation of one row, forward and backward. Per-target include, as wide-inl.h.
#include "gloss/kernels/wide-inl.h"

#if defined(GLOSS_KERNELS_LAYER_NORM_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef GLOSS_KERNELS_LAYER_NORM_INL_H_
#undef GLOSS_KERNELS_LAYER_NORM_INL_H_
#else
#define GLOSS_KERNELS_LAYER_NORM_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace gloss::kernels::HWY_NAMESPACE {

template <class T>
struct RowStatistics {
  T mean, inverse;  // inverse: 1 / deviation
};

// y [d] = gamma (x - mean) / sqrt(variance + epsilon) + beta. `total` holds the sum of x in sixteen parts; y
// may be x.
template <class T>
HWY_INLINE RowStatistics<T> normalise_row(const T* x, int64_t d, const Wide<T>& total, const T* gamma,
                                          const T* beta, T epsilon, T* y) {
  const T mean = sum(total) / static_cast<T>(d);
  Wide<T> squares = zero<T>();
  for (int64_t c = 0; c < d; c += kWide) {
    const Wide<T> centred = load_chunk(x + c, d - c, mean) - set(mean);
    squares = mul_add(centred, centred, squares);
  }
  const T inverse = T{1} / std::sqrt(sum(squares) / static_cast<T>(d) + epsilon);
  for (int64_t c = 0; c < d; c += kWide) {
    const Wide<T> normal = (load_chunk(x + c, d - c) - set(mean)) * set(inverse);
    store_chunk(mul_add(normal, load_chunk(gamma + c, d - c), load_chunk(beta + c, d - c)), y + c, d - c);
  }
  return {mean, inverse};
}
template <class T>
HWY_INLINE RowStatistics<T> normalise_row(const T* x, int64_t d, const T* gamma, const T* beta, T epsilon,
                                          T* y) {
  Wide<T> total = zero<T>();
  for (int64_t c = 0; c < d; c += kWide) total = total + load_chunk(x + c, d - c);
  return normalise_row(x, d, total, gamma, beta, epsilon, y);
}

// dx = inverse (g - mean(g) - normal mean(g normal)) with g = dy gamma. Calls each(c, n, dy, normal) for
// chunks of n numbers, then write(c, n, dx) for the same chunks: dx may take the place of dy.
template <class T, class Each, class Write>
HWY_INLINE void normalise_row_backward(const T* dy, const T* x, RowStatistics<T> statistics, int64_t d,
                                       const T* gamma, Each each_chunk, Write write) {
  const Wide<T> mean = set(statistics.mean), inverse = set(statistics.inverse);
  Wide<T> sum_g = zero<T>(), sum_gn = zero<T>();
  for (int64_t c = 0; c < d; c += kWide) {
    const int64_t n = d - c;
    const Wide<T> up = load_chunk(dy + c, n);
    const Wide<T> normal = (load_chunk(x + c, n, statistics.mean) - mean) * inverse;
    const Wide<T> g = up * load_chunk(gamma + c, n);
    sum_g = sum_g + g;
    sum_gn = mul_add(g, normal, sum_gn);
    each_chunk(c, n, up, normal);
  }
  const Wide<T> mean_g = set(sum(sum_g) / static_cast<T>(d)), mean_gn = set(sum(sum_gn) / static_cast<T>(d));
  for (int64_t c = 0; c < d; c += kWide) {
    const int64_t n = d - c;
    const Wide<T> normal = (load_chunk(x + c, n) - mean) * inverse;
    const Wide<T> g = load_chunk(dy + c, n) * load_chunk(gamma + c, n);
    write(c, n, inverse * neg_mul_add(normal, mean_gn, g - mean_g));
  }
}

}  // namespace gloss::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
