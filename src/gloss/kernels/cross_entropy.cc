#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "gloss/kernels/cross_entropy.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <limits>

#include "gloss/kernels/cross_entropy.h"
#include "gloss/kernels/dispatch.h"
#include "gloss/kernels/wide-inl.h"

HWY_BEFORE_NAMESPACE();
namespace gloss::kernels::HWY_NAMESPACE {
namespace {

template <class T>
T row_largest(const T* x, int64_t n) {
  const T lowest = std::numeric_limits<T>::lowest();
  Wide<T> m = set(lowest);
  for (int64_t c = 0; c < n; c += kWide) m = max(m, load_chunk(x + c, n - c, lowest));
  return largest(m);
}

template <class T>
void cross_entropy_row(T* x, int64_t n, int64_t target, const CrossEntropy& options, T gradient, T* loss,
                       T* nll) {
  const T lowest = std::numeric_limits<T>::lowest();
  const T e = static_cast<T>(options.smoothing);
  const int64_t f = options.forbidden;
  const T symbols = static_cast<T>(f >= 0 ? n - 1 : n);
  if (f >= 0) x[f] = 0;
  Wide<T> total = zero<T>();
  if (e != 0) {
    for (int64_t c = 0; c < n; c += kWide) total = total + load_chunk(x + c, n - c);
  }
  if (f >= 0) x[f] = lowest;  // e^(x - max) is 0
  const T top = row_largest(x, n), at_target = x[target];
  Wide<T> z = zero<T>();
  for (int64_t c = 0; c < n; c += kWide) {
    const Wide<T> p = exp(load_chunk(x + c, n - c, lowest) - set(top));
    if (gradient != 0) store_chunk(p, x + c, n - c);
    z = z + p;
  }
  const T normaliser = sum(z);
  const T lse = top + std::log(normaliser);
  *nll = lse - at_target;
  *loss = e == 0 ? *nll : (1 - e) * *nll + e * (lse - sum(total) / symbols);
  if (gradient == 0) return;
  const Wide<T> scale = set(gradient / normaliser), uniform = set(gradient * e / symbols);
  for (int64_t c = 0; c < n; c += kWide) {
    store_chunk(load_chunk(x + c, n - c) * scale - uniform, x + c, n - c);
  }
  x[target] -= gradient * (1 - e);
  if (f >= 0) x[f] = 0;
}

GLOSS_KERNEL(cross_entropy_row);

}  // namespace
}  // namespace gloss::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gloss::kernels {
namespace {
GLOSS_EXPORT(cross_entropy_row);
}  // namespace

template <class T>
void cross_entropy(ThreadPool& pool, Matrix<T> logits, std::span<const int32_t> targets,
                   const CrossEntropy& options, T gradient, T* loss, T* negative_log_likelihood) {
  pool.parallel_ranges(logits.rows, 8, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t target = targets[static_cast<size_t>(i)];
      GLOSS_CALL(cross_entropy_row, T)
      (logits.row(i), logits.cols, target, options, gradient, loss + i, negative_log_likelihood + i);
    }
  });
}

template void cross_entropy(ThreadPool&, Matrix<float>, std::span<const int32_t>, const CrossEntropy&, float,
                            float*, float*);
template void cross_entropy(ThreadPool&, Matrix<double>, std::span<const int32_t>, const CrossEntropy&,
                            double, double*, double*);

}  // namespace gloss::kernels
#endif  // HWY_ONCE
