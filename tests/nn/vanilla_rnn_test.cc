#include "gloss/nn/vanilla_rnn.h"

#include <gtest/gtest.h>

#include <cmath>

#include "support/compare.h"
#include "support/gradient_check.h"
#include "support/random.h"

namespace gloss::nn {
namespace {

using autograd::Tape;
using autograd::Var;
using tests::random_tensor;

// h_t = tanh(W_x x_t + W_h h_{t-1} + b), number by number, and its derivatives.
TEST(VanillaRnn, StepIsItsFormula) {
  Context context;
  Arena& arena = context.arena;
  const Tensor<double> x = random_tensor<double>(arena, {3, 4}, 1),
                       h = random_tensor<double>(arena, {3, 5}, 2),
                       W_x = random_tensor<double>(arena, {5, 4}, 3),
                       W_h = random_tensor<double>(arena, {5, 5}, 4),
                       b = random_tensor<double>(arena, {5}, 5);
  std::vector<double> expected;
  for (int64_t i = 0; i < 3; ++i) {
    for (int64_t o = 0; o < 5; ++o) {
      double sum = b.data()[o];
      for (int64_t c = 0; c < 4; ++c) sum += W_x(o, c) * x(i, c);
      for (int64_t c = 0; c < 5; ++c) sum += W_h(o, c) * h(i, c);
      expected.push_back(std::tanh(sum));
    }
  }
  Tape<double> tape(context);
  const Var<double> step = vanilla_rnn_step(tape, Var<double>(x), Var<double>(h), Var<double>(W_x),
                                            Var<double>(W_h), Var<double>(b));
  EXPECT_TRUE(tests::close(tests::doubles(step.value()), expected, 1e-12));
  EXPECT_EQ(
      tests::check_gradients(context, {{"x_t", x}, {"h_prev", h}, {"W_x", W_x}, {"W_h", W_h}, {"b", b}},
                             [](Tape<double>& t, const std::vector<Var<double>>& in) {
                               return std::vector{vanilla_rnn_step(t, in[0], in[1], in[2], in[3], in[4])};
                             }),
      "");
}

}  // namespace
}  // namespace gloss::nn
