// What the tests of attention share.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "gloss/attention/multi_head.h"
#include "support/compare.h"
#include "support/random.h"

namespace gloss::attention {

using autograd::ParameterSet;
using autograd::Tape;
using autograd::Var;

// Padded [batch, heads, n, d] -> [batch * n, heads * d]: a token is a row.
template <class T>
Tensor<T> heads_to_rows(Arena& arena, const Tensor<T>& x) {
  const Shape& s = x.shape();
  const Tensor<T> rows(arena, {s[0] * s[2], s[1] * s[3]});
  for (int64_t i = 0; i < x.rows(); ++i) {
    const int64_t b = i / (s[1] * s[2]), h = i / s[2] % s[1], n = i % s[2];
    std::copy_n(x.row(i), s[3], rows.row(b * s[2] + n) + h * s[3]);
  }
  return rows;
}

// Side by side: [rows, a.cols + b.cols + ...].
template <class T>
Tensor<T> beside(Arena& arena, const std::vector<Tensor<T>>& parts) {
  int64_t cols = 0;
  for (const Tensor<T>& part : parts) cols += part.cols();
  const Tensor<T> all(arena, {parts.front().rows(), cols});
  int64_t at = 0;
  for (const Tensor<T>& part : parts) {
    for (int64_t i = 0; i < part.rows(); ++i) std::copy_n(part.row(i), part.cols(), all.row(i) + at);
    at += part.cols();
  }
  return all;
}
template <class T>
Tensor<T> cut_columns(Arena& arena, const Tensor<T>& x, int64_t first, int64_t count) {
  const Tensor<T> part(arena, {x.rows(), count});
  for (int64_t i = 0; i < x.rows(); ++i) std::copy_n(x.row(i) + first, count, part.row(i));
  return part;
}

inline Offsets lengths(const std::vector<int64_t>& n) {
  return Offsets::of_lengths(n);
}

// The message of the Error that `run` throws; "" if it does not.
inline std::string message_of(const std::function<void()>& run) {
  try {
    run();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

// Names of the values and their gradients by part.
template <class T>
void each_gradient(const ParameterSet<T>& parameters,
                   const std::function<void(const std::string&, const Tensor<T>& value,
                                            std::span<const T> gradient)>& visit) {
  parameters.each_part([&](const std::string& name, const Tensor<T>& value) {
    const std::ptrdiff_t at = value.data() - parameters.values().data();
    visit(name, value,
          parameters.gradients().subspan(static_cast<size_t>(at), static_cast<size_t>(value.size())));
  });
}

// A module with random parameters, gradients too if asked.
template <class T>
struct Module {
  Module(Context& context, const MultiHeadShape& shape, Stacking stacking, bool gradients = false,
         uint64_t seed = 7)
      : attention(parameters, "", shape, stacking) {
    parameters.allocate(context.arena);
    parameters.initialise(seed);
    // Biases start as zeros, which would hide mistakes.
    for (auto& parameter : parameters.all()) {
      if (parameter.value.shape().rank() > 1) continue;
      for (int64_t i = 0; i < parameter.value.size(); ++i) {
        parameter.value.data()[i] = static_cast<T>(0.3 * RandomKey(seed).normal(static_cast<uint64_t>(i)));
      }
    }
    if (gradients) parameters.allocate_gradients(context.arena);
  }
  ParameterSet<T> parameters;
  MultiHeadAttention<T> attention;
};

}  // namespace gloss::attention
