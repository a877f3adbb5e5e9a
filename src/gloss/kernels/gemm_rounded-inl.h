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

#if HWY_TARGET == HWY_AVX3
struct Bf16Numbers {
  using Sum = float;
  static constexpr bool kPacks = true, kRounds = true;
  static constexpr int64_t kPerStep = kBf16PerStep, kColumnBytes = kWordBytes,
                           kMostSteps = kChain / kBf16PerStep;

  static TileFunction<float> tile(bool across, int64_t rows, int64_t width, bool together) {
    return bf16_tile(across, rows, width, together);
  }
  static int64_t block_rows(int64_t) { return kBlockRows; }
  static FloatSums sums(const Product&, const LeftSide&, int64_t, const float* tile, int64_t stride,
                        const TilePlace&) {
    return {tile, stride};
  }
  static float round_row(const float* x, int64_t count, std::byte* words) {
    bf16_round(x, count, words);
    return 1;
  }
  static bool reads_b_in_place(const Product&, const Block&) { return false; }
  static bool reads_a_in_place(const Product&) { return false; }
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
