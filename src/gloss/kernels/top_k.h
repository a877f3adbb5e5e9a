// What search asks of a row of logits: its normaliser and its best few, without sorting the vocabulary.
#pragma once

#include <cstdint>
#include <span>

namespace gloss::kernels {

struct Ranked {
  float value = 0;
  int32_t index = 0;
  bool operator==(const Ranked&) const = default;
};

// log(sum over i of e^row[i]), exact for values of any size: the log-softmax of element i is row[i] minus
// this. Equal bits on every instruction set from AVX2 up. Not a number where the row has no distribution: an
// element is NaN or +infinity, or none is above -infinity, or the row is empty.
float log_sum_exp(std::span<const float> row);

// Fills `best` with the best.size() largest elements, the largest first, the lower index first among equals.
// The row must hold no NaN. Throws Error where the row is shorter than `best`.
void top_k(std::span<const float> row, std::span<Ranked> best);

}  // namespace gloss::kernels
