// Rounding to bfloat16 once more, by arithmetic instead of bits.
#pragma once

#include <cmath>
#include <limits>

#include "gloss/kernels/matrix.h"

namespace gloss::kernels {

// x with eight significant bits, ties to even; subnormals are zero, what exceeds the largest is infinity.
inline float to_bf16(float x) {
  if (std::isnan(x) || std::isinf(x)) return x;
  if (std::abs(x) < std::numeric_limits<float>::min()) return std::copysign(0.0f, x);
  int exponent = 0;
  const double mantissa = std::frexp(static_cast<double>(x), &exponent);  // in [0.5, 1)
  return static_cast<float>(std::ldexp(std::nearbyint(mantissa * 256), exponent - 8));
}

inline void round_to_bf16(const Matrix<float>& m) {
  for (int64_t i = 0; i < m.rows; ++i) {
    for (int64_t j = 0; j < m.cols; ++j) m.row(i)[j] = to_bf16(m.row(i)[j]);
  }
}

}  // namespace gloss::kernels
