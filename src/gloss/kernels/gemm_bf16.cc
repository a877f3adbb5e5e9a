#include "gloss/kernels/gemm_bf16.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "gloss/kernels/intrinsics.h"

// What follows is compiled for a CPU that has more than the one we build for: no function of the standard
// library's may be born here.
HWY_PUSH_ATTRIBUTES("avx512f,avx512bw,avx512vl,avx512bf16")

#include "gloss/kernels/gemm_tile512-inl.h"

namespace gloss::kernels {
namespace {

struct Bf16Operation {
  using Sum = float;
  using Vector = __m512;
  static Vector start(const TileInput&, int) { return _mm512_setzero_ps(); }
  static Vector add_product(Vector sum, __m512i a, __m512i b) {
    return _mm512_dpbf16_ps(sum, reinterpret_cast<__m512bh>(a), reinterpret_cast<__m512bh>(b));
  }
  static void store(float* to, Vector sum) { _mm512_storeu_ps(to, sum); }
};

// The first `count` of 16 lanes; all for 16 and more.
__mmask16 first_lanes(int64_t count) {
  return count >= 16  ? __mmask16(0xffff)
         : count <= 0 ? __mmask16(0)
                      : static_cast<__mmask16>((1u << count) - 1);
}
__m512 load_lanes(const float* from, __mmask16 lanes) {
  return _mm512_maskz_loadu_ps(lanes, from);
}
// 32 numbers of bfloat16: those of `low`, then those of `high`.
__m512i rounded(__m512 low, __m512 high) {
  return reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(high, low));
}
// Words of two k from a row of the even k and one of the odd.
__m512i words_of(__m512 even, __m512 odd, __m512i order) {
  return _mm512_permutexvar_epi16(order, rounded(even, odd));
}
// 0 16 1 17 ...: brings the lower and the upper half together.
__m512i pairing_order() {
  const __m512i lanes = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
  return _mm512_or_si512(lanes, _mm512_slli_epi32(_mm512_add_epi32(lanes, _mm512_set1_epi32(16)), 16));
}

// rows[j] word i <-> rows[i] word j.
void transpose_words(__m512i (&rows)[16]) {
  __m512i t[16];
#pragma GCC unroll 16
  for (int i = 0; i < 16; i += 2) {
    t[i] = _mm512_unpacklo_epi32(rows[i], rows[i + 1]);
    t[i + 1] = _mm512_unpackhi_epi32(rows[i], rows[i + 1]);
  }
#pragma GCC unroll 16
  for (int i = 0; i < 16; i += 4) {
    rows[i] = _mm512_unpacklo_epi64(t[i], t[i + 2]);
    rows[i + 1] = _mm512_unpackhi_epi64(t[i], t[i + 2]);
    rows[i + 2] = _mm512_unpacklo_epi64(t[i + 1], t[i + 3]);
    rows[i + 3] = _mm512_unpackhi_epi64(t[i + 1], t[i + 3]);
  }
  // Now rows[4 g + c] holds in its quarter q the words 4 q + c of rows 4 g to 4 g + 3.
#pragma GCC unroll 4
  for (int c = 0; c < 4; ++c) {
    t[c] = _mm512_shuffle_i32x4(rows[c], rows[4 + c], 0x88);           // quarters 0 2 of groups 0, 1
    t[4 + c] = _mm512_shuffle_i32x4(rows[c], rows[4 + c], 0xdd);       // 1 3
    t[8 + c] = _mm512_shuffle_i32x4(rows[8 + c], rows[12 + c], 0x88);  // of groups 2, 3
    t[12 + c] = _mm512_shuffle_i32x4(rows[8 + c], rows[12 + c], 0xdd);
  }
#pragma GCC unroll 4
  for (int c = 0; c < 4; ++c) {
    rows[c] = _mm512_shuffle_i32x4(t[c], t[8 + c], 0x88);           // quarter 0 of all groups
    rows[4 + c] = _mm512_shuffle_i32x4(t[4 + c], t[12 + c], 0x88);  // 1
    rows[8 + c] = _mm512_shuffle_i32x4(t[c], t[8 + c], 0xdd);       // 2
    rows[12 + c] = _mm512_shuffle_i32x4(t[4 + c], t[12 + c], 0xdd);
  }
}

// A panel of a transposed B: `cols` rows of `from`, each with its `count` k one after another. Sixteen rows
// at a time, which the hardware still fetches ahead.
void pack_rows_as_panel(const float* from, int64_t stride, int64_t cols, int64_t count, int64_t width,
                        std::byte* out) {
  const int64_t steps = ceil_div(count, kBf16PerStep);
  for (int64_t j = 0; j < width; j += 16) {
    for (int64_t step = 0; step < steps; step += 16) {
      const int64_t k = step * kBf16PerStep;
      const __mmask16 low = first_lanes(count - k), high = first_lanes(count - k - 16);
      __m512i words[16];
#pragma GCC unroll 16
      for (int i = 0; i < 16; ++i) {
        const bool there = j + i < cols;
        const float* row = from + (there ? j + i : 0) * stride + k;
        words[i] = rounded(load_lanes(row, there ? low : 0), load_lanes(row + 16, there ? high : 0));
        if (k + 128 < count) {
          __builtin_prefetch(row + 128);
          __builtin_prefetch(row + 144);
        }
      }
      transpose_words(words);
      const int64_t live = std::min<int64_t>(16, steps - step);
      std::byte* to = out + (step * width + j) * kWordBytes;
      for (int64_t i = 0; i < live; ++i) _mm512_storeu_si512(to + i * width * kWordBytes, words[i]);
    }
  }
}

// Slices of rows are too short for the hardware to guess the next one, so we ask for it some rows ahead.
constexpr int64_t kRowsAhead = 32;
void fetch_slices(const float* row, int64_t stride, int64_t cols) {
  for (int64_t j = 0; j < cols; j += 16) {
    __builtin_prefetch(row + j);
    __builtin_prefetch(row + stride + j);
  }
}

// One step of `cols` columns: words of `even` and `odd`, which may be null for zero.
void pack_step(const float* even, const float* odd, int64_t cols, int64_t width, __m512i order,
               std::byte* out) {
  for (int64_t j = 0; j < width; j += 16) {
    const __mmask16 lanes = first_lanes(cols - j);
    const __m512 upper = odd ? load_lanes(odd + j, lanes) : _mm512_setzero_ps();
    _mm512_storeu_si512(out + j * kWordBytes, words_of(load_lanes(even + j, lanes), upper, order));
  }
}

}  // namespace

TileFunction<float> bf16_tile(bool across, int64_t rows, int64_t width, bool together) {
  if (together) return word_tile_of_panels<Bf16Operation>(rows);
  return across ? word_tile<Bf16Operation, true>(rows, width) : word_tile<Bf16Operation, false>(rows, width);
}

void bf16_round(const float* x, int64_t count, std::byte* words) {
  int64_t k = 0;
  for (; k + 32 <= count; k += 32) {
    _mm512_storeu_si512(words + 2 * k, rounded(_mm512_loadu_ps(x + k), _mm512_loadu_ps(x + k + 16)));
  }
  if (k < count) {
    const __m512i rest = rounded(load_lanes(x + k, first_lanes(count - k)),
                                 load_lanes(x + k + 16, first_lanes(count - k - 16)));
    _mm512_mask_storeu_epi32(words + 2 * k, first_lanes(ceil_div(count - k, kBf16PerStep)), rest);
  }
}

void bf16_pack_panel(Matrix<const float> b, Transpose tb, int64_t col, int64_t cols, int64_t k0,
                     int64_t count, int64_t width, std::byte* out) {
  if (tb == Transpose::yes) return pack_rows_as_panel(b.row(col) + k0, b.stride, cols, count, width, out);
  const __m512i order = pairing_order();
  for (int64_t k = 0; k < count; k += kBf16PerStep) {
    const float* even = b.row(k0 + k) + col;
    if (k + kRowsAhead + 1 < count) fetch_slices(even + kRowsAhead * b.stride, b.stride, cols);
    pack_step(even, k + 1 < count ? even + b.stride : nullptr, cols, width, order, out);
    out += width * kWordBytes;
  }
}

void bf16_pack_rows(Matrix<const float> a, int64_t row, const RowTiles& tiles, int64_t k0, int64_t count,
                    std::byte* out) {
  static_assert(kTileRows <= 8 && RowTiles::kGap >= 8);
  const __m512i order = pairing_order();
  const int64_t all = tiles.begin(tiles.count), steps = ceil_div(count, kBf16PerStep);
  // Some steps at a time, so that words are not read again while they are on their way to the cache.
  constexpr int64_t kSteps = 16, kSpare = 16;
  alignas(64) std::array<std::array<uint32_t, kBlockRows + kSpare>, kSteps> words;
  for (int64_t step = 0; step < steps; step += kSteps) {
    const int64_t here = std::min(kSteps, steps - step);
    for (int64_t i = 0; i < here; ++i) {
      const int64_t k = (step + i) * kBf16PerStep;
      const float* even = a.row(k0 + k) + row;
      if (k + kRowsAhead + 1 < count) fetch_slices(even + kRowsAhead * a.stride, a.stride, all);
      pack_step(even, k + 1 < count ? even + a.stride : nullptr, all, multiple(all, 16), order,
                reinterpret_cast<std::byte*>(words[static_cast<size_t>(i)].data()));
    }
    for (int64_t tile = 0; tile < tiles.count; ++tile) {
      const int64_t begin = tiles.begin(tile), rows = tiles.begin(tile + 1) - begin;
      std::byte* to = out + kWordBytes * (tiles.packed(tile, steps) + step * rows);
      // Eight words at a time: those too many are written over by the next step, or fall into the gap between
      // tiles.
      for (int64_t i = 0; i < here; ++i, to += rows * kWordBytes) {
        const uint32_t* from = words[static_cast<size_t>(i)].data() + begin;
        _mm256_storeu_si256(reinterpret_cast<__m256i_u*>(to),
                            _mm256_loadu_si256(reinterpret_cast<const __m256i_u*>(from)));
      }
    }
  }
}

}  // namespace gloss::kernels

HWY_POP_ATTRIBUTES
