// Numbers as int8 with a scale. Per-target include, as wide-inl.h.
#include <hwy/highway.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#if defined(GLOSS_KERNELS_INT8_SCALE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef GLOSS_KERNELS_INT8_SCALE_INL_H_
#undef GLOSS_KERNELS_INT8_SCALE_INL_H_
#else
#define GLOSS_KERNELS_INT8_SCALE_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace gloss::kernels::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

// A number is `scale` times its int8; times `factor`, rounded, it is that int8.
struct Int8Scale {
  float scale, factor;
};

// The largest magnitude becomes 127. Of nothing but zeros the scale is 0; where a number is infinite or none,
// it is NaN, and so is what is multiplied with it. Below 2^-126 a scale would lose bits, so numbers that
// small share that.
HWY_INLINE Int8Scale int8_scale(const float* HWY_RESTRICT x, int64_t count) {
  const hn::ScalableTag<float> d;
  const hn::RebindToSigned<decltype(d)> di;
  constexpr int64_t kLanes = static_cast<int64_t>(hn::MaxLanes(d));
  constexpr int32_t kMagnitude = 0x7fffffff;
  // As integers magnitudes have the order of numbers, with infinity and then NaN on top.
  const auto magnitude = hn::Set(di, kMagnitude);
  auto m0 = hn::Zero(di), m1 = m0;
  int64_t i = 0;
  for (; i + 2 * kLanes <= count; i += 2 * kLanes) {
    m0 = hn::Max(m0, hn::And(hn::BitCast(di, hn::LoadU(d, x + i)), magnitude));
    m1 = hn::Max(m1, hn::And(hn::BitCast(di, hn::LoadU(d, x + i + kLanes)), magnitude));
  }
  int32_t bits = hn::GetLane(hn::MaxOfLanes(di, hn::Max(m0, m1)));
  for (; i < count; ++i) bits = std::max(bits, std::bit_cast<int32_t>(x[i]) & kMagnitude);
  const float largest = std::bit_cast<float>(bits);
  if (largest == 0) return {0, 0};
  if (!std::isfinite(largest)) return {std::numeric_limits<float>::quiet_NaN(), 0};
  const float scale = std::max(largest / 127, std::numeric_limits<float>::min());
  return {scale, 1 / scale};
}

// q [count] = x * factor, rounded to nearest even; T is int8_t or int16_t, |x * factor| < 128.
template <class T>
HWY_INLINE void round_to_int8(const float* HWY_RESTRICT x, int64_t count, float factor, T* HWY_RESTRICT q) {
  const hn::ScalableTag<float> d;
  const hn::Rebind<T, decltype(d)> narrow;
  constexpr int64_t kLanes = static_cast<int64_t>(hn::MaxLanes(d));
  const auto factors = hn::Set(d, factor);
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    hn::StoreU(hn::DemoteTo(narrow, hn::NearestInt(hn::Mul(hn::LoadU(d, x + i), factors))), narrow, q + i);
  }
  if (i < count) {
    HWY_ALIGN float lanes[kLanes] = {};
    HWY_ALIGN T rest[kLanes];
    std::copy(x + i, x + count, lanes);
    hn::Store(hn::DemoteTo(narrow, hn::NearestInt(hn::Mul(hn::Load(d, lanes), factors))), narrow, rest);
    std::copy_n(rest, count - i, q + i);
  }
}

}  // namespace
}  // namespace gloss::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
