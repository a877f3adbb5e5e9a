// Products of int8: scales and rounding, and the register tile for CPUs without VNNI. Per-target include, as
// wide-inl.h.
#include <hwy/cache_control.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <utility>

#include "gloss/kernels/gemm_float-inl.h"
#include "gloss/kernels/gemm_vnni.h"
#include "gloss/kernels/int8_scale-inl.h"

#if defined(GLOSS_KERNELS_GEMM_INT8_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef GLOSS_KERNELS_GEMM_INT8_INL_H_
#undef GLOSS_KERNELS_GEMM_INT8_INL_H_
#else
#define GLOSS_KERNELS_GEMM_INT8_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace gloss::kernels::HWY_NAMESPACE {
namespace {

// --- The way out ----------------------------------------------------------------------------

// Exact sums, and what one of them is worth: its row's scale times its channel's.
struct ScaledSums {
  const int32_t* data;
  int64_t stride;
  const float* row_scales;
  const float* channel_scales;

  struct Row {
    const int32_t* data;
    Wide<float> scale;
    const float* channel_scales;
    template <class Read>
    HWY_INLINE Wide<float> at(int64_t j, Read read) const {
      const Wide<int32_t> sums = read(data + j);
      const Wide<float>::D d;
      const auto x = each<float>([&](int v) HWY_ATTR { return hn::ConvertTo(d, sums.v[v]); });
      return x * (scale * read(channel_scales + j));
    }
  };
  HWY_INLINE Row row(int64_t i) const { return {data + i * stride, set(row_scales[i]), channel_scales}; }
};

// --- The register tile without VNNI ---------------------------------------------------------------------

#if HWY_TARGET != HWY_SCALAR
// A step is two k: bytes of B are widened to 16 bits and multiplied with those of A by pairs, so nothing
// saturates.
template <int kRows, int kVectors, int kPanels>
HWY_NOINLINE void pair_sums(const TileInput& in, int32_t* HWY_RESTRICT out, int64_t out_stride) {
  const hn::ScalableTag<int32_t> d;
  const hn::RepartitionToNarrow<decltype(d)> d16;
  const hn::Rebind<int8_t, decltype(d16)> d8;
  constexpr int kAll = kVectors * kPanels;
  const std::byte* HWY_RESTRICT a = in.a;
  const int8_t* HWY_RESTRICT b = reinterpret_cast<const int8_t*>(in.b);
  const int64_t a_stride = in.a_stride, b_stride = in.b_stride, panel_stride = in.panel_stride;
  hn::Vec<decltype(d)> s[kRows][kAll];
#pragma GCC unroll 8
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 8
    for (int j = 0; j < kAll; ++j) s[i][j] = hn::Zero(d);
  }
  auto unused = hn::Zero(d);
  for (int64_t step = in.steps; step > 0; --step) {
    hn::Vec<decltype(d16)> bv[kAll];
#pragma GCC unroll 8
    for (int j = 0; j < kAll; ++j) {
      const int8_t* from = b + (j / kVectors) * panel_stride + (j % kVectors) * 2 * kFloatLanes;
      bv[j] = hn::PromoteTo(d16, hn::LoadU(d8, from));
      if (kRows < kTileRows) hwy::Prefetch(from + 16 * b_stride);
    }
#pragma GCC unroll 8
    for (int i = 0; i < kRows; ++i) {
      int32_t word;
      std::memcpy(&word, a + i * a_stride, sizeof(word));
      const auto av = hn::BitCast(d16, hn::Set(d, word));
#pragma GCC unroll 8
      for (int j = 0; j < kAll; ++j) s[i][j] = hn::ReorderWidenMulAccumulate(d, av, bv[j], s[i][j], unused);
    }
    a += kWordBytes;
    b += b_stride;
  }
#pragma GCC unroll 8
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 8
    for (int j = 0; j < kAll; ++j) hn::StoreU(s[i][j], d, out + i * out_stride + j * kFloatLanes);
  }
}
#else
// The baseline, which no machine we support runs.
template <int kRows, int kVectors, int kPanels>
void pair_sums(const TileInput& in, int32_t* out, int64_t out_stride) {
  for (int64_t i = 0; i < kRows; ++i) {
    for (int64_t j = 0; j < kVectors * kPanels; ++j) {
      const std::byte* b = in.b + j / kVectors * in.panel_stride + j % kVectors * 2;
      int32_t sum = 0;
      for (int64_t step = 0; step < in.steps; ++step) {
        std::array<int16_t, 2> pair{};
        std::memcpy(pair.data(), in.a + i * in.a_stride + step * kWordBytes, sizeof(pair));
        const std::byte* column = b + step * in.b_stride;
        sum += pair[0] * static_cast<int8_t>(column[0]) + pair[1] * static_cast<int8_t>(column[1]);
      }
      out[i * out_stride + j] = sum;
    }
  }
}
#endif

template <size_t... kIndex>
constexpr std::array<TileFunction<int32_t>, sizeof...(kIndex)> pair_tiles(std::index_sequence<kIndex...>) {
  return {&pair_sums<static_cast<int>(kIndex) / kPanelVectors + 1,
                     static_cast<int>(kIndex) % kPanelVectors + 1, 1>...};
}

// --- For the block loop
// -------------------------------------------------------------------------------------

struct Int8Numbers {
  using Sum = int32_t;
  static constexpr bool kPacks = false;  // B is packed before, A is never transposed
  static constexpr bool kRounds = true;
  static constexpr int64_t kMostSteps = std::numeric_limits<int64_t>::max();  // exact sums need no chains

  // As many rows as the second-level cache holds beside panels of all k.
  static int64_t block_rows(int64_t steps) {
    return std::clamp<int64_t>((384 << 10) / words_stride(steps) / kTileRows, 1, kBlockRows / kTileRows) *
           kTileRows;
  }
  static ScaledSums sums(const Product& p, const LeftSide& left, int64_t row, const int32_t* tile,
                         int64_t stride, const TilePlace& place) {
    return {tile, stride, left.scales + row, p.channel_scales + place.col};
  }
  static bool reads_b_in_place(const Product&, const Block&) { return false; }
  static bool reads_a_in_place(const Product&) { return false; }
};

struct PairNumbers : Int8Numbers {
  static constexpr int64_t kPerStep = kPairPerStep, kColumnBytes = kPairPerStep;

  static TileFunction<int32_t> tile(bool, int64_t rows, int64_t width, bool together) {
    static constexpr auto kTiles = pair_tiles(TileIndices());
    if (together) {
      return rows == 1 ? &pair_sums<1, kPanelVectors, kPanelsTogether>
                       : &pair_sums<2, kPanelVectors, kPanelsTogether>;
    }
    return kTiles[static_cast<size_t>((rows - 1) * kPanelVectors + width / kFloatLanes - 1)];
  }
  static float round_row(const float* x, int64_t count, std::byte* words) {
    const Int8Scale s = int8_scale(x, count);
    auto* q = reinterpret_cast<int16_t*>(words);
    round_to_int8(x, count, s.factor, q);
    if (count % kPairPerStep != 0) q[count] = 0;
    return s.scale;
  }
};

#if HWY_TARGET == HWY_AVX3
struct VnniNumbers : Int8Numbers {
  static constexpr int64_t kPerStep = kVnniPerStep, kColumnBytes = kVnniPerStep;

  static TileFunction<int32_t> tile(bool, int64_t rows, int64_t width, bool together) {
    return vnni_tile(rows, width, together);
  }
  static float round_row(const float* x, int64_t count, std::byte* words) {
    const Int8Scale s = int8_scale(x, count);
    vnni_round(x, count, s.factor, words);
    return s.scale;
  }
};
#endif

}  // namespace
}  // namespace gloss::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
