#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "peak.cc"  // this file, compiled once a target
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace gloss::bench::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

// Twelve chains hide the latency of two units, and fit sixteen registers. Returns the operations done;
// `result` keeps the compiler from leaving them out.
double multiply_add(int64_t repeats, float* result) {
  const hn::ScalableTag<float> d;
  constexpr int kChains = 12;
  hn::Vec<decltype(d)> sums[kChains];
  for (auto& sum : sums) sum = hn::Zero(d);
  const auto a = hn::Set(d, *result), b = hn::Set(d, 0.5f);
  for (int64_t i = 0; i < repeats; ++i) {
#pragma GCC unroll 12
    for (auto& sum : sums) sum = hn::MulAdd(sum, b, a);
  }
  for (int i = 1; i < kChains; ++i) sums[0] = hn::Add(sums[0], sums[i]);
  *result = hn::GetLane(sums[0]);
  return 2.0 * kChains * static_cast<double>(hn::Lanes(d)) * static_cast<double>(repeats);
}
}  // namespace
}  // namespace gloss::bench::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <time.h>

#include <algorithm>

#include "peak.h"

namespace gloss::bench {
namespace {
HWY_EXPORT(multiply_add);

double processor_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}
}  // namespace

double peak_flops() {
  float result = 1.0f;
  double best = 0;
  for (int run = 0; run < 20; ++run) {
    const double start = processor_seconds();
    const double done = HWY_DYNAMIC_DISPATCH(multiply_add)(1'000'000, &result);
    best = std::max(best, done / (processor_seconds() - start));
  }
  return best;
}

}  // namespace gloss::bench
#endif  // HWY_ONCE
