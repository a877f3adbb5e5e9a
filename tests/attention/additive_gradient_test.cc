// Additive attention against finite differences: every input and parameter, every sharing, many steps.
#include "attention/support.h"
#include "gloss/attention/additive.h"
#include "support/gradient_check.h"

namespace gloss::attention {
namespace {

using tests::check_gradients;
using tests::NamedTensor;
using Vars = std::vector<Var<double>>;
using Results = std::vector<Var<double>>;

class AdditiveGradient : public ::testing::Test {
 protected:
  NamedTensor input(const char* name, Shape shape) {
    return {name, tests::random_tensor<double>(context_.arena, shape, ++seed_)};
  }
  Context context_{2};
  uint64_t seed_ = 0;
};

TEST_F(AdditiveGradient, UnequalLengthsAndWidths) {
  const Offsets queries = lengths({2, 0, 3, 1, 13}), sources = lengths({4, 2, 1, 0, 3});
  for (const int uses : {0, 1, 2}) {  // the context, the weights, both
    EXPECT_EQ(check_gradients(
                  context_,
                  {input("query", {19, 3}), input("keys", {10, 3}), input("h", {10, 5}), input("v_a", {3})},
                  [&](Tape<double>& tape, const Vars& in) {
                    const auto r = additive_attention(tape, in[0], queries, in[1], in[2], sources, in[3],
                                                      {.weights = uses > 0});
                    return uses == 0   ? Results{r.context}
                           : uses == 1 ? Results{r.weights}
                                       : Results{r.context, r.weights};
                  }),
              "");
  }
}

// As the recurrent model calls it: one query for each sentence that is still alive, over the same keys and h.
TEST_F(AdditiveGradient, StepAfterStepAddsUp) {
  const Offsets sources = lengths({4, 0, 2, 3});
  const std::vector<Offsets> steps{lengths({1, 1, 1, 1}), lengths({1, 1, 0, 1}), lengths({0, 0, 0, 1}),
                                   lengths({0, 0, 0, 0})};
  const std::vector<NamedTensor> inputs{
      input("query 1", {4, 3}), input("query 2", {3, 3}), input("query 3", {1, 3}), input("query 4", {0, 3}),
      input("keys", {9, 3}),    input("h", {9, 5}),       input("v_a", {3})};
  EXPECT_EQ(check_gradients(
                context_, inputs,
                [&](Tape<double>& tape, const Vars& in) {
                  Results results;
                  for (size_t i = 0; i < steps.size(); ++i) {
                    results.push_back(
                        additive_attention(tape, in[i], steps[i], in[4], in[5], sources, in[6]).context);
                  }
                  return results;
                }),
            "");
}

TEST_F(AdditiveGradient, OneVariableInSeveralPlaces) {
  const Offsets n = lengths({3, 4}), other = lengths({4, 3});
  const auto attend = [&](Tape<double>& tape, const Var<double>& query, const Var<double>& keys,
                          const Var<double>& h, const Var<double>& v_a) {
    // Queries of one sentence stand in the rows of another's keys.
    return Results{additive_attention(tape, query, n, keys, h, n, v_a).context,
                   additive_attention(tape, query, other, keys, h, n, v_a).context};
  };
  const NamedTensor v_a = input("v_a", {5}), x = input("x", {7, 5}), y = input("y", {7, 5});
  EXPECT_EQ(
      check_gradients(context_, {x, y, v_a},
                      [&](auto& tape, const Vars& in) { return attend(tape, in[0], in[1], in[1], in[2]); }),
      "");
  EXPECT_EQ(
      check_gradients(context_, {x, y, v_a},
                      [&](auto& tape, const Vars& in) { return attend(tape, in[0], in[0], in[1], in[2]); }),
      "");
  EXPECT_EQ(
      check_gradients(context_, {x, y, v_a},
                      [&](auto& tape, const Vars& in) { return attend(tape, in[0], in[1], in[0], in[2]); }),
      "");
  EXPECT_EQ(
      check_gradients(context_, {x, v_a},
                      [&](auto& tape, const Vars& in) { return attend(tape, in[0], in[0], in[0], in[1]); }),
      "");
}

TEST_F(AdditiveGradient, ConstantsAreLeftAlone) {
  const Offsets queries = lengths({2, 1}), sources = lengths({3, 2});
  const Vars all{Var<double>(input("query", {3, 4}).value), Var<double>(input("keys", {5, 4}).value),
                 Var<double>(input("h", {5, 6}).value), Var<double>(input("v_a", {4}).value)};
  for (size_t wanted = 0; wanted < 4; ++wanted) {
    EXPECT_EQ(
        check_gradients(context_, {{"the one input", all[wanted].value()}},
                        [&](Tape<double>& tape, const Vars& in) {
                          Vars v = all;
                          v[wanted] = in[0];
                          return Results{
                              additive_attention(tape, v[0], queries, v[1], v[2], sources, v[3]).context};
                        }),
        "");
  }
}

TEST_F(AdditiveGradient, Layer) {
  ParameterSet<double> parameters;
  const AdditiveAttention<double> attention(parameters, "a.", 3, 4, 5);
  parameters.allocate(context_.arena);
  parameters.initialise(7);
  parameters.allocate_gradients(context_.arena);
  const Offsets queries = lengths({2, 0, 1}), sources = lengths({3, 2, 4});
  tests::GradientCheck options;
  options.parameters = &parameters;
  EXPECT_EQ(check_gradients(
                context_, {input("s_prev", {3, 3}), input("h", {9, 4})},
                [&](Tape<double>& tape, const Vars& in) {
                  const auto r = attention(tape, {in[0], queries}, {in[1], sources}, {.weights = true});
                  return Results{r.context, r.weights};
                },
                options),
            "");
}

TEST_F(AdditiveGradient, OneQuery) {
  EXPECT_EQ(check_gradients(context_,
                            {input("s_prev", {3}), input("h", {6, 4}), input("W_a", {5, 3}),
                             input("U_a", {5, 4}), input("v_a", {5})},
                            [](Tape<double>& tape, const Vars& in) {
                              const auto r = additive_attention(tape, in[0], in[1], in[2], in[3], in[4]);
                              return Results{r.context, r.weights};
                            }),
            "");
}

}  // namespace
}  // namespace gloss::attention
