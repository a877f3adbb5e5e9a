// bfloat16 as a form to keep numbers in: half the memory of float, whose upper half it is. Plain integer
// operations, so that every instruction set has it and gives the same bits; products in bfloat16 are another
// matter (precision.h).
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

namespace gloss::kernels {

struct Bfloat16 {
  uint16_t bits = 0;
  bool operator==(const Bfloat16&) const = default;
};

// What is computed with numbers that are kept as `Stored`.
template <class Stored>
using Widened = std::conditional_t<std::is_same_v<Stored, Bfloat16>, float, Stored>;

// to [count] = from [count] in the form of `to`. To bfloat16: the nearest number, of two the even one;
// subnormal numbers as all others, infinity beyond the largest, and NaN stays NaN.
template <class T>
void store_numbers(const T* from, int64_t count, T* to) {
  std::copy_n(from, count, to);
}
void store_numbers(const float* from, int64_t count, Bfloat16* to);

}  // namespace gloss::kernels
