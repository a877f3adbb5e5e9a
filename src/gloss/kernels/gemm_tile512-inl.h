// The register tile on 512-bit vectors of 32-bit words, each with two or four k: what bfloat16 and int8
// share. An operation says what becomes of a sum and two words. Included by the files of those operations
// between HWY_PUSH_ATTRIBUTES and HWY_POP_ATTRIBUTES, after <immintrin.h>, <array>, <cstring> and
// gemm_task.h, so that nothing of the standard library is compiled for that CPU.
#pragma once

namespace gloss::kernels {
namespace {

constexpr int64_t kWideLanes = 16;

// out [kRows, kPanels * kVectors vectors]
template <class Operation, int kRows, int kVectors, int kPanels, bool kAcross>
__attribute__((noinline)) void word_sums(const TileInput& in, typename Operation::Sum* out,
                                         int64_t out_stride) {
  constexpr int kAll = kVectors * kPanels;
  const std::byte* a = in.a;
  const std::byte* b = in.b;
  const int64_t a_stride = in.a_stride, b_stride = in.b_stride, panel_stride = in.panel_stride;
  typename Operation::Vector s[kRows][kAll];
#pragma GCC unroll 8
  for (int j = 0; j < kAll; ++j) {
    s[0][j] = Operation::start(in, j);
#pragma GCC unroll 8
    for (int i = 1; i < kRows; ++i) s[i][j] = s[0][j];
  }
  for (int64_t step = in.steps; step > 0; --step) {
    __m512i bv[kAll];
#pragma GCC unroll 8
    for (int j = 0; j < kAll; ++j) {
      const std::byte* from = b + (j / kVectors) * panel_stride + (j % kVectors) * kWideLanes * kWordBytes;
      bv[j] = _mm512_loadu_si512(from);
      // Few rows pass B faster than the hardware fetches it.
      if (kRows < kTileRows) __builtin_prefetch(from + 8 * b_stride);
    }
#pragma GCC unroll 8
    for (int i = 0; i < kRows; ++i) {
      int word;
      std::memcpy(&word, a + (kAcross ? i * kWordBytes : i * a_stride), sizeof(word));
      const __m512i av = _mm512_set1_epi32(word);
#pragma GCC unroll 8
      for (int j = 0; j < kAll; ++j) s[i][j] = Operation::add_product(s[i][j], av, bv[j]);
    }
    a += kAcross ? a_stride : kWordBytes;
    b += b_stride;
  }
#pragma GCC unroll 8
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 8
    for (int j = 0; j < kAll; ++j) Operation::store(out + i * out_stride + j * kWideLanes, s[i][j]);
  }
}

template <class Operation, bool kAcross, size_t... kIndex>
constexpr std::array<TileFunction<typename Operation::Sum>, sizeof...(kIndex)> word_tiles(
    std::index_sequence<kIndex...>) {
  return {&word_sums<Operation, static_cast<int>(kIndex) / kWideVectors + 1,
                     static_cast<int>(kIndex) % kWideVectors + 1, 1, kAcross>...};
}

// For `width` columns, or two whole panels and at most two rows that are not packed.
template <class Operation, bool kAcross>
TileFunction<typename Operation::Sum> word_tile(int64_t rows, int64_t width) {
  static constexpr auto kTiles =
      word_tiles<Operation, kAcross>(std::make_index_sequence<kTileRows * kWideVectors>());
  return kTiles[static_cast<size_t>((rows - 1) * kWideVectors + width / kWideLanes - 1)];
}
template <class Operation>
TileFunction<typename Operation::Sum> word_tile_of_panels(int64_t rows) {
  return rows == 1 ? &word_sums<Operation, 1, kWideVectors, kWidePanels, false>
                   : &word_sums<Operation, 2, kWideVectors, kWidePanels, false>;
}

}  // namespace
}  // namespace gloss::kernels
