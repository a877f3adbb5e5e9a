// What the tests of the recurrent layers share.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "gloss/nn/gru.h"
#include "support/compare.h"
#include "support/golden.h"
#include "support/random.h"

namespace gloss::nn {

using autograd::ParameterSet;
using autograd::Tape;
using autograd::Var;

// Units with random parameters and gradients.
template <class T>
struct Units {
  Units(Context& context, const GruShape& shape, uint64_t seed = 7)
      : forward(parameters, "forward.", shape), backward(parameters, "backward.", shape) {
    parameters.allocate(context.arena);
    parameters.initialise(seed);
    // Biases start as zeros and gains as ones, which would hide mistakes.
    parameters.each_part([&](const std::string& name, const Tensor<T>& value) {
      if (value.shape().rank() > 1) return;
      for (int64_t i = 0; i < value.size(); ++i) {
        value.data()[i] += static_cast<T>(0.3 * RandomKey(seed).with(name).normal(static_cast<uint64_t>(i)));
      }
    });
    parameters.allocate_gradients(context.arena);
  }
  ParameterSet<T> parameters;
  Gru<T> forward, backward;
};

// Values and gradients by name.
template <class T>
struct Named {
  Tensor<T> value;
  std::span<T> gradient;
};
template <class T>
std::map<std::string, Named<T>> by_name(const ParameterSet<T>& parameters) {
  std::map<std::string, Named<T>> all;
  parameters.each_part([&](const std::string& name, const Tensor<T>& value) {
    const auto at = static_cast<size_t>(value.data() - parameters.values().data());
    all[name] = {value, parameters.gradients().empty()
                            ? std::span<T>()
                            : parameters.gradients().subspan(at, static_cast<size_t>(value.size()))};
  });
  return all;
}

inline const std::vector<GruShape>& gru_shapes(int64_t d_in = 5, int64_t d_h = 6) {
  static std::map<std::pair<int64_t, int64_t>, std::vector<GruShape>> all;
  std::vector<GruShape>& shapes = all[{d_in, d_h}];
  if (shapes.empty()) {
    for (const ResetGate reset : {ResetGate::after, ResetGate::before}) {
      for (const bool norm : {false, true}) shapes.push_back({d_in, d_h, reset, norm});
    }
  }
  return shapes;
}
inline std::string text(const GruShape& shape) {
  return std::string(shape.reset == ResetGate::after ? "reset after" : "reset before") +
         (shape.layer_norm ? ", normalised" : "");
}

// Allocates parameters whose names are those in the file, and reads them.
template <class T>
void read_parameters(Context& context, const tests::Golden& golden, ParameterSet<T>& parameters) {
  parameters.allocate(context.arena);
  parameters.allocate_gradients(context.arena);
  for (const auto& [name, parameter] : by_name(parameters)) {
    const Tensor<T> from = golden.read<T>(context.arena, name);
    ASSERT_EQ(from.size(), parameter.value.size()) << name;
    std::ranges::copy(from.values(), parameter.value.values().begin());
  }
}
template <class T>
void expect_gradients(Context& context, const tests::Golden& golden, const ParameterSet<T>& parameters) {
  for (const auto& [name, parameter] : by_name(parameters)) {
    const std::vector<T> got(parameter.gradient.begin(), parameter.gradient.end());
    EXPECT_TRUE(tests::close(got, golden.read<double>(context.arena, "grad." + name), tests::kTolerance<T>))
        << name;
  }
}

// Padded [sequences, longest, d] -> [tokens, d].
template <class T>
Tensor<T> live_rows(Arena& arena, const Tensor<T>& padded, const Offsets& offsets) {
  const Tensor<T> live(arena, {offsets.total(), padded.cols()});
  for (int64_t s = 0; s < offsets.count(); ++s) {
    std::copy_n(padded.row(s * padded.shape()[1]), offsets.length(s) * padded.cols(),
                live.row(offsets.begin(s)));
  }
  return live;
}

template <class T>
Ragged<Var<T>> ragged(Var<T> rows, const std::vector<int64_t>& lengths) {
  return {std::move(rows), Offsets::of_lengths(lengths)};
}

}  // namespace gloss::nn
