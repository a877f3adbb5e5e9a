// 16-bit floating point numbers as files hold them.
#pragma once

#include <bit>
#include <cstdint>

namespace gloss::io {

// IEEE 754 binary16 to binary32; exact for every input, NaN payloads included.
constexpr float half_to_float(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000u) << 16;
  const uint32_t exponent = (half >> 10) & 0x1Fu;
  const uint32_t fraction = half & 0x3FFu;
  if (exponent == 0x1F) return std::bit_cast<float>(sign | 0x7F800000u | (fraction << 13));
  if (exponent != 0) return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (fraction << 13));
  const float magnitude = static_cast<float>(fraction) * 0x1p-24f;  // zero and subnormal numbers
  return sign ? -magnitude : magnitude;
}

// bfloat16 is the upper half of binary32; the lower half is dropped, not rounded.
constexpr uint16_t float_to_bfloat16(float x) {
  return static_cast<uint16_t>(std::bit_cast<uint32_t>(x) >> 16);
}
constexpr float bfloat16_to_float(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

}  // namespace gloss::io
