// Random test data by seed.
#pragma once

#include <cstdint>
#include <vector>

#include "gloss/base/random.h"
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

}  // namespace gloss::tests
