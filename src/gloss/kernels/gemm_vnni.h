// Products of int8 by AVX512_VNNI: rounding and the register tile. Only where vnni_served().
//
// The instruction multiplies unsigned by signed bytes. So a word holds four k of A with 128 added, and sums
// begin at -128 times the sum of their column of B; they wrap, so that the end is exact wherever it fits into
// 32 bits.
#pragma once

#include "gloss/kernels/gemm_task.h"

namespace gloss::kernels {

inline constexpr int64_t kVnniPerStep = 4;

// The tile for `rows` of A and `width` columns of one panel, or with `together` for two whole panels and at
// most two rows.
TileFunction<int32_t> vnni_tile(int64_t rows, int64_t width, bool together);

// words [ceil(count / 4)] = 128 + x [count] * factor, rounded to nearest even; |x * factor| < 128.
void vnni_round(const float* x, int64_t count, float factor, std::byte* words);

}  // namespace gloss::kernels
