// Random test data by seed.
#pragma once

#include <cstdint>
#include <vector>

#include "gloss/base/random.h"
#include "gloss/tensor/ragged.h"
#include "gloss/tensor/tensor.h"

namespace gloss::tests {

template <class T>
std::vector<T> random_values(int64_t count, uint64_t seed, double scale = 1) {
  std::vector<T> values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<T>(scale * RandomKey(seed).normal(i));
  }
  return values;
}

template <class T>
Tensor<T> random_tensor(Arena& arena, Shape shape, uint64_t seed, double scale = 1) {
  return Tensor<T>::from(arena, shape, random_values<T>(shape.size(), seed, scale));
}

inline std::vector<int32_t> random_ids(int64_t count, int64_t bound, uint64_t seed) {
  std::vector<int32_t> ids(static_cast<size_t>(count));
  for (size_t i = 0; i < ids.size(); ++i) {
    ids[i] = static_cast<int32_t>(RandomKey(seed).below(i, static_cast<uint64_t>(bound)));
  }
  return ids;
}

// Sequences of these lengths, each with the end symbol last and ids from `first` to below `bound` before it.
inline Tokens random_sequences(const std::vector<int64_t>& lengths, int32_t first, int32_t bound, int32_t end,
                               uint64_t seed) {
  Tokens tokens;
  tokens.offsets = Offsets::of_lengths(lengths);
  for (size_t s = 0; s < lengths.size(); ++s) {
    for (const int32_t id : random_ids(lengths[s] - 1, bound - first, seed + s))
      tokens.rows.push_back(first + id);
    tokens.rows.push_back(end);
  }
  return tokens;
}

}  // namespace gloss::tests
