// How the matrix product lays B out in panels. Per-target include, as wide-inl.h.
#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "gloss/kernels/gemm_task.h"

#if defined(GLOSS_KERNELS_GEMM_PACK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef GLOSS_KERNELS_GEMM_PACK_INL_H_
#undef GLOSS_KERNELS_GEMM_PACK_INL_H_
#else
#define GLOSS_KERNELS_GEMM_PACK_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace gloss::kernels::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

using FloatTag = hn::ScalableTag<float>;
using FloatVector = hn::Vec<FloatTag>;
constexpr int64_t kFloatLanes = static_cast<int64_t>(hn::MaxLanes(FloatTag()));
// 24 of 32 registers hold sums with AVX-512, 12 of 16 elsewhere.
constexpr int kPanelVectors = HWY_TARGET == HWY_AVX3 ? kWideVectors : 2;
constexpr int64_t kPanelWidth = kPanelVectors * kFloatLanes;

HWY_INLINE int64_t round_up(int64_t n, int64_t step) {
  return (n + step - 1) / step * step;
}
// Floats from one k row of a panel to the next, for the panel that begins `cols` columns before the end.
HWY_INLINE int64_t width_of_panel(int64_t cols) {
  return std::min(kPanelWidth, round_up(cols, kFloatLanes));
}

#if HWY_TARGET != HWY_SCALAR
// out[k][j] = in[j][k] for 4 rows j of `in` and `count` k.
HWY_INLINE void transpose_four(const float* HWY_RESTRICT in, int64_t in_stride, int64_t count,
                               float* HWY_RESTRICT out, int64_t out_stride) {
  const hn::CappedTag<float, 4> d;
  const hn::RepartitionToWide<decltype(d)> wide;
  int64_t k = 0;
  for (; k + 4 <= count; k += 4) {
    const auto r0 = hn::LoadU(d, in + k), r1 = hn::LoadU(d, in + in_stride + k);
    const auto r2 = hn::LoadU(d, in + 2 * in_stride + k), r3 = hn::LoadU(d, in + 3 * in_stride + k);
    const auto a = hn::BitCast(wide, hn::InterleaveLower(d, r0, r1));  // 00 10 01 11
    const auto b = hn::BitCast(wide, hn::InterleaveLower(d, r2, r3));  // 20 30 21 31
    const auto e = hn::BitCast(wide, hn::InterleaveUpper(d, r0, r1));
    const auto f = hn::BitCast(wide, hn::InterleaveUpper(d, r2, r3));
    float* to = out + k * out_stride;
    hn::StoreU(hn::BitCast(d, hn::InterleaveLower(wide, a, b)), d, to);
    hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(wide, a, b)), d, to + out_stride);
    hn::StoreU(hn::BitCast(d, hn::InterleaveLower(wide, e, f)), d, to + 2 * out_stride);
    hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(wide, e, f)), d, to + 3 * out_stride);
  }
  for (; k < count; ++k) {
    for (int64_t j = 0; j < 4; ++j) out[k * out_stride + j] = in[j * in_stride + k];
  }
}
#else
// The baseline, which no machine we support runs.
HWY_INLINE void transpose_four(const float* in, int64_t in_stride, int64_t count, float* out,
                               int64_t out_stride) {
  for (int64_t k = 0; k < count; ++k) {
    for (int64_t j = 0; j < 4; ++j) out[k * out_stride + j] = in[j * in_stride + k];
  }
}
#endif

// out[k][j] = in[j][k] for `rows` rows of `in`, in pieces of 64 k: a piece of the output stays in the first
// cache while rows, which may lie a power of two apart, are read four at a time.
void transpose_into(const float* in, int64_t in_stride, int64_t rows, int64_t count, float* out,
                    int64_t out_stride) {
  for (int64_t k = 0; k < count; k += 64) {
    const int64_t piece = std::min<int64_t>(64, count - k);
    int64_t j = 0;
    for (; j + 4 <= rows; j += 4) {
      transpose_four(in + j * in_stride + k, in_stride, piece, out + k * out_stride + j, out_stride);
    }
    for (; j < rows; ++j) {
      for (int64_t p = k; p < k + piece; ++p) out[p * out_stride + j] = in[j * in_stride + p];
    }
  }
}

// Slices of rows are too short for the hardware to guess the next one, so we ask for it some rows ahead:
// dW of 256 x 256 over 8,192 tokens rose from 85 to 92 GFLOP/s on one core.
HWY_INLINE void prefetch_slice(const float* from, int64_t count) {
  for (int64_t i = 0; i < count; i += 16) hwy::Prefetch(from + i);
}

// Columns [col, col + cols) and k [k0, k0 + count) of op(B), one panel of `width` columns.
void pack_panel(Matrix<const float> b, Transpose tb, int64_t col, int64_t cols, int64_t k0, int64_t count,
                int64_t width, float* HWY_RESTRICT out) {
  if (tb == Transpose::yes) {
    transpose_into(b.row(col) + k0, b.stride, cols, count, out, width);
  } else {
    const FloatTag d;
    for (int64_t k = 0; k < count; ++k) {
      const float* HWY_RESTRICT from = b.row(k0 + k) + col;
      if (k + 16 < count) prefetch_slice(from + 16 * b.stride, cols);
      int64_t j = 0;
      for (; j + kFloatLanes <= cols; j += kFloatLanes) {
        hn::Store(hn::LoadU(d, from + j), d, out + k * width + j);
      }
      for (; j < cols; ++j) out[k * width + j] = from[j];
    }
  }
  if (cols < width) {
    for (int64_t k = 0; k < count; ++k) std::fill(out + k * width + cols, out + (k + 1) * width, 0.0f);
  }
}

int64_t panel_width() {
  return kPanelWidth;
}

}  // namespace
}  // namespace gloss::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
