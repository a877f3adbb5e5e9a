// The float product's register tile, and how the block loop finds its numbers. Per-target include, as
// wide-inl.h.
#include <hwy/cache_control.h>

#include <array>
#include <utility>

#include "gloss/kernels/gemm_out-inl.h"
#include "gloss/kernels/gemm_pack-inl.h"

#if defined(GLOSS_KERNELS_GEMM_FLOAT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef GLOSS_KERNELS_GEMM_FLOAT_INL_H_
#undef GLOSS_KERNELS_GEMM_FLOAT_INL_H_
#else
#define GLOSS_KERNELS_GEMM_FLOAT_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace gloss::kernels::HWY_NAMESPACE {
namespace {

// With one or two rows a narrow panel has too few chains to hide the latency of an addition.
constexpr int kPanelsTogether = HWY_TARGET == HWY_AVX3 ? kWidePanels : 4;

// out [rows, kPanels * kVectors vectors] = chains over k, each from zero.
// kAcross: the rows of A stand side by side in a step.
template <int kRows, int kVectors, int kPanels, bool kAcross>
HWY_NOINLINE void float_sums(const TileInput& in, float* HWY_RESTRICT out, int64_t out_stride) {
  const FloatTag d;
  constexpr int kAll = kVectors * kPanels;
  constexpr int64_t kBytes = sizeof(float);
  const float* HWY_RESTRICT a = reinterpret_cast<const float*>(in.a);
  const float* HWY_RESTRICT b = reinterpret_cast<const float*>(in.b);
  const int64_t a_stride = in.a_stride / kBytes, b_stride = in.b_stride / kBytes;
  const int64_t panel_stride = in.panel_stride / kBytes;
  FloatVector s[kRows][kAll];
#pragma GCC unroll 8
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 8
    for (int j = 0; j < kAll; ++j) s[i][j] = hn::Zero(d);
  }
  for (int64_t k = in.steps; k > 0; --k) {
    FloatVector bv[kAll];
#pragma GCC unroll 8
    for (int j = 0; j < kAll; ++j) {
      const float* from = b + (j / kVectors) * panel_stride + (j % kVectors) * kFloatLanes;
      bv[j] = hn::LoadU(d, from);
      // Few rows pass B faster than the hardware fetches it.
      if (kRows < kTileRows) hwy::Prefetch(from + 8 * b_stride);
    }
#pragma GCC unroll 8
    for (int i = 0; i < kRows; ++i) {
      const FloatVector av = hn::Set(d, kAcross ? a[i] : a[i * a_stride]);
#pragma GCC unroll 8
      for (int j = 0; j < kAll; ++j) s[i][j] = hn::MulAdd(av, bv[j], s[i][j]);
    }
    a += kAcross ? a_stride : 1;
    b += b_stride;
  }
#pragma GCC unroll 8
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 8
    for (int j = 0; j < kAll; ++j) hn::StoreU(s[i][j], d, out + i * out_stride + j * kFloatLanes);
  }
}

template <bool kAcross, size_t... kIndex>
constexpr std::array<TileFunction<float>, sizeof...(kIndex)> float_tiles(std::index_sequence<kIndex...>) {
  return {&float_sums<static_cast<int>(kIndex) / kPanelVectors + 1,
                      static_cast<int>(kIndex) % kPanelVectors + 1, 1, kAcross>...};
}
using TileIndices = std::make_index_sequence<kTileRows * kPanelVectors>;

// Rows of a transposed A (stored [K, M]): out holds for each tile its k rows of as many floats as it has
// rows of C.
void pack_rows(Matrix<const float> a, int64_t row, const RowTiles& tiles, int64_t k0, int64_t count,
               float* HWY_RESTRICT out) {
  const int64_t all = tiles.begin(tiles.count);
  for (int64_t k = 0; k < count; ++k) {
    const float* HWY_RESTRICT from = a.row(k0 + k) + row;
    if (k + 16 < count) prefetch_slice(from + 16 * a.stride, all);
    float* HWY_RESTRICT to = out;
    for (int64_t tile = 0; tile < tiles.count; ++tile) {
      const int64_t rows = tiles.base + (tile < tiles.more ? 1 : 0);
      if (rows == kTileRows) {
        std::memcpy(to + k * kTileRows, from, kTileRows * sizeof(float));
      } else {
        for (int64_t i = 0; i < rows; ++i) to[k * rows + i] = from[i];
      }
      from += rows;
      to += rows * count + RowTiles::kGap;
    }
  }
}

// What the block loop (gemm-inl.h) asks of a precision.
struct FloatNumbers {
  using Sum = float;
  static constexpr bool kPacks = true;  // A that is transposed, and B that was not packed before
  static constexpr bool kRounds = false;
  static constexpr int64_t kPerStep = 1;         // k of a step
  static constexpr int64_t kColumnBytes = 4;     // of a column in a step of a panel
  static constexpr int64_t kMostSteps = kChain;  // of a chain

  // For `width` columns, or kPanelsTogether whole panels and at most two rows.
  static TileFunction<float> tile(bool across, int64_t rows, int64_t width, bool together) {
    static constexpr auto kPlain = float_tiles<false>(TileIndices());
    static constexpr auto kAcross = float_tiles<true>(TileIndices());
    if (together) {
      return rows == 1 ? &float_sums<1, kPanelVectors, kPanelsTogether, false>
                       : &float_sums<2, kPanelVectors, kPanelsTogether, false>;
    }
    const auto index = static_cast<size_t>((rows - 1) * kPanelVectors + width / kFloatLanes - 1);
    return across ? kAcross[index] : kPlain[index];
  }

  static int64_t block_rows(int64_t) { return kBlockRows; }
  static FloatSums sums(const Product&, const LeftSide&, int64_t, const float* tile, int64_t stride,
                        const TilePlace&) {
    return {tile, stride};
  }

  // A transposed or ragged B cannot be read in place, and from a few dozen rows on packing pays.
  static bool reads_b_in_place(const Product& p, const Block& block) {
    const bool pays = block.rows > 48 && !(p.ta == Transpose::yes && read_in_place(p, p.b));
    return !p.panels && p.tb == Transpose::no && !pays && block.cols % kFloatLanes == 0 && p.k > 0;
  }
  static bool reads_a_in_place(const Product& p) { return read_in_place(p, p.a); }
  static void pack_b(const Product& p, int64_t col, int64_t cols, int64_t k0, int64_t count, std::byte* out) {
    pack_panel(p.b, p.tb, col, cols, k0, count, width_of_panel(cols), reinterpret_cast<float*>(out));
  }
  static void pack_a(const Product& p, int64_t row, const RowTiles& tiles, int64_t k0, int64_t count,
                     std::byte* out) {
    pack_rows(p.a, row, tiles, k0, count, reinterpret_cast<float*>(out));
  }
};

}  // namespace
}  // namespace gloss::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
