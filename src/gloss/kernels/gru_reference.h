// The plain reference of a gated recurrent unit: one unit at a time in double, its derivatives by dual
// numbers. Slow; for tests and readers.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>

#include "gloss/kernels/gru.h"

namespace gloss::kernels::reference {

// A number and its derivative by something.
struct Dual {
  double value = 0, slope = 0;
};
inline Dual operator+(const Dual& a, const Dual& b) {
  return {a.value + b.value, a.slope + b.slope};
}
inline Dual operator*(const Dual& a, const Dual& b) {
  return {a.value * b.value, a.slope * b.value + a.value * b.slope};
}
inline Dual sigmoid(const Dual& x) {
  const double y = 1 / (1 + std::exp(-x.value));
  return {y, y * y * std::exp(-x.value) * x.slope};
}
inline Dual tanh(const Dual& x) {
  const double c = std::cosh(x.value);
  return {std::tanh(x.value), x.slope / (c * c)};
}

// What a unit reads, in this order: i_r, i_z, i_n (from the input), s_r, s_z, s_n (from the state), h.
using GruInputs = std::array<double, 7>;

struct GruUnit {
  Dual r, z, n, reset, next;  // reset: r h; next: h'
};
// With derivatives by input `by`. Where the reset comes before the product, s_n is W_hn (r h) + b_hn, which
// others compute.
inline GruUnit gru_unit(ResetGate reset, const GruInputs& inputs, size_t by = 7) {
  std::array<Dual, 7> x;
  for (size_t i = 0; i < 7; ++i) x[i] = {inputs[i], i == by ? 1.0 : 0.0};
  GruUnit unit;
  unit.r = sigmoid(x[0] + x[3]);
  unit.z = sigmoid(x[1] + x[4]);
  unit.n = tanh(reset == ResetGate::after ? x[2] + unit.r * x[5] : x[2] + x[5]);
  unit.reset = unit.r * x[6];
  unit.next = (Dual{1} + Dual{-1} * unit.z) * unit.n + unit.z * x[6];
  return unit;
}

// The gradient of each input, when dnext reaches h' and dreset reaches r h.
inline GruInputs gru_unit_gradient(ResetGate reset, const GruInputs& inputs, double dnext, double dreset) {
  GruInputs gradient{};
  for (size_t i = 0; i < 7; ++i) {
    const GruUnit unit = gru_unit(reset, inputs, i);
    gradient[i] = dnext * unit.next.slope + dreset * unit.reset.slope;
  }
  return gradient;
}

}  // namespace gloss::kernels::reference
