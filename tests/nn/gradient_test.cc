// Every layer against finite differences.
#include <gtest/gtest.h>

#include "gloss/nn/add_norm.h"
#include "gloss/nn/embedding.h"
#include "gloss/nn/feed_forward.h"
#include "gloss/nn/linear.h"
#include "gloss/nn/loss.h"
#include "support/compare.h"
#include "support/gradient_check.h"
#include "support/random.h"

namespace gloss::nn {
namespace {

using autograd::Tape;
using autograd::Var;
using kernels::Activation;
using tests::check_gradients;
using tests::NamedTensor;
using Vars = std::vector<Var<double>>;
using Results = std::vector<Var<double>>;

class NnGradient : public ::testing::Test {
 protected:
  NamedTensor input(const char* name, Shape shape, double scale = 1) {
    return {name, tests::random_tensor<double>(context_.arena, shape, ++seed_, scale)};
  }
  Context context_;
  uint64_t seed_ = 0;
};

TEST_F(NnGradient, LinearWithEachActivation) {
  for (const Activation activation :
       {Activation::none, Activation::relu, Activation::swish, Activation::gelu, Activation::tanh}) {
    SCOPED_TRACE(static_cast<int>(activation));
    EXPECT_EQ(check_gradients(context_, {input("x", {5, 7}), input("weight", {18, 7}), input("bias", {18})},
                              [&](Tape<double>& tape, const Vars& in) {
                                return Results{linear(tape, in[0], in[1], in[2], activation)};
                              }),
              "");
    EXPECT_EQ(check_gradients(context_, {input("x", {3, 4}), input("weight", {2, 4})},
                              [&](Tape<double>& tape, const Vars& in) {
                                return Results{linear(tape, in[0], in[1], {}, activation)};
                              }),
              "");
  }
}

TEST_F(NnGradient, ReluOnBothSidesOfItsKink) {
  // The sums are x itself: far below, a hair below, at, a hair above and far above 0.
  NamedTensor x{"x", Tensor<double>::from(context_.arena, {1, 5}, std::vector{-2.0, -1e-7, 0.0, 1e-7, 2.0})};
  NamedTensor identity{"weight", Tensor<double>::zeros(context_.arena, {5, 5})};
  for (int64_t i = 0; i < 5; ++i) identity.value(i, i) = 1;
  const tests::Operation relu = [](Tape<double>& tape, const Vars& in) {
    return Results{linear(tape, in[0], in[1], {}, Activation::relu)};
  };
  EXPECT_EQ(check_gradients(context_, {x, identity}, relu), "");
  Tape<double> tape(context_, Tape<double>::Mode::train);
  const Var<double> leaf = tape.leaf(x.value);
  const Tensor<double> ones(context_.arena, {1, 5});
  ones.fill(1);
  tape.backward(relu(tape, {leaf, Var<double>(identity.value)})[0], ones);
  EXPECT_TRUE(tests::same_bits(tests::doubles(tape.gradient(leaf)), std::vector{0.0, 0.0, 0.0, 1.0, 1.0}));
}

TEST_F(NnGradient, LinearReadsItsInputTwice) {
  // One variable as input of two layers and of a residual connection.
  EXPECT_EQ(check_gradients(context_, {input("x", {3, 6}), input("weight", {6, 6}), input("bias", {6})},
                            [&](Tape<double>& tape, const Vars& in) {
                              const Var<double> a = linear(tape, in[0], in[1], in[2], Activation::gelu);
                              const Var<double> b = linear(tape, a, in[1], in[2], Activation::swish);
                              return Results{add_dropout(tape, in[0], b, 0.0), a};
                            }),
            "");
}

TEST_F(NnGradient, AddNorm) {
  for (const int64_t d : {1, 2, 17, 33}) {
    for (const double p : {0.0, 0.4}) {
      SCOPED_TRACE(d);
      EXPECT_EQ(check_gradients(
                    context_,
                    {input("x", {4, d}), input("branch", {4, d}), input("gamma", {d}), input("beta", {d})},
                    [&](Tape<double>& tape, const Vars& in) {
                      return Results{add_norm(tape, in[0], in[1], p, in[2], in[3], 1e-2)};
                    }),
                "");
    }
  }
}

TEST_F(NnGradient, AddNormOfAVariableAndItself) {
  EXPECT_EQ(check_gradients(context_, {input("x", {4, 18}), input("gamma", {18}), input("beta", {18})},
                            [&](Tape<double>& tape, const Vars& in) {
                              return Results{add_norm(tape, in[0], in[0], 0.3, in[1], in[2], 1e-5)};
                            }),
            "");
}

TEST_F(NnGradient, LayerNorm) {
  EXPECT_EQ(check_gradients(context_, {input("x", {70, 18}), input("gamma", {18}), input("beta", {18})},
                            [&](Tape<double>& tape, const Vars& in) {
                              return Results{layer_norm(tape, in[0], in[1], in[2], 1e-5)};
                            }),
            "");
}

TEST_F(NnGradient, AddDropoutAndDropout) {
  EXPECT_EQ(check_gradients(context_, {input("x", {3, 18}), input("branch", {3, 18})},
                            [&](Tape<double>& tape, const Vars& in) {
                              const Var<double> y = add_dropout(tape, in[0], in[1], 0.4);
                              return Results{dropout(tape, y, 0.5), y};
                            }),
            "");
}

TEST_F(NnGradient, FeedForwardWithActivationDropout) {
  EXPECT_EQ(check_gradients(context_,
                            {input("x", {3, 5}), input("W_1", {18, 5}), input("b_1", {18}),
                             input("W_2", {5, 18}), input("b_2", {5})},
                            [&](Tape<double>& tape, const Vars& in) {
                              return Results{feed_forward(tape, in[0], in[1], in[2], in[3], in[4],
                                                          Activation::gelu, 0.3)};
                            }),
            "");
}

TEST_F(NnGradient, Embedding) {
  const std::vector<int32_t> ids{3, 0, 3, 5, 3, 1};
  const Tensor<double> positions = tests::random_tensor<double>(context_.arena, {4, 18}, 99);
  EXPECT_EQ(check_gradients(
                context_, {input("table", {6, 18})},
                [&](Tape<double>& tape, const Vars& in) {
                  return Results{embed<double>(tape, in[0], ids, 4.2, {positions, {0, 1, 2, 3, 0, 1}}, 0.3)};
                }),
            "");
}

TEST_F(NnGradient, EmbeddingOfAFrozenRowGetsNone) {
  const std::vector<int32_t> ids{3, 0, 3};
  Tape<double> tape(context_, Tape<double>::Mode::train);
  const Var<double> table = tape.leaf(input("table", {4, 5}).value);
  const Var<double> rows = embed<double>(tape, table, ids, 2, {}, 0, 3);
  const Tensor<double> ones(context_.arena, rows.shape());
  ones.fill(1);
  tape.backward(rows, ones);
  const Tensor<double> gradient = tape.gradient(table);
  for (int64_t c = 0; c < 5; ++c) {
    EXPECT_EQ(gradient(0, c), 2);
    EXPECT_EQ(gradient(3, c), 0);
  }
}

TEST_F(NnGradient, ProjectionCrossEntropy) {
  for (const double smoothing : {0.0, 0.1}) {
    for (const int64_t forbidden : {-1, 2}) {
      for (const bool biased : {false, true}) {
        SCOPED_TRACE(testing::Message() << "smoothing " << smoothing << " forbidden " << forbidden);
        std::vector<int32_t> targets{0, 1, 18, 3, 0};
        std::vector<NamedTensor> inputs{input("x", {5, 4}), input("weight", {19, 4})};
        if (biased) inputs.push_back(input("bias", {19}));
        // The helper's random upstream gradient is the factor on the loss.
        EXPECT_EQ(check_gradients(context_, inputs,
                                  [&](Tape<double>& tape, const Vars& in) {
                                    return Results{projection_cross_entropy(
                                                       tape, in[0], in[1], biased ? in[2] : Var<double>(),
                                                       targets, {smoothing, forbidden}, 0.7)
                                                       .sum};
                                  }),
                  "");
      }
    }
  }
}

// More tokens than a block of 512: the same loss and gradients as in pieces.
template <class T>
void expect_blocks_to_add_up(double tolerance) {
  Context context;
  const int64_t n = 1100, d = 6, symbols = 21;
  const auto x = tests::random_tensor<T>(context.arena, {n, d}, 1),
             w = tests::random_tensor<T>(context.arena, {symbols, d}, 2),
             b = tests::random_tensor<T>(context.arena, {symbols}, 3);
  const std::vector<int32_t> targets = tests::random_ids(n, symbols - 1, 4);
  const kernels::CrossEntropy options{0.1, symbols - 1};
  const Tensor<T> upstream = Tensor<T>::from(context.arena, {1}, std::vector{T(-2.5)});
  const auto run = [&](int64_t piece) {
    Tape<T> tape(context, Tape<T>::Mode::train);
    const Var<T> weight = tape.leaf(w), bias = tape.leaf(b);
    std::vector<std::pair<Var<T>, Tensor<T>>> upstreams;
    std::vector<Var<T>> leaves;
    double smoothed = 0, plain = 0;
    for (int64_t begin = 0; begin < n; begin += piece) {
      const int64_t count = std::min(piece, n - begin);
      leaves.push_back(tape.leaf(x.slice_rows(begin, count)));
      const auto loss = projection_cross_entropy(tape, leaves.back(), weight, bias,
                                                 std::span(targets).subspan(begin, count), options, 0.3);
      smoothed += loss.smoothed;
      plain += loss.negative_log_likelihood;
      upstreams.emplace_back(loss.sum, upstream);
    }
    tape.backward(upstreams);
    std::vector<double> all{smoothed, plain};
    for (const Var<T>& leaf : leaves) {
      for (const T g : tape.gradient(leaf).values()) all.push_back(g);
    }
    for (const Var<T>& leaf : {weight, bias}) {
      for (const T g : tape.gradient(leaf).values()) all.push_back(g);
    }
    return all;
  };
  EXPECT_TRUE(tests::close(run(n), run(100), tolerance));
}
TEST(ProjectionCrossEntropy, AddsUpOverBlocks) {
  expect_blocks_to_add_up<double>(1e-9);
  expect_blocks_to_add_up<float>(1e-4);
}

TEST(ProjectionCrossEntropy, ScaleZeroGivesZeroGradients) {
  Context context;
  Tape<float> tape(context, Tape<float>::Mode::train);
  const auto x = tape.leaf(tests::random_tensor<float>(context.arena, {3, 4}, 1)),
             w = tape.leaf(tests::random_tensor<float>(context.arena, {5, 4}, 2));
  const std::vector<int32_t> targets{1, 2, 3};
  const auto loss = projection_cross_entropy(tape, x, w, {}, targets, {}, 0);
  EXPECT_GT(loss.smoothed, 0);
  EXPECT_EQ(loss.sum.value().data()[0], 0);
  tape.backward(loss.sum, Tensor<float>::from(context.arena, {1}, std::vector{1.0f}));
  for (const float g : tape.gradient(x).values()) EXPECT_EQ(g, 0);
  for (const float g : tape.gradient(w).values()) EXPECT_EQ(g, 0);
}

// What is not recorded is computed alike, and log-probabilities are the plain losses.
TEST(ProjectionCrossEntropy, TranslatingGivesTheSameLoss) {
  Context context;
  const auto x = tests::random_tensor<float>(context.arena, {600, 4}, 1),
             w = tests::random_tensor<float>(context.arena, {50, 4}, 2);
  const std::vector<int32_t> targets = tests::random_ids(600, 50, 4);
  Tape<float> training(context, Tape<float>::Mode::train), translating(context);
  const auto recorded =
      projection_cross_entropy(training, training.leaf(x), Var<float>(w), {}, targets, {0.1, -1}, 1);
  const auto plain =
      projection_cross_entropy(translating, Var<float>(x), Var<float>(w), {}, targets, {0.1, -1}, 1);
  EXPECT_EQ(recorded.smoothed, plain.smoothed);
  EXPECT_EQ(recorded.negative_log_likelihood, plain.negative_log_likelihood);
  EXPECT_FALSE(plain.sum.wants_gradient());
  double sum = 0;
  for (const float p : projection_log_probabilities(translating, Var<float>(x), Var<float>(w), {}, targets)) {
    EXPECT_LE(p, 0);
    sum -= static_cast<double>(p);
  }
  EXPECT_NEAR(sum, plain.negative_log_likelihood, 1e-9 * sum);
}

}  // namespace
}  // namespace gloss::nn
