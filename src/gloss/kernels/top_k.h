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
struct Better {
  bool operator()(const Ranked& a, const Ranked& b) const {
    return a.value > b.value || (a.value == b.value && a.index < b.index);
  }
};

// Columns of a part. A row is summed part by part, so that it need not be there as a whole: the same bits
// either way.
inline constexpr int64_t kRowPart = 512;

// The largest of the elements of a part, and the sum of e^(element - largest). {-infinity, 0} where all are
// -infinity; the sum is NaN where an element is NaN or +infinity.
struct PartOfSum {
  float largest = 0, sum = 0;
};
PartOfSum sum_exp(std::span<const float> part);  // of kRowPart elements, the last one of a row of fewer

// log(sum over i of e^row[i]), exact for values of any size: the log-softmax of element i is row[i] minus
// this. Equal bits on every instruction set from AVX2 up. Not a number where the row has no distribution: an
// element is NaN or +infinity, or none is above -infinity, or the row is empty.
float log_sum_exp(std::span<const float> row);
float log_sum_exp_of(std::span<const PartOfSum> parts);

// Fills `best` with the best.size() largest elements, the largest first, the lower index first among equals.
// The row must hold no NaN. Throws Error where the row is shorter than `best`.
void top_k(std::span<const float> row, std::span<Ranked> best);

// The same for a row that comes in parts, in their order: begin, then add each, whose first element has index
// `first`, then end. Places that no element above -infinity fills hold -infinity. NaN is passed over.
void top_k_begin(std::span<Ranked> best);
void top_k_add(std::span<const float> part, int32_t first, std::span<Ranked> best);
void top_k_end(std::span<Ranked> best);

}  // namespace gloss::kernels
