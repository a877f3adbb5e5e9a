// How a model knows the order of its tokens. Sinusoidal positions (Vaswani et al. 2017, 3.5) are computed
// when needed: there is no longest sequence.
#pragma once

#include <cstdint>

#include "gloss/tensor/tensor.h"

namespace gloss::nn {

// With the angle a(p, i) = p / 10000^(2i/d): `interleaved` is the paper's sin a(p, 0), cos a(p, 0), sin a(p,
// 1), ...; `halves` puts all sines before all cosines, as Marian folders of Hugging Face expect. `relative`
// adds nothing to embeddings: self-attention has a bias by distance instead (attention/relative_bias.h).
enum class PositionLayout { interleaved, halves, relative };

constexpr bool is_sinusoidal(PositionLayout layout) {
  return layout != PositionLayout::relative;
}

// Rows of positions first .. first + count - 1: [count, d]. An odd d is an error, and a layout without
// sinusoids.
template <class T>
Tensor<T> sinusoidal_positions(Arena& arena, int64_t first, int64_t count, int64_t d, PositionLayout layout);

}  // namespace gloss::nn
