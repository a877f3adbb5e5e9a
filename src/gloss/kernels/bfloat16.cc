#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "gloss/kernels/bfloat16.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "gloss/kernels/bfloat16-inl.h"
#include "gloss/kernels/bfloat16.h"

HWY_BEFORE_NAMESPACE();
namespace gloss::kernels::HWY_NAMESPACE {
namespace {

void round_all(const float* from, int64_t count, Bfloat16* to) {
  for (int64_t i = 0; i < count; i += kWide) store_chunk(load_chunk(from + i, count - i), to + i, count - i);
}

}  // namespace
}  // namespace gloss::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gloss::kernels {
namespace {
HWY_EXPORT(round_all);
}  // namespace

void store_numbers(const float* from, int64_t count, Bfloat16* to) {
  HWY_DYNAMIC_DISPATCH(round_all)(from, count, to);
}

}  // namespace gloss::kernels
#endif  // HWY_ONCE
