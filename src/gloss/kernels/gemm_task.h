// What one task of a matrix product is told: shared by the dispatch (gemm_run.cc), the kernels (gemm-inl.h)
// and the other backend.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "gloss/kernels/epilogue.h"
#include "gloss/kernels/precision.h"

namespace gloss::kernels {

// The length of one chain of fused multiply-adds; part of the definition of the result.
inline constexpr int64_t kChain = 1024;
// Rows of C that one register tile holds at most (6 rows x 4 vectors fill 32 registers, 6 x 2 fill 16).
inline constexpr int64_t kTileRows = 6;
// Of AVX-512: vectors of a panel, and panels computed together for one or two rows, which have too few chains
// in one panel to hide the latency of an addition.
inline constexpr int kWideVectors = 4, kWidePanels = 2;
// Rows of A that stay in the second-level cache while panels of B pass: 96 x 1,024 floats are 384 KB.
inline constexpr int64_t kBlockRows = 16 * kTileRows;

constexpr int64_t ceil_div(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}
constexpr int64_t multiple(int64_t a, int64_t step) {
  return ceil_div(a, step) * step;
}

// B is cut into panels of panel_width() columns; a panel holds its k rows one after another. The last one
// is as narrow as whole vectors allow, its spare columns are zero.
struct Product {
  Precision precision = Precision::float32;
  Matrix<const float> a, b;
  Transpose ta = Transpose::no, tb = Transpose::no;
  // Rows of an A that is not transposed in words of the precision, where they were rounded before.
  const std::byte* words = nullptr;
  int64_t words_stride = 0;               // bytes
  const float* row_scales = nullptr;      // int8: [M]; of those words
  const float* channel_scales = nullptr;  // int8: [N]
  const int32_t* starts = nullptr;        // int8 by VNNI: [N up to whole vectors]; null: by pairs
  const std::byte* panels = nullptr;      // all of B packed before; b is not read then
  Matrix<float> c;                        // [M, N]
  int64_t k = 0;
  Accumulate accumulate = Accumulate::no;
  Epilogue<float> epilogue;
};

// Whether a side of dW = dY^T X, whose steps are tokens, is read as it stands rather than packed: where steps
// are so near each other that they share the caches. dW of 128 x 128 over 4,000 tokens rose from 94 to 110
// GFLOP/s by that, of 256 x 256 from 89 to 95; of 512 x 512 it would fall.
inline bool read_in_place(const Product& p, const Matrix<const float>& side) {
  return p.precision == Precision::float32 && side.stride <= 256;
}

// The part of C that one task computes.
struct Block {
  int64_t row = 0, rows = 0, col = 0, cols = 0;  // col is a multiple of the panel width
};

// Rows are dealt to register tiles evenly, 13 as 5 + 4 + 4: a tile of one row would wait for its additions.
struct RowTiles {
  explicit RowTiles(int64_t rows)
      : count(ceil_div(rows, kTileRows)), base(count ? rows / count : 0), more(rows - base * count) {}
  int64_t count, base, more;
  int64_t begin(int64_t tile) const { return tile * base + std::min(tile, more); }
  // Where a tile of k words a row begins in packed rows, in words. The gap keeps tiles, which begin 24 KB
  // apart, out of each other's cache sets.
  static constexpr int64_t kGap = 16;
  int64_t packed(int64_t tile, int64_t k) const { return begin(tile) * k + tile * kGap; }
};

// A word of A holds the k of one step; a step of B is a row of its panel.
inline constexpr int64_t kWordBytes = 4;
inline constexpr int64_t kPairPerStep = 2;  // of int8 without VNNI

// Bytes from one row of words to the next. The spare cache line keeps rows out of each other's cache sets.
constexpr int64_t words_stride(int64_t steps) {
  return multiple(steps * kWordBytes, 64) + 64;
}

// What one register tile multiplies. Strides are in bytes.
struct TileInput {
  const std::byte* a = nullptr;
  int64_t a_stride = 0;  // between rows of C, or between steps where those rows stand side by side
  const std::byte* b = nullptr;
  int64_t b_stride = 0;      // between steps
  int64_t panel_stride = 0;  // between panels computed together
  int64_t steps = 0;
  const int32_t* start = nullptr;  // [columns]: where sums of VNNI begin
};
// out [rows, columns] = sums over all steps, each from zero or `start`; `out_stride` counts elements.
template <class Sum>
using TileFunction = void (*)(const TileInput& in, Sum* out, int64_t out_stride);

template <class T>
const std::byte* bytes(const T* p) {
  return reinterpret_cast<const std::byte*>(p);
}

}  // namespace gloss::kernels
