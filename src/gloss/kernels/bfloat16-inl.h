// Numbers kept as bfloat16, sixteen at a time. Per-target include, as wide-inl.h.
#include "gloss/kernels/bfloat16.h"
#include "gloss/kernels/wide-inl.h"

#if defined(GLOSS_KERNELS_BFLOAT16_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef GLOSS_KERNELS_BFLOAT16_INL_H_
#undef GLOSS_KERNELS_BFLOAT16_INL_H_
#else
#define GLOSS_KERNELS_BFLOAT16_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace gloss::kernels::HWY_NAMESPACE {

using Bfloat16Bits = hn::Rebind<uint16_t, Wide<float>::D>;

// Widened, which is exact.
HWY_INLINE Wide<float> load(const Bfloat16* p) {
  const Wide<float>::D d;
  const hn::RebindToUnsigned<Wide<float>::D> whole;
  const Bfloat16Bits half;
  return each<float>([&](int i) HWY_ATTR {
    const auto bits = hn::LoadU(half, &p[i * Wide<float>::kLanes].bits);
    return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(whole, bits)));
  });
}
// The first n of sixteen, the others 0; memory past n is not touched.
HWY_INLINE Wide<float> load_chunk(const Bfloat16* p, int64_t n) {
  if (n >= kWide) return load(p);
  HWY_ALIGN Bfloat16 lanes[kWide] = {};
  std::memcpy(lanes, p, static_cast<size_t>(n) * sizeof(Bfloat16));
  return load(lanes);
}

// Rounded to nearest, ties to even.
HWY_INLINE void store(const Wide<float>& x, Bfloat16* p) {
  const hn::RebindToUnsigned<Wide<float>::D> whole;
  const hn::RebindToSigned<Wide<float>::D> whole_signed;
  const Bfloat16Bits half;
  for (int i = 0; i < Wide<float>::kVectors; ++i) {
    const auto bits = hn::BitCast(whole, x.v[i]);
    const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(whole, 1u));
    const auto rounded = hn::Add(bits, hn::Add(odd, hn::Set(whole, 0x7fffu)));
    // Rounding could carry a NaN to infinity or zero, and dropping its lower half could make it infinity.
    const auto nan = hn::Or(bits, hn::Set(whole, 0x400000u));
    const auto upper =
        hn::ShiftRight<16>(hn::IfThenElse(hn::RebindMask(whole, hn::IsNaN(x.v[i])), nan, rounded));
    hn::StoreU(hn::DemoteTo(half, hn::BitCast(whole_signed, upper)), half, &p[i * Wide<float>::kLanes].bits);
  }
}
HWY_INLINE void store_chunk(const Wide<float>& x, Bfloat16* p, int64_t n) {
  if (n >= kWide) return store(x, p);
  HWY_ALIGN Bfloat16 lanes[kWide];
  store(x, lanes);
  std::memcpy(p, lanes, static_cast<size_t>(n) * sizeof(Bfloat16));
}

}  // namespace gloss::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
