// What readers and writers of model folders agree on beyond Hugging Face's layout.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gloss/tensor/tensor.h"

namespace gloss::models {

// A matrix of whole numbers (dtype I8, -127 to 127) has a tensor of float32 beside it, of this suffix, with a
// scale for each row: W[o, i] = numbers[o, i] * scales[o].
inline constexpr const char* kScaleSuffix = ".scale";
// In config.json: the precision that the weights were rounded to, and that products use where nobody says
// another.
inline constexpr const char* kPrecisionKey = "weight_precision";

// The output bias is a row [1, V] in files and a vector [V] here.
inline std::vector<int64_t> file_shape(const std::string& name, const Shape& shape) {
  if (name == "final_logits_bias") return {1, shape.size()};
  std::vector<int64_t> sizes;
  sizes.reserve(static_cast<size_t>(shape.rank()));
  for (int i = 0; i < shape.rank(); ++i) sizes.push_back(shape[i]);
  return sizes;
}

}  // namespace gloss::models
