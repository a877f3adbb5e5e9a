// Products of bfloat16 by AVX512_BF16: rounding, packing and the register tile. Only where
// precision_served(Precision::bfloat16).
//
// A word holds two k, the even one in its lower half. Numbers are rounded to nearest, ties to even; infinity
// and NaN pass, subnormals become zero. A step adds the product of the odd k to the sum and then that of the
// even k, each with a rounding to float (vdpbf16ps).
#pragma once

#include "gloss/kernels/gemm_task.h"

namespace gloss::kernels {

inline constexpr int64_t kBf16PerStep = 2;

// The tile for `rows` of A and `width` columns of one panel, or with `together` for two whole panels and at
// most two rows that are not packed.
TileFunction<float> bf16_tile(bool across, int64_t rows, int64_t width, bool together);

// words [ceil(count / 2)] = x [count], rounded.
void bf16_round(const float* x, int64_t count, std::byte* words);

// Columns [col, col + cols) and k [k0, k0 + count) of op(B), one panel of `width` columns, a multiple of 16.
void bf16_pack_panel(Matrix<const float> b, Transpose tb, int64_t col, int64_t cols, int64_t k0,
                     int64_t count, int64_t width, std::byte* out);

// Rows of a transposed A (stored [K, M]): out holds for each tile its steps of as many words as it has rows
// of C.
void bf16_pack_rows(Matrix<const float> a, int64_t row, const RowTiles& tiles, int64_t k0, int64_t count,
                    std::byte* out);

}  // namespace gloss::kernels
