// Guided attention: the cross-entropy of weights with wanted ones.
#include "gloss/attention/guided.h"

#include <cmath>

#include "attention/support.h"
#include "gloss/attention/additive.h"
#include "support/gradient_check.h"

namespace gloss::attention {
namespace {

using ::testing::HasSubstr;
using tests::random_tensor;

const Offsets kQueries = lengths({2, 1}), kKeys = lengths({3, 4});
// Both rows of sequence 0, [2, 3]; the row of sequence 1, [4], behind them.
const std::vector<GuidedWeight> kWanted{{1, 1}, {3, 0.5}, {5, 0.5}, {9, 1}};

TEST(Guided, AddsTheCrossEntropyToTheLoss) {
  Context context(2);
  Tape<double> tape(context);
  const Var<double> loss(Tensor<double>::from(context.arena, {1}, std::vector<double>{2}));
  const Var<double> weights(Tensor<double>::from(
      context.arena, {10}, std::vector<double>{.2, .7, .1, .25, .5, .25, .1, .2, .3, .4}));
  const auto guided = guided_cross_entropy(tape, loss, weights, kWanted, 0.5);
  const double expected = -(std::log(.7) + 0.5 * std::log(.25) + 0.5 * std::log(.25) + std::log(.4));
  EXPECT_NEAR(guided.cross_entropy, expected, 1e-12);
  EXPECT_NEAR(guided.loss.value().data()[0], 2 + 0.5 * expected, 1e-12);
  EXPECT_EQ(guided_cross_entropy(tape, loss, weights, {}, 0.5).loss.value().data()[0], 2);
}

// Through the softmax of every kind of attention, with gradients from the context as well.
TEST(Guided, GradientsAreThoseOfFiniteDifferences) {
  Context context(2);
  Arena& arena = context.arena;
  const auto with_guide = [&](Tape<double>& tape, const Var<double>& loss, const Var<double>& output,
                              const Var<double>& weights) {
    return std::vector<Var<double>>{output, guided_cross_entropy(tape, loss, weights, kWanted, 0.3).loss};
  };
  const std::vector<tests::NamedTensor> inputs{{"query", random_tensor<double>(arena, {3, 4}, 1)},
                                               {"keys", random_tensor<double>(arena, {7, 4}, 2)},
                                               {"values", random_tensor<double>(arena, {7, 5}, 3)},
                                               {"v_a", random_tensor<double>(arena, {4}, 4)},
                                               {"loss", random_tensor<double>(arena, {1}, 5)}};
  EXPECT_EQ(tests::check_gradients(context, inputs,
                                   [&](Tape<double>& tape, const std::vector<Var<double>>& in) {
                                     const auto attended = scaled_dot_product_attention<double>(
                                         tape, {in[0], kQueries}, {in[1], kKeys}, {in[2], kKeys}, {},
                                         {.weights = true});
                                     return with_guide(tape, in[4], attended.output, attended.weights);
                                   }),
            "");
  EXPECT_EQ(tests::check_gradients(context, inputs,
                                   [&](Tape<double>& tape, const std::vector<Var<double>>& in) {
                                     const auto attended =
                                         additive_attention(tape, in[0], kQueries, in[1], in[2], kKeys, in[3],
                                                            {.weights = true});
                                     return with_guide(tape, in[4], attended.context, attended.weights);
                                   }),
            "");
}

// A wanted weight that underflowed costs as much as the smallest number, and its gradient is a number.
TEST(Guided, StaysFiniteWhereAWeightIsZero) {
  Context context(1);
  Tape<float> tape(context, Tape<float>::Mode::train);
  const Var<float> query = tape.leaf(Tensor<float>::from(context.arena, {1, 1}, std::vector<float>{1e4f}));
  const Var<float> keys = tape.leaf(Tensor<float>::from(context.arena, {2, 1}, std::vector<float>{1, -1}));
  const Offsets one = lengths({1}), two = lengths({2});
  const auto attended = scaled_dot_product_attention<float>(tape, {query, one}, {keys, two}, {keys, two}, {},
                                                            {.weights = true});
  ASSERT_EQ(attended.weights.value().data()[1], 0);
  const Var<float> zero(Tensor<float>::from(context.arena, {1}, std::vector<float>{0}));
  const auto guided = guided_cross_entropy(tape, zero, attended.weights, {{1, 1}}, 1);
  EXPECT_NEAR(guided.cross_entropy, -std::log(std::numeric_limits<float>::min()), 1e-4);
  tape.backward(guided.loss, Tensor<float>::from(context.arena, {1}, std::vector<float>{1}));
  for (const Var<float>& leaf : {query, keys}) {
    for (const float g : tape.gradient(leaf).values()) EXPECT_TRUE(std::isfinite(g));
  }
}

TEST(Guided, NamesAWeightThatDoesNotExist) {
  Context context(1);
  Tape<float> tape(context);
  const Var<float> loss(random_tensor<float>(context.arena, {1}, 1)),
      weights(random_tensor<float>(context.arena, {3}, 2));
  for (const int64_t element : {int64_t{-1}, int64_t{3}}) {
    EXPECT_THAT(message_of([&] {
                  guided_cross_entropy(tape, loss, weights, {{element, 1}}, 1);
                }),
                HasSubstr("weight " + std::to_string(element) + " of 3 shall be guided"));
  }
}

}  // namespace
}  // namespace gloss::attention
