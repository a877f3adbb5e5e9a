#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "gloss/kernels/adam.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "gloss/kernels/adam.h"
#include "gloss/kernels/dispatch.h"
#include "gloss/kernels/wide-inl.h"

HWY_BEFORE_NAMESPACE();
namespace gloss::kernels::HWY_NAMESPACE {
namespace {

template <class T>
void adam_range(const Adam& o, T* value, const T* gradient, T* first, T* second, int64_t n) {
  const double correction1 = 1 - std::pow(o.beta1, static_cast<double>(o.step));
  const double correction2 = 1 - std::pow(o.beta2, static_cast<double>(o.step));
  const Wide<T> b1 = set(static_cast<T>(o.beta1)), c1 = set(static_cast<T>(1 - o.beta1));
  const Wide<T> b2 = set(static_cast<T>(o.beta2)), c2 = set(static_cast<T>(1 - o.beta2));
  const Wide<T> rate = set(static_cast<T>(o.learning_rate / correction1));
  const Wide<T> root = set(static_cast<T>(1 / std::sqrt(correction2))),
                epsilon = set(static_cast<T>(o.epsilon));
  const Wide<T> scale = set(static_cast<T>(o.gradient_scale));
  for (int64_t i = 0; i < n; i += kWide) {
    const int64_t rest = n - i;
    const Wide<T> g = load_chunk(gradient + i, rest) * scale;
    const Wide<T> m = mul_add(b1, load_chunk(first + i, rest), c1 * g);
    const Wide<T> v = mul_add(b2, load_chunk(second + i, rest), c2 * g * g);
    store_chunk(m, first + i, rest);
    store_chunk(v, second + i, rest);
    const Wide<T> change = rate * m / mul_add(square_root(v), root, epsilon);
    store_chunk(load_chunk(value + i, rest) - change, value + i, rest);
  }
}
template <class T>
void average_range(T decay, const T* value, T* average, int64_t n) {
  const Wide<T> kept = set(decay), fresh = set(1 - decay);
  for (int64_t i = 0; i < n; i += kWide) {
    const Wide<T> now = load_chunk(value + i, n - i) * fresh;
    store_chunk(mul_add(kept, load_chunk(average + i, n - i), now), average + i, n - i);
  }
}
// Sixteen numbers in double precision.
HWY_INLINE Wide<double> load_double(const double* p) {
  return load(p);
}
HWY_INLINE Wide<double> load_double(const float* p) {
  const Wide<double>::D d;
  const hn::Rebind<float, Wide<double>::D> narrow;
  return each<double>(
      [&](int i) HWY_ATTR { return hn::PromoteTo(d, hn::LoadU(narrow, p + i * Wide<double>::kLanes)); });
}
// The square of a float is a double without rounding, and no sum of them overflows.
template <class T>
double squares(const T* x, int64_t n) {
  Wide<double> total = zero<double>();
  int64_t i = 0;
  for (; i + kWide <= n; i += kWide) {
    const Wide<double> v = load_double(x + i);
    total = mul_add(v, v, total);
  }
  if (i < n) {
    HWY_ALIGN T rest[kWide] = {};
    std::memcpy(rest, x + i, static_cast<size_t>(n - i) * sizeof(T));
    const Wide<double> v = load_double(rest);
    total = mul_add(v, v, total);
  }
  return sum(total);
}

GLOSS_KERNEL(adam_range);
GLOSS_KERNEL(average_range);
GLOSS_KERNEL(squares);

}  // namespace
}  // namespace gloss::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <numeric>
#include <vector>

namespace gloss::kernels {
namespace {
GLOSS_EXPORT(adam_range);
GLOSS_EXPORT(average_range);
GLOSS_EXPORT(squares);
constexpr int64_t kBlock = 4096;
}  // namespace

template <class T>
void adam(ThreadPool& pool, const Adam& options, std::span<T> value, std::span<const T> gradient,
          std::span<T> first_moment, std::span<T> second_moment) {
  pool.parallel_ranges(static_cast<int64_t>(value.size()), 8 * kBlock, [&](int64_t begin, int64_t end) {
    T *p = value.data() + begin, *m = first_moment.data() + begin, *v = second_moment.data() + begin;
    const T* g = gradient.data() + begin;
    GLOSS_CALL(adam_range, T)(options, p, g, m, v, end - begin);
  });
}

template <class T>
void moving_average(ThreadPool& pool, double decay, std::span<const T> value, std::span<T> average) {
  pool.parallel_ranges(static_cast<int64_t>(value.size()), 8 * kBlock, [&](int64_t begin, int64_t end) {
    GLOSS_CALL(average_range, T)
    (static_cast<T>(decay), value.data() + begin, average.data() + begin, end - begin);
  });
}

template <class T>
double sum_of_squares(ThreadPool& pool, std::span<const T> x) {
  const auto n = static_cast<int64_t>(x.size());
  std::vector<double> partial(static_cast<size_t>((n + kBlock - 1) / kBlock));
  pool.parallel_ranges(n, kBlock, [&](int64_t begin, int64_t end) {
    partial[static_cast<size_t>(begin / kBlock)] = GLOSS_CALL(squares, T)(x.data() + begin, end - begin);
  });
  return std::accumulate(partial.begin(), partial.end(), 0.0);
}

template void adam(ThreadPool&, const Adam&, std::span<float>, std::span<const float>, std::span<float>,
                   std::span<float>);
template void adam(ThreadPool&, const Adam&, std::span<double>, std::span<const double>, std::span<double>,
                   std::span<double>);
template void moving_average(ThreadPool&, double, std::span<const float>, std::span<float>);
template void moving_average(ThreadPool&, double, std::span<const double>, std::span<double>);
template double sum_of_squares(ThreadPool&, std::span<const float>);
template double sum_of_squares(ThreadPool&, std::span<const double>);

}  // namespace gloss::kernels
#endif  // HWY_ONCE
