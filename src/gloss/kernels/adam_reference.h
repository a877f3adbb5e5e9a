// The plain reference of Adam: algorithm 1 of Kingma and Ba 2015, one number at a time.
#pragma once

#include <cmath>
#include <cstdint>

#include "gloss/kernels/adam.h"

namespace gloss::kernels::reference {

inline void adam(const Adam& o, double gradient, double& value, double& first, double& second) {
  const double g = gradient * o.gradient_scale;
  first = o.beta1 * first + (1 - o.beta1) * g;
  second = o.beta2 * second + (1 - o.beta2) * g * g;
  const double m_hat = first / (1 - std::pow(o.beta1, static_cast<double>(o.step)));
  const double v_hat = second / (1 - std::pow(o.beta2, static_cast<double>(o.step)));
  value -= o.learning_rate * m_hat / (std::sqrt(v_hat) + o.epsilon);
}

}  // namespace gloss::kernels::reference
