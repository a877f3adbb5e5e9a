// The plain reference of the activation functions, in double and from the C library.
#pragma once

#include <cmath>
#include <numbers>

#include "gloss/kernels/matrix.h"

namespace gloss::kernels::reference {

inline double activate(Activation activation, double x) {
  switch (activation) {
    case Activation::none:
      return x;
    case Activation::relu:
      return x > 0 ? x : 0;
    case Activation::swish:
      return x / (1 + std::exp(-x));
    case Activation::gelu:
      return x * 0.5 * std::erfc(-x / std::numbers::sqrt2);
    case Activation::tanh:
      return std::tanh(x);
  }
  return x;
}

// At the input x; for tanh at the output x, as the kernels have it.
inline double activation_slope(Activation activation, double x) {
  switch (activation) {
    case Activation::none:
      return 1;
    case Activation::relu:
      return x > 0 ? 1 : 0;
    case Activation::swish: {
      const double s = 1 / (1 + std::exp(-x));
      return s + x * s * (1 - s);
    }
    case Activation::gelu:
      return 0.5 * std::erfc(-x / std::numbers::sqrt2) +
             x * std::exp(-x * x / 2) / std::sqrt(2 * std::numbers::pi);
    case Activation::tanh:
      return (1 - x) * (1 + x);
  }
  return 1;
}

}  // namespace gloss::kernels::reference
