// Attention against finite differences, in every shape and sharing it allows.
#include "attention/support.h"
#include "support/gradient_check.h"

namespace gloss::attention {
namespace {

using tests::check_gradients;
using tests::NamedTensor;
using Vars = std::vector<Var<double>>;
using Results = std::vector<Var<double>>;

class AttentionGradient : public ::testing::Test {
 protected:
  NamedTensor input(const char* name, Shape shape) {
    return {name, tests::random_tensor<double>(context_.arena, shape, ++seed_)};
  }
  Context context_;
  uint64_t seed_ = 0;
};

TEST_F(AttentionGradient, ScaledDotProductOfUnequalLengthsAndWidths) {
  const Offsets queries = lengths({2, 0, 3, 1}), keys = lengths({4, 2, 1, 0});
  for (const bool weights : {false, true}) {
    EXPECT_EQ(
        check_gradients(context_, {input("query", {6, 3}), input("key", {7, 3}), input("value", {7, 5})},
                        [&](Tape<double>& tape, const Vars& in) {
                          const auto r = scaled_dot_product_attention<double>(
                              tape, {in[0], queries}, {in[1], keys}, {in[2], keys}, {}, {.weights = weights});
                          return weights ? Results{r.output, r.weights} : Results{r.output};
                        }),
        "");
  }
}

TEST_F(AttentionGradient, OnlyTheWeightsAreUsed) {
  const Offsets n = lengths({3, 2});
  EXPECT_EQ(check_gradients(context_, {input("query", {5, 3}), input("key", {5, 3}), input("value", {5, 4})},
                            [&](Tape<double>& tape, const Vars& in) {
                              return Results{scaled_dot_product_attention<double>(
                                                 tape, {in[0], n}, {in[1], n}, {in[2], n}, {Causal::yes, {}},
                                                 {.weights = true})
                                                 .weights};
                            }),
            "");
}

TEST_F(AttentionGradient, CausalWithAnOffset) {
  const Offsets queries = lengths({2, 3}), keys = lengths({5, 4});
  EXPECT_EQ(check_gradients(context_, {input("query", {5, 3}), input("key", {9, 3}), input("value", {9, 2})},
                            [&](Tape<double>& tape, const Vars& in) {
                              const auto r = scaled_dot_product_attention<double>(
                                  tape, {in[0], queries}, {in[1], keys}, {in[2], keys}, {Causal::yes, 1},
                                  {.weights = true});
                              return Results{r.output, r.weights};
                            }),
            "");
}

// The masks of dropout are a function of the key, so the differences see the same ones.
TEST_F(AttentionGradient, HeadsWithDropoutAndSharedVariables) {
  const Offsets n = lengths({3, 4});
  const HeadShape shape{2, 3, 4};
  const auto attend = [&](Tape<double>& tape, const Projection<double>& q, const Projection<double>& k,
                          const Projection<double>& v) {
    const std::vector<int64_t> visible = visible_keys({Causal::yes, {}}, n, n);
    const auto r = scaled_dot_product_attention(tape, q, n, k, v, n, shape, visible, 0.3, {.weights = true});
    return Results{r.output, r.weights};
  };
  // Side by side, filling the variable.
  EXPECT_EQ(check_gradients(context_, {input("qkv", {7, 20})},
                            [&](Tape<double>& tape, const Vars& in) {
                              return attend(tape, {in[0], 0}, {in[0], 6}, {in[0], 12});
                            }),
            "");
  // With gaps before, between and behind.
  EXPECT_EQ(check_gradients(context_, {input("qkv", {7, 25})},
                            [&](Tape<double>& tape, const Vars& in) {
                              return attend(tape, {in[0], 1}, {in[0], 9}, {in[0], 15});
                            }),
            "");
  // Keys that are their own values, in part.
  EXPECT_EQ(check_gradients(context_, {input("query", {7, 6}), input("key and value", {7, 11})},
                            [&](Tape<double>& tape, const Vars& in) {
                              return attend(tape, {in[0], 0}, {in[1], 2}, {in[1], 3});
                            }),
            "");
  // A variable that others use too.
  EXPECT_EQ(check_gradients(context_, {input("qkv", {7, 20}), input("other", {7, 6})},
                            [&](Tape<double>& tape, const Vars& in) {
                              Results r = attend(tape, {in[0], 0}, {in[0], 6}, {in[0], 12});
                              const Results second = attend(tape, {in[1], 0}, {in[0], 4}, {in[0], 12});
                              r.insert(r.end(), second.begin(), second.end());
                              return r;
                            }),
            "");
}

TEST_F(AttentionGradient, OneVariableIsQueryKeyAndValue) {
  const Offsets n = lengths({3, 4}), other = lengths({4, 3});
  EXPECT_EQ(check_gradients(
                context_, {input("x", {7, 5})},
                [&](Tape<double>& tape, const Vars& in) {
                  return Results{
                      scaled_dot_product_attention<double>(tape, {in[0], n}, {in[0], n}, {in[0], n}).output,
                      scaled_dot_product_attention<double>(tape, {in[0], n}, {in[0], other}, {in[0], other})
                          .output};
                }),
            "");
}

TEST_F(AttentionGradient, ConstantsAreLeftAlone) {
  const Offsets n = lengths({3, 2});
  const auto value = tests::random_tensor<double>(context_.arena, {5, 4}, 77);
  EXPECT_EQ(
      check_gradients(
          context_, {input("query", {5, 3})},
          [&](Tape<double>& tape, const Vars& in) {
            const Var<double> constant(value), key(value.reshaped({4, 5}).slice_rows(0, 3).reshaped({5, 3}));
            return Results{
                scaled_dot_product_attention<double>(tape, {in[0], n}, {key, n}, {constant, n}).output};
          }),
      "");
}

TEST_F(AttentionGradient, MultiHead) {
  struct Try {
    MultiHeadShape shape;
    Stacking stacking;
    const char* inputs;  // which of query, key and value are one variable
  };
  const MultiHeadShape plain{.d_model = 6, .heads = 2}, wide{.d_model = 6, .heads = 3, .d_k = 2, .d_v = 5},
      apart{.d_model = 4,
            .heads = 2,
            .d_query = 3,
            .d_key = 5,
            .d_value = 6,
            .d_k = 3,
            .d_v = 1,
            .bias = false};
  for (const Try& t :
       {Try{plain, Stacking::query_key_value, "aaa"}, Try{plain, Stacking::query_key_value, "abb"},
        Try{plain, Stacking::query_key_value, "abc"}, Try{plain, Stacking::key_value, "abb"},
        Try{plain, Stacking::key_value, "aaa"}, Try{plain, Stacking::none, "abc"},
        Try{wide, Stacking::query_key_value, "aaa"}, Try{wide, Stacking::key_value, "abc"},
        Try{apart, Stacking::none, "abc"}}) {
    SCOPED_TRACE(testing::Message() << t.inputs << " stacking " << static_cast<int>(t.stacking));
    const bool self = t.inputs == std::string("aaa");
    const Offsets queries = lengths({2, 3}), keys = self ? queries : lengths({4, 1});
    Module<double> module(context_, t.shape, t.stacking, true);
    const MultiHeadShape& s = module.attention.shape();
    std::vector<NamedTensor> inputs{input("query", {queries.total(), s.d_query})};
    if (!self) inputs.push_back(input("key", {keys.total(), s.d_key}));
    if (t.inputs == std::string("abc")) inputs.push_back(input("value", {keys.total(), s.d_value}));
    const Mask mask = self ? Mask{Causal::yes, {}} : Mask{};
    tests::GradientCheck options;
    options.parameters = &module.parameters;
    EXPECT_EQ(check_gradients(
                  context_, inputs,
                  [&](Tape<double>& tape, const Vars& in) {
                    const Var<double>&k = in[std::min<size_t>(in.size() - 1, 1)], &v = in.back();
                    const auto r = module.attention(tape, {in[0], queries}, {k, keys}, {v, keys}, mask, 0.2,
                                                    {.weights = true});
                    return Results{r.output, r.weights};
                  },
                  options),
              "");
  }
}

}  // namespace
}  // namespace gloss::attention
