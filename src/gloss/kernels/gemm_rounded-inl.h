// How the block loop finds numbers that were rounded. Per-target include, as wide-inl.h.
#include "gloss/kernels/gemm_bf16.h"
#include "gloss/kernels/gemm_float-inl.h"

#if defined(GLOSS_KERNELS_GEMM_ROUNDED_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef GLOSS_KERNELS_GEMM_ROUNDED_INL_H_
#undef GLOSS_KERNELS_GEMM_ROUNDED_INL_H_
#else
#define GLOSS_KERNELS_GEMM_ROUNDED_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace gloss::kernels::HWY_NAMESPACE {
namespace {

// Words of rows that were rounded before.
struct RoundedRows {
  static int64_t block_rows(const Product&) { return kBlockRows; }
  static const std::byte* row_of_a(const Product& p, int64_t row, int64_t step) {
    return p.words + row * p.words_stride + step * kWordBytes;
  }
  static int64_t a_stride(const Product& p) { return p.words_stride; }
  static bool reads_b_in_place(const Product&, const Block&) { return false; }
};

#if HWY_TARGET == HWY_AVX3
struct Bf16Numbers : RoundedRows {
  using Sum = float;
  static constexpr bool kPacks = true;
  static constexpr int64_t kPerStep = kBf16PerStep, kColumnBytes = kWordBytes,
                           kMostSteps = kChain / kBf16PerStep;

  static TileFunction<float> tile(bool packed_a, int64_t rows, int64_t width, bool together) {
    return bf16_tile(packed_a, rows, width, together);
  }
  static FloatSums sums(const Product&, const float* tile, int64_t stride, const TilePlace&) {
    return {tile, stride};
  }
  static void pack_b(const Product& p, int64_t col, int64_t cols, int64_t k0, int64_t count, std::byte* out) {
    bf16_pack_panel(p.b, p.tb, col, cols, k0, count, width_of_panel(cols), out);
  }
  static void pack_a(const Product& p, int64_t row, const RowTiles& tiles, int64_t k0, int64_t count,
                     std::byte* out) {
    bf16_pack_rows(p.a, row, tiles, k0, count, out);
  }
};
#endif

}  // namespace
}  // namespace gloss::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
