#include "gloss/nn/positions.h"

#include <cmath>

namespace gloss::nn {

template <class T>
Tensor<T> sinusoidal_positions(Arena& arena, int64_t first, int64_t count, int64_t d, PositionLayout layout) {
  require(d > 0 && d % 2 == 0,
          "sinusoidal positions come in pairs of sine and cosine: d_model must be even, not {}", d);
  require(is_sinusoidal(layout), "relative positions are no rows to add to embeddings");
  const Tensor<T> rows(arena, {count, d});
  for (int64_t i = 0; i < d / 2; ++i) {
    const double frequency = std::pow(10000.0, -2.0 * static_cast<double>(i) / static_cast<double>(d));
    const bool halves = layout == PositionLayout::halves;
    const int64_t sine = halves ? i : 2 * i, cosine = halves ? d / 2 + i : 2 * i + 1;
    for (int64_t p = 0; p < count; ++p) {
      const double angle = static_cast<double>(first + p) * frequency;
      rows(p, sine) = static_cast<T>(std::sin(angle));
      rows(p, cosine) = static_cast<T>(std::cos(angle));
    }
  }
  return rows;
}

template Tensor<float> sinusoidal_positions(Arena&, int64_t, int64_t, int64_t, PositionLayout);
template Tensor<double> sinusoidal_positions(Arena&, int64_t, int64_t, int64_t, PositionLayout);

}  // namespace gloss::nn
