// How the recurrent layers start, and what they refuse.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "gloss/nn/maxout.h"
#include "gloss/nn/rows.h"
#include "nn/gru_support.h"

namespace gloss::nn {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using tests::random_tensor;

// Orthogonal weights and Glorot's half width, gate by gate.
TEST(Gru, StartsAsDocumented) {
  Context context;
  ParameterSet<double> parameters;
  const Gru<double> unit(parameters, "encoder.", {.d_in = 8, .d_h = 16, .layer_norm = true});
  parameters.allocate(context.arena);
  parameters.initialise(1);
  auto all = by_name(parameters);
  ASSERT_EQ(all.size(), 8u);
  EXPECT_EQ(all["encoder.weight_ih"].value.shape(), (Shape{48, 8}));
  EXPECT_EQ(all["encoder.weight_hh"].value.shape(), (Shape{48, 16}));
  const double half_width = std::sqrt(6.0 / (16 + 8));
  double largest = 0;
  for (const double v : all["encoder.weight_ih"].value.values()) largest = std::max(largest, std::abs(v));
  EXPECT_LE(largest, half_width);
  EXPECT_GT(largest, 0.9 * half_width);
  for (int64_t gate = 0; gate < 3; ++gate) {
    const Tensor<double> w = all["encoder.weight_hh"].value.slice_rows(16 * gate, 16);
    for (int64_t i = 0; i < 16; ++i) {
      for (int64_t j = 0; j < 16; ++j) {
        double sum = 0;
        for (int64_t c = 0; c < 16; ++c) sum += w(i, c) * w(j, c);
        EXPECT_NEAR(sum, i == j, 1e-12);
      }
    }
  }
  for (const char* side : {"ih", "hh"}) {
    for (const auto& [name, value] : {std::pair{"bias_", 0.0}, {"norm_", 1.0}}) {
      const std::string full = std::string("encoder.") + name + side + (value > 0 ? ".weight" : "");
      ASSERT_EQ(all[full].value.shape(), (Shape{48})) << full;
      for (const double v : all[full].value.values()) EXPECT_EQ(v, value) << full;
    }
    for (const double v : all[std::string("encoder.norm_") + side + ".bias"].value.values()) EXPECT_EQ(v, 0);
  }
}

// --- Errors
// -----------------------------------------------------------------------------------------------------

class GruErrors : public ::testing::Test {
 protected:
  Var<float> of(Shape shape) { return Var<float>(random_tensor<float>(context_.arena, shape, 1)); }
  static std::string message_of(const std::function<void()>& run) {
    try {
      run();
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }
  Context context_;
  Tape<float> tape_{context_};
  Units<float> units_{context_, {.d_in = 5, .d_h = 6}};
};

TEST_F(GruErrors, NameTheNumbers) {
  const Gru<float>& unit = units_.forward;
  ParameterSet<float> parameters;
  EXPECT_THAT(message_of([&] { Gru<float>(parameters, "", {.d_in = 4, .d_h = 0}); }),
              AllOf(HasSubstr("not 4 and 0")));
  EXPECT_THAT(message_of([&] {
                unit.input_gates(tape_, of({3, 4}));
              }),
              AllOf(HasSubstr("5 inputs"), HasSubstr("4 numbers")));
  EXPECT_THAT(message_of([&] {
                unit.step(tape_, of({3, 17}), of({3, 6}));
              }),
              AllOf(HasSubstr("[3, 17]"), HasSubstr("[n, 18]")));
  EXPECT_THAT(message_of([&] {
                unit.step(tape_, of({3, 18}), of({2, 6}));
              }),
              AllOf(HasSubstr("[3, 18]"), HasSubstr("[2, 6]")));
  EXPECT_THAT(message_of([&] {
                unit.run(tape_, ragged(of({4, 5}), {2, 1}), Direction::forward);
              }),
              AllOf(HasSubstr("4 rows"), HasSubstr("3 tokens")));
  EXPECT_THAT(message_of([&] {
                unit.run(tape_, ragged(of({3, 4}), {2, 1}), Direction::forward);
              }),
              HasSubstr("5 inputs"));
  EXPECT_THAT(message_of([&] {
                unit.run(tape_, ragged(of({3, 5}), {2, 1}), Direction::forward, of({3, 6}));
              }),
              AllOf(HasSubstr("2 sequences"), HasSubstr("[2, 6]"), HasSubstr("[3, 6]")));
  ParameterSet<float> others;
  const Gru<float> other(others, "", {.d_in = 5, .d_h = 7});
  EXPECT_THAT(message_of([&] {
                bidirectional(tape_, unit, other, ragged(of({3, 5}), {2, 1}));
              }),
              AllOf(HasSubstr("6 and 7 units")));
  EXPECT_THAT(message_of([&] {
                last_states(tape_, ragged(of({3, 7}), {3}), 6, Direction::forward);
              }),
              AllOf(HasSubstr("7 numbers"), HasSubstr("6 or 12")));
}

TEST_F(GruErrors, OfRowsColumnsAndPairs) {
  const std::vector<int64_t> outside{0, 3}, below{-2};
  EXPECT_THAT(message_of([&] {
                rows<float>(tape_, of({3, 4}), outside);
              }),
              AllOf(HasSubstr("row 3"), HasSubstr("3 rows")));
  EXPECT_THAT(message_of([&] { rows<float>(tape_, of({3, 4}), below); }), HasSubstr("row -2"));
  const std::vector<int64_t> one{0};
  EXPECT_THAT(message_of([&] {
                rows<float>(tape_, of({3, 4}), one, {2, 3});
              }),
              AllOf(HasSubstr("2..5"), HasSubstr("4 numbers")));
  EXPECT_THAT(message_of([&] { rows<float>(tape_, of({3, 4}), one, {5}); }), HasSubstr("5.."));
  EXPECT_THAT(message_of([&] { rows<float>(tape_, of({3, 4}), one, {-1, 2}); }), HasSubstr("-1..1"));
  EXPECT_THAT(message_of([&] { concat_columns(tape_, of({3, 4}), of({2, 4})); }), HasSubstr("3 and 2 rows"));
  EXPECT_THAT(message_of([&] { maxout(tape_, of({3, 5})); }), HasSubstr("not 5"));
}

}  // namespace
}  // namespace gloss::nn
