#include "support/gradient_check.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "support/random.h"

namespace gloss::tests {

using autograd::Tape;
using autograd::Var;

namespace {

struct Checked {
  std::string name;
  std::span<double> values;
  std::vector<double> gradient;
};

Tape<double> make_tape(Context& context, const GradientCheck& options) {
  return Tape<double>(context, Tape<double>::Mode::train, RandomKey(options.seed));
}

Tensor<double> upstream_of(Context& context, const Shape& shape, size_t result,
                           const GradientCheck& options) {
  return random_tensor<double>(context.arena, shape, options.seed + 1 + result);
}

// <upstream, results>, with the inputs as constants.
double loss(Context& context, const std::vector<NamedTensor>& inputs, const Operation& operation,
            const GradientCheck& options) {
  Tape<double> tape = make_tape(context, options);
  std::vector<Var<double>> constants;
  for (const NamedTensor& input : inputs) constants.emplace_back(input.value);
  const std::vector<Var<double>> results = operation(tape, constants);
  double sum = 0;
  for (size_t r = 0; r < results.size(); ++r) {
    const Tensor<double> up = upstream_of(context, results[r].shape(), r, options);
    for (int64_t i = 0; i < up.size(); ++i) sum += up.data()[i] * results[r].value().data()[i];
  }
  return sum;
}

std::vector<Checked> differentiate(Context& context, const std::vector<NamedTensor>& inputs,
                                   const Operation& operation, const GradientCheck& options) {
  Tape<double> tape = make_tape(context, options);
  if (options.parameters) std::ranges::fill(options.parameters->gradients(), 0.0);
  std::vector<Var<double>> leaves;
  for (const NamedTensor& input : inputs) leaves.push_back(tape.leaf(input.value));
  std::vector<std::pair<Var<double>, Tensor<double>>> upstream;
  const std::vector<Var<double>> results = operation(tape, leaves);
  for (size_t r = 0; r < results.size(); ++r) {
    upstream.emplace_back(results[r], upstream_of(context, results[r].shape(), r, options));
  }
  tape.backward(std::move(upstream));
  std::vector<Checked> checked;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Tensor<double> gradient = tape.gradient(leaves[i]);
    checked.push_back(
        {inputs[i].name, inputs[i].value.values(), {gradient.values().begin(), gradient.values().end()}});
  }
  if (options.parameters) {
    for (const autograd::Parameter<double>& parameter : options.parameters->all()) {
      checked.push_back({parameter.parts.front().name,
                         parameter.value.values(),
                         {parameter.gradient.values().begin(), parameter.gradient.values().end()}});
    }
  }
  return checked;
}

}  // namespace

std::string check_gradients(Context& context, const std::vector<NamedTensor>& inputs,
                            const Operation& operation, const GradientCheck& options) {
  double worst = 0;
  std::string message;
  const double h = options.step;
  for (const Checked& checked : differentiate(context, inputs, operation, options)) {
    const double middle = loss(context, inputs, operation, options);
    std::vector<double> left, right;
    double squares = 0;
    for (double& x : checked.values) {
      const double x0 = x;
      x = x0 + h;
      right.push_back((loss(context, inputs, operation, options) - middle) / h);
      x = x0 - h;
      left.push_back((middle - loss(context, inputs, operation, options)) / h);
      x = x0;
      const double central = (left.back() + right.back()) / 2;
      squares += central * central;
    }
    const double norm = std::sqrt(squares / std::max<double>(1, static_cast<double>(left.size())));
    for (size_t i = 0; i < left.size(); ++i) {
      const double central = (left[i] + right[i]) / 2, got = checked.gradient[i];
      const double scale = std::max({std::abs(central), norm, 1e-3});
      const bool kink = std::abs(left[i] - right[i]) > 1e-2 * scale;
      // One-sided differences are good to h times the curvature only.
      const double error = kink ? std::min(std::abs(got - left[i]), std::abs(got - right[i])) / scale * 1e-3
                                : std::abs(got - central) / scale;
      if (error <= worst) continue;  // false for NaN
      worst = std::isnan(error) ? INFINITY : error;
      message = fmt::format(
          "{}[{}]: derivative {}, finite difference {} ({} on the left, {} on the right), error {:.3g}",
          checked.name, i, got, central, left[i], right[i], worst);
    }
  }
  return worst > options.tolerance ? message : "";
}

}  // namespace gloss::tests
