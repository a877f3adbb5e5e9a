// The recurrent layers against finite differences.
#include <gtest/gtest.h>

#include "gloss/nn/maxout.h"
#include "gloss/nn/rows.h"
#include "nn/gru_support.h"
#include "support/compare.h"
#include "support/gradient_check.h"

namespace gloss::nn {
namespace {

using tests::check_gradients;
using tests::NamedTensor;
using Vars = std::vector<Var<double>>;
using Results = std::vector<Var<double>>;

class GruGradient : public ::testing::Test {
 protected:
  NamedTensor input(const char* name, Shape shape, double scale = 1) {
    return {name, tests::random_tensor<double>(context_.arena, shape, ++seed_, scale)};
  }
  Context context_{2};
  uint64_t seed_ = 0;
};

TEST_F(GruGradient, Step) {
  for (const GruShape& shape : gru_shapes()) {
    SCOPED_TRACE(text(shape));
    Units<double> units(context_, shape);
    for (const int64_t rows : {1, 4}) {
      EXPECT_EQ(check_gradients(context_, {input("x", {rows, 5}), input("h_prev", {rows, 6})},
                                [&](Tape<double>& tape, const Vars& in) {
                                  const Gru<double>& unit = units.forward;
                                  return Results{unit.step(tape, unit.input_gates(tape, in[0]), in[1])};
                                },
                                {.parameters = &units.parameters}),
                "");
    }
  }
}

// Gates, states and weights are used again and again: gradients add up.
TEST_F(GruGradient, ALoopOverSteps) {
  for (const GruShape& shape : gru_shapes()) {
    SCOPED_TRACE(text(shape));
    Units<double> units(context_, shape);
    EXPECT_EQ(check_gradients(context_, {input("x", {3, 5}), input("h_prev", {3, 6})},
                              [&](Tape<double>& tape, const Vars& in) {
                                const GruWeights<double> weights = units.forward.weights(tape);
                                const Var<double> gates = units.forward.input_gates(tape, in[0]);
                                const Var<double> a = units.forward.step(tape, gates, in[1], weights);
                                const Var<double> b = units.forward.step(tape, gates, a, weights);
                                const Var<double> c =
                                    units.backward.step(tape, units.backward.input_gates(tape, in[0]), b);
                                return Results{a, c, units.forward.step(tape, gates, a, weights)};
                              },
                              {.parameters = &units.parameters}),
              "");
  }
}

// From a constant state, whose products still carry gradients of the weights.
TEST_F(GruGradient, AStepFromAConstant) {
  for (const GruShape& shape : gru_shapes()) {
    SCOPED_TRACE(text(shape));
    Units<double> units(context_, shape);
    const Var<double> h(input("h_prev", {3, 6}).value);
    EXPECT_EQ(check_gradients(context_, {input("x", {3, 5})},
                              [&](Tape<double>& tape, const Vars& in) {
                                const Gru<double>& unit = units.forward;
                                return Results{unit.step(tape, unit.input_gates(tape, in[0]), h),
                                               unit.run(tape, ragged(in[0], {2, 1}), Direction::forward,
                                                        Var<double>(h.value().slice_rows(0, 2)))
                                                   .rows};
                              },
                              {.parameters = &units.parameters}),
              "");
  }
}

TEST_F(GruGradient, RunFromZerosAndFromStates) {
  const std::vector<int64_t> lengths{2, 0, 4, 1, 2};
  for (const GruShape& shape : gru_shapes()) {
    SCOPED_TRACE(text(shape));
    Units<double> units(context_, shape);
    for (const Direction direction : {Direction::forward, Direction::backward}) {
      EXPECT_EQ(check_gradients(context_, {input("x", {9, 5}), input("first", {5, 6})},
                                [&](Tape<double>& tape, const Vars& in) {
                                  const auto a =
                                      units.forward.run(tape, ragged(in[0], lengths), direction, in[1]);
                                  const auto b = units.backward.run(tape, ragged(in[0], lengths), direction);
                                  return Results{a.rows, b.rows, last_states(tape, b, 6, direction)};
                                },
                                {.parameters = &units.parameters}),
                "");
    }
  }
}

// A first state of one run may be that of another, and its own result.
TEST_F(GruGradient, RunsInARow) {
  const std::vector<int64_t> lengths{2, 0, 3};
  Units<double> units(context_, {5, 6});
  EXPECT_EQ(check_gradients(context_, {input("x", {5, 5}), input("first", {3, 6})},
                            [&](Tape<double>& tape, const Vars& in) {
                              const auto x = ragged(in[0], lengths);
                              const auto a = units.forward.run(tape, x, Direction::forward, in[1]);
                              const Var<double> last = last_states(tape, a, 6, Direction::forward);
                              const auto b = units.backward.run(tape, x, Direction::backward, last);
                              const auto c = units.forward.run(tape, x, Direction::backward, in[1]);
                              return Results{b.rows, c.rows};
                            },
                            {.parameters = &units.parameters}),
            "");
}

TEST_F(GruGradient, Bidirectional) {
  for (const GruShape& shape : gru_shapes()) {
    SCOPED_TRACE(text(shape));
    Units<double> units(context_, shape);
    for (const std::vector<int64_t>& lengths :
         {std::vector<int64_t>{3, 0, 1, 4}, std::vector<int64_t>{1}, std::vector<int64_t>{0, 0}}) {
      const int64_t tokens = Offsets::of_lengths(lengths).total();
      EXPECT_EQ(
          check_gradients(context_, {input("x", {tokens, 5})},
                          [&](Tape<double>& tape, const Vars& in) {
                            const auto states =
                                bidirectional(tape, units.forward, units.backward, ragged(in[0], lengths));
                            return Results{states.rows, last_states(tape, states, 6, Direction::backward)};
                          },
                          {.parameters = &units.parameters}),
          "");
    }
  }
}

// Only what is asked for: frozen weights, or constant inputs.
TEST_F(GruGradient, WithoutGradientsOfParametersOrInputs) {
  for (const GruShape& shape : gru_shapes()) {
    SCOPED_TRACE(text(shape));
    ParameterSet<double> frozen;
    const Gru<double> unit(frozen, "", shape);
    frozen.allocate(context_.arena);
    frozen.initialise(3);
    EXPECT_EQ(check_gradients(
                  context_, {input("x", {3, 5}), input("first", {2, 6})},
                  [&](Tape<double>& tape, const Vars& in) {
                    return Results{unit.run(tape, ragged(in[0], {1, 2}), Direction::forward, in[1]).rows};
                  }),
              "");
    Units<double> units(context_, shape);
    const Var<double> constant(input("x", {3, 5}).value);
    EXPECT_EQ(
        check_gradients(
            context_, {},
            [&](Tape<double>& tape, const Vars&) {
              return Results{units.forward.run(tape, ragged(constant, {1, 2}), Direction::backward).rows};
            },
            {.parameters = &units.parameters}),
        "");
  }
}

TEST_F(GruGradient, RowsAndColumns) {
  const std::vector<int64_t> indices{3, -1, 0, 3, 2, 3};
  EXPECT_EQ(check_gradients(context_, {input("x", {4, 70}), input("y", {6, 3})},
                            [&](Tape<double>& tape, const Vars& in) {
                              const Var<double> all = rows<double>(tape, in[0], indices);
                              const Var<double> some = rows<double>(tape, in[0], indices, {5, 2});
                              return Results{all, rows<double>(tape, in[0], indices, {69}),
                                             concat_columns(tape, some, in[1]),
                                             concat_columns(tape, in[1], in[1])};
                            }),
            "");
}

TEST_F(GruGradient, MaxoutOnBothSidesOfItsKink) {
  EXPECT_EQ(check_gradients(context_, {input("x", {4, 38})},
                            [&](Tape<double>& tape, const Vars& in) {
                              const Var<double> y = maxout(tape, in[0]);
                              return Results{y, maxout(tape, concat_columns(tape, y, y))};
                            }),
            "");
  // Far below, a hair below, at, a hair above and far above the neighbour.
  const NamedTensor x{"x", Tensor<double>::from(
                               context_.arena, {1, 10},
                               std::vector{-2.0, 1.0, 1.0 - 1e-7, 1.0, 1.0, 1.0, 1.0 + 1e-7, 1.0, 5.0, 1.0})};
  const tests::Operation run = [](Tape<double>& tape, const Vars& in) {
    return Results{maxout(tape, in[0])};
  };
  EXPECT_EQ(check_gradients(context_, {x}, run), "");
  Tape<double> tape(context_, Tape<double>::Mode::train);
  const Var<double> leaf = tape.leaf(x.value);
  const Tensor<double> ones(context_.arena, {1, 5});
  ones.fill(1);
  tape.backward(run(tape, {leaf})[0], ones);
  EXPECT_TRUE(tests::same_bits(tests::doubles(tape.gradient(leaf)),
                               std::vector{0.0, 1.0, 0.0, 1.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0}));
}

}  // namespace
}  // namespace gloss::nn
