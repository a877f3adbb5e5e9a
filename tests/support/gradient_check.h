// The one check of derivatives: float64 finite differences through an operation's front door.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "gloss/autograd/tape.h"

namespace gloss::tests {

struct NamedTensor {
  std::string name;
  Tensor<double> value;
};

using Operation = std::function<std::vector<autograd::Var<double>>(
    autograd::Tape<double>& tape, const std::vector<autograd::Var<double>>& inputs)>;

struct GradientCheck {
  double step = 1e-5;
  double tolerance = 1e-6;  // of the error, relative to the derivative or the root mean square of its tensor
  uint64_t seed = 20261130;
  // Parameters the operation uses by itself; every element is checked like an input. With gradients.
  autograd::ParameterSet<double>* parameters = nullptr;
};

// Differentiates <upstream, results> for random upstream gradients with respect to every element of every
// input and parameter, and compares with (f(x + h) - f(x - h)) / 2h. All passes run on training tapes of one
// key, so dropout masks stay. Where the two one-sided differences disagree there is a kink within a step: the
// derivative must then be that of one side. Returns "" or the worst element of all in words.
std::string check_gradients(Context& context, const std::vector<NamedTensor>& inputs,
                            const Operation& operation, const GradientCheck& options = {});

}  // namespace gloss::tests
