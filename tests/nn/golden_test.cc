// The layers against PyTorch's numbers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gloss/nn/add_norm.h"
#include "gloss/nn/feed_forward.h"
#include "gloss/nn/linear.h"
#include "gloss/nn/loss.h"
#include "gloss/nn/positions.h"
#include "support/compare.h"
#include "support/golden.h"
#include "support/isas.h"

namespace gloss::nn {
namespace {

using autograd::Tape;
using autograd::Var;
using kernels::Activation;
using tests::close;
using tests::Golden;
using tests::kTolerance;

template <class T>
class NnGolden : public ::testing::Test {
 protected:
  Context context_;
  Tape<T> tape_{context_, Tape<T>::Mode::train};
};
using Numbers = ::testing::Types<float, double>;
TYPED_TEST_SUITE(NnGolden, Numbers);

TYPED_TEST(NnGolden, LayerNorm) {
  using T = TypeParam;
  const Golden golden("layer_norm");
  tests::on_every_isa([&](kernels::Isa) {
    Context& context = this->context_;
    Tape<T> tape(context, Tape<T>::Mode::train);
    const auto leaf = [&](const char* name) { return tape.leaf(golden.read<T>(context.arena, name)); };
    const Var<T> x = leaf("x"), gamma = leaf("gamma"), beta = leaf("beta");
    const Var<T> out = layer_norm(tape, x, gamma, beta, 1e-5);
    EXPECT_TRUE(close(out.value(), golden.read<double>(context.arena, "out"), kTolerance<T>));
    tape.backward(out, golden.read<T>(context.arena, "up.out"));
    for (const auto& [name, var] : {std::pair{"x", x}, {"gamma", gamma}, {"beta", beta}}) {
      SCOPED_TRACE(name);
      EXPECT_TRUE(close(tape.gradient(var), golden.read<double>(context.arena, std::string("grad.") + name),
                        kTolerance<T>));
    }
  });
}

TYPED_TEST(NnGolden, FeedForward) {
  using T = TypeParam;
  for (const auto& [name, activation] : {std::pair{"ffn_relu", Activation::relu},
                                         {"ffn_swish", Activation::swish},
                                         {"ffn_gelu", Activation::gelu}}) {
    SCOPED_TRACE(name);
    const Golden golden(name);
    tests::on_every_isa([&, act = activation](kernels::Isa) {
      Context& context = this->context_;
      Tape<T> tape(context, Tape<T>::Mode::train);
      std::vector<std::pair<std::string, Var<T>>> inputs;
      for (const char* input : {"x", "W_1", "b_1", "W_2", "b_2"}) {
        inputs.emplace_back(input, tape.leaf(golden.read<T>(context.arena, input)));
      }
      const Var<T> out = feed_forward(tape, inputs[0].second, inputs[1].second, inputs[2].second,
                                      inputs[3].second, inputs[4].second, act, 0.0);
      EXPECT_TRUE(close(out.value(), golden.read<double>(context.arena, "out"), kTolerance<T>));
      tape.backward(out, golden.read<T>(context.arena, "up.out"));
      for (const auto& [input, var] : inputs) {
        SCOPED_TRACE(input);
        EXPECT_TRUE(
            close(tape.gradient(var), golden.read<double>(context.arena, "grad." + input), kTolerance<T>));
      }
    });
  }
}

// The loss takes logits through a projection: with the identity as weight, x is the logits.
TYPED_TEST(NnGolden, LabelSmoothedLoss) {
  using T = TypeParam;
  const Golden golden("label_smoothed_loss");
  Context& context = this->context_;
  Tape<T>& tape = this->tape_;
  const Var<T> logits = tape.leaf(golden.read<T>(context.arena, "logits"));
  const int64_t symbols = logits.cols();
  const Tensor<T> identity = Tensor<T>::zeros(context.arena, {symbols, symbols});
  for (int64_t i = 0; i < symbols; ++i) identity(i, i) = 1;
  const std::vector<int64_t> target = golden.ints("target");
  const std::vector<int32_t> targets(target.begin(), target.end());
  const auto smoothed =
      projection_cross_entropy(tape, logits, Var<T>(identity), Var<T>(), targets, {0.1, -1}, 1);
  const auto plain = projection_cross_entropy(tape, logits, Var<T>(identity), Var<T>(), targets, {0, -1}, 1);
  const std::vector<double> loss = tests::doubles(golden.read<double>(context.arena, "loss")),
                            nll = tests::doubles(golden.read<double>(context.arena, "nll"));
  EXPECT_TRUE(close(smoothed.sum.value(), loss, kTolerance<T>));
  EXPECT_TRUE(close(std::vector{smoothed.smoothed}, loss, kTolerance<T>));
  EXPECT_TRUE(close(std::vector{smoothed.negative_log_likelihood}, nll, kTolerance<T>));
  EXPECT_TRUE(close(plain.sum.value(), nll, kTolerance<T>));
  tape.backward({{smoothed.sum, golden.read<T>(context.arena, "up.loss")},
                 {plain.sum, golden.read<T>(context.arena, "up.nll")}});
  EXPECT_TRUE(close(tape.gradient(logits), golden.read<double>(context.arena, "grad.logits"), kTolerance<T>));
}

TYPED_TEST(NnGolden, Positions) {
  using T = TypeParam;
  const Golden golden("positions");
  Context& context = this->context_;
  for (const auto& [name, layout] :
       {std::pair{"interleaved", PositionLayout::interleaved}, {"halves", PositionLayout::halves}}) {
    const Tensor<double> want = golden.read<double>(context.arena, name);
    const auto all = sinusoidal_positions<T>(context.arena, 0, want.rows(), want.cols(), layout);
    EXPECT_TRUE(close(all, want, kTolerance<T>)) << name;
    // Any stretch is a stretch of the whole, bit for bit.
    EXPECT_TRUE(tests::same_bits(sinusoidal_positions<T>(context.arena, 77, 5, want.cols(), layout),
                                 all.slice_rows(77, 5)));
  }
}

TEST(Positions, HaveNoLongestSequence) {
  Context context;
  const auto rows = sinusoidal_positions<double>(context.arena, 1'000'000, 1, 4, PositionLayout::interleaved);
  EXPECT_DOUBLE_EQ(rows(0, 0), std::sin(1e6));
  EXPECT_DOUBLE_EQ(rows(0, 3), std::cos(1e4));
}

TEST(Positions, RefuseAnOddWidthAndALayoutWithoutSinusoids) {
  const auto message = [](int64_t d, PositionLayout layout) -> std::string {
    Context context;
    try {
      sinusoidal_positions<float>(context.arena, 0, 3, d, layout);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(message(7, PositionLayout::halves), ::testing::HasSubstr("must be even, not 7"));
  EXPECT_EQ(message(8, PositionLayout::relative), "relative positions are no rows to add to embeddings");
}

}  // namespace
}  // namespace gloss::nn
