// Sixteen dropout factors at once. Per-target include, as wide-inl.h.
#include "gloss/kernels/dropout.h"
#include "gloss/kernels/wide-inl.h"

#if defined(GLOSS_KERNELS_DROPOUT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef GLOSS_KERNELS_DROPOUT_INL_H_
#undef GLOSS_KERNELS_DROPOUT_INL_H_
#else
#define GLOSS_KERNELS_DROPOUT_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace gloss::kernels::HWY_NAMESPACE {

// Dropout::factor for elements index .. index + 15 (which must not cross a multiple of 2^32).
HWY_INLINE Wide<float> dropout_factors(const Dropout& dropout, uint64_t index, float) {
  const Wide<float>::D d;
  const hn::RebindToUnsigned<Wide<float>::D> du;
  const hn::RebindToSigned<Wide<float>::D> di;
  const auto low = hn::Set(du, dropout.key_low);
  const auto high = hn::Set(du, dropout.key_high), spread = hn::Set(du, Dropout::spread(index));
  return each<float>([&](int i) {
    const uint32_t first = static_cast<uint32_t>(index) + static_cast<uint32_t>(i * Wide<float>::kLanes);
    auto x = hn::Add(hn::Xor(hn::Iota(du, first), low), spread);
    x = hn::Mul(hn::Xor(x, hn::ShiftRight<16>(x)), hn::Set(du, 0x7FEB352Du));
    x = hn::Mul(hn::Add(hn::Xor(x, hn::ShiftRight<15>(x)), high), hn::Set(du, 0x846CA68Bu));
    x = hn::Xor(x, hn::ShiftRight<16>(x));
    const auto bits = hn::BitCast(di, hn::ShiftRight<1>(x));
    const auto dropped = hn::Lt(bits, hn::Set(di, dropout.threshold));
    return hn::IfThenZeroElse(hn::RebindMask(d, dropped), hn::Set(d, static_cast<float>(dropout.scale)));
  });
}
HWY_INLINE Wide<double> dropout_factors(const Dropout& dropout, uint64_t index, double) {
  HWY_ALIGN double lanes[kWide];
  for (uint64_t i = 0; i < kWide; ++i) lanes[i] = dropout.factor(index + i);
  return load(lanes);
}

}  // namespace gloss::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
