// What one task of a float product is told: shared by the dispatch (gemm.cc) and the kernels (gemm-inl.h).
#pragma once

#include <cstdint>

#include "gloss/kernels/gemm.h"

namespace gloss::kernels {

// The length of one chain of fused multiply-adds; part of the definition of the result.
inline constexpr int64_t kChain = 1024;
// Rows of C that one register tile holds at most (6 rows x 4 vectors fill 32 registers, 6 x 2 fill 16).
inline constexpr int64_t kTileRows = 6;
// Rows of A that stay in the second-level cache while panels of B pass: 96 x 1,024 floats are 384 KB.
inline constexpr int64_t kBlockRows = 16 * kTileRows;

// B is cut into panels of panel_width() columns; a panel holds its k rows one after another. The last one
// is as narrow as whole vectors allow, its spare columns are zero.
struct FloatProduct {
  Matrix<const float> a, b;
  Transpose ta = Transpose::no, tb = Transpose::no;
  const float* panels = nullptr;  // all of B packed before; b is not read then
  Matrix<float> c;                // [M, N]
  int64_t k = 0;
  Accumulate accumulate = Accumulate::no;
  Epilogue<float> epilogue;
};

// The part of C that one task computes.
struct Block {
  int64_t row = 0, rows = 0, col = 0, cols = 0;  // col is a multiple of the panel width
};

}  // namespace gloss::kernels
