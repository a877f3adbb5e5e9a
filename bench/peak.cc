#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "peak.cc"  // this file, compiled once a target
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace gloss::bench::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

// Twelve chains hide the latency of two units, and fit sixteen registers. The functions return the operations
// done; `result` keeps the compiler from leaving them out.
constexpr int kChains = 12;

double multiply_add(int64_t repeats, float* result) {
  const hn::ScalableTag<float> d;
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

// int8 without VNNI: pairs of 16 bits multiplied and added, as gemm_int8-inl.h does.
double multiply_pairs(int64_t repeats, float* result) {
#if HWY_TARGET == HWY_SCALAR
  return multiply_add(repeats, result);
#else
  const hn::ScalableTag<int32_t> d;
  const hn::RepartitionToNarrow<decltype(d)> d16;
  hn::Vec<decltype(d)> sums[kChains];
  for (auto& sum : sums) sum = hn::Zero(d);
  auto a = hn::BitCast(d16, hn::Set(d, static_cast<int32_t>(*result))), b = hn::Set(d16, int16_t{3});
  auto unused = hn::Zero(d);
  for (int64_t i = 0; i < repeats; ++i) {
    asm volatile("" : "+x"(a.raw));  // a product that never changes would be made once
#pragma GCC unroll 12
    for (auto& sum : sums) sum = hn::ReorderWidenMulAccumulate(d, a, b, sum, unused);
  }
  for (int i = 1; i < kChains; ++i) sums[0] = hn::Add(sums[0], sums[i]);
  *result = static_cast<float>(hn::GetLane(sums[0]));
  return 4.0 * kChains * static_cast<double>(hn::Lanes(d)) * static_cast<double>(repeats);
#endif
}
}  // namespace
}  // namespace gloss::bench::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <time.h>

#include <algorithm>

#include "gloss/kernels/intrinsics.h"
#include "peak.h"

namespace gloss::bench {
namespace {
HWY_EXPORT(multiply_add);
HWY_EXPORT(multiply_pairs);

HWY_PUSH_ATTRIBUTES("avx512f,avx512bw,avx512vl,avx512bf16,avx512vnni")
constexpr int kWideChains = 12;

double multiply_bf16(int64_t repeats, float* result) {
  __m512 sums[kWideChains];
  for (__m512& sum : sums) sum = _mm512_setzero_ps();
  const __m512bh a = _mm512_cvtne2ps_pbh(_mm512_set1_ps(*result), _mm512_set1_ps(0.5f));
  for (int64_t i = 0; i < repeats; ++i) {
#pragma GCC unroll 12
    for (__m512& sum : sums) sum = _mm512_dpbf16_ps(sum, a, a);
  }
  for (int i = 1; i < kWideChains; ++i) sums[0] = _mm512_add_ps(sums[0], sums[i]);
  *result = _mm512_cvtss_f32(sums[0]);
  return 64.0 * kWideChains * static_cast<double>(repeats);
}

double multiply_vnni(int64_t repeats, float* result) {
  __m512i sums[kWideChains];
  for (__m512i& sum : sums) sum = _mm512_setzero_si512();
  const __m512i a = _mm512_set1_epi8(static_cast<char>(*result));
  for (int64_t i = 0; i < repeats; ++i) {
#pragma GCC unroll 12
    for (__m512i& sum : sums) sum = _mm512_dpbusd_epi32(sum, a, a);
  }
  for (int i = 1; i < kWideChains; ++i) sums[0] = _mm512_add_epi32(sums[0], sums[i]);
  *result = static_cast<float>(_mm_cvtsi128_si32(_mm512_castsi512_si128(sums[0])));
  return 128.0 * kWideChains * static_cast<double>(repeats);
}
HWY_POP_ATTRIBUTES

double processor_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double run(kernels::Precision precision, float* result) {
  constexpr int64_t kRepeats = 100'000;  // a third of a millisecond: others interrupt few of them
  switch (precision) {
    case kernels::Precision::float32:
      return HWY_DYNAMIC_DISPATCH(multiply_add)(kRepeats, result);
    case kernels::Precision::bfloat16:
      return kernels::precision_served(precision) ? multiply_bf16(kRepeats, result) : 0;
    case kernels::Precision::int8:
      return kernels::vnni_served() ? multiply_vnni(kRepeats, result)
                                    : HWY_DYNAMIC_DISPATCH(multiply_pairs)(kRepeats, result);
  }
  return 0;
}
}  // namespace

double peak_operations(kernels::Precision precision) {
  double best = 0;
  for (int each = 0; each < 200; ++each) {
    float result = 1.0f;
    const double start = processor_seconds();
    const double done = run(precision, &result);
    const double took = processor_seconds() - start;
    if (result == 12345.0f) return 0;  // never, but the compiler does not know
    best = std::max(best, done / took);
  }
  return best;
}

}  // namespace gloss::bench
#endif  // HWY_ONCE
