// The recurrent layers against PyTorch's numbers.
#include <gtest/gtest.h>

#include "gloss/nn/maxout.h"
#include "nn/gru_support.h"
#include "support/compare.h"
#include "support/isas.h"

namespace gloss::nn {
namespace {

using tests::close;
using tests::Golden;
using tests::kTolerance;

template <class T>
class GruGolden : public ::testing::Test {};
using Numbers = ::testing::Types<float, double>;
TYPED_TEST_SUITE(GruGolden, Numbers);

// A unit whose parameters stand in the file as <prefix><name>.
template <class T>
struct GoldenUnit {
  GoldenUnit(Context& context, const Golden& golden, const std::string& prefix, const GruShape& shape)
      : unit(parameters, prefix, shape) {
    read_parameters(context, golden, parameters);
  }
  ParameterSet<T> parameters;
  Gru<T> unit;
};

TYPED_TEST(GruGolden, Cell) {
  using T = TypeParam;
  for (const char* name : {"gru_cell", "gru_cell_before", "gru_cell_norm", "gru_cell_before_norm"}) {
    SCOPED_TRACE(name);
    const Golden golden(name);
    tests::on_every_isa([&](kernels::Isa) {
      Context context(2);
      const auto read = [&](const char* of) { return golden.read<T>(context.arena, of); };
      Tape<T> tape(context, Tape<T>::Mode::train);
      const Var<T> x = tape.leaf(read("x")), h = tape.leaf(read("h"));
      const GoldenUnit<T> cell(
          context, golden, "",
          {.d_in = x.cols(),
           .d_h = h.cols(),
           .reset = golden.setting("reset") == "\"before\"" ? ResetGate::before : ResetGate::after,
           .layer_norm = golden.has("norm_ih.weight")});
      const Var<T> out = cell.unit.step(tape, cell.unit.input_gates(tape, x), h);
      EXPECT_TRUE(close(out.value(), golden.read<double>(context.arena, "out"), kTolerance<T>));
      tape.backward(out, read("up.out"));
      EXPECT_TRUE(close(tape.gradient(x), golden.read<double>(context.arena, "grad.x"), kTolerance<T>));
      EXPECT_TRUE(close(tape.gradient(h), golden.read<double>(context.arena, "grad.h"), kTolerance<T>));
      expect_gradients(context, golden, cell.parameters);
    });
  }
}

// The file is padded: [sequences, longest, ...].
TYPED_TEST(GruGolden, Bidirectional) {
  using T = TypeParam;
  const Golden golden("bidirectional_gru");
  const std::map<std::string, std::string> theirs{
      {"weight_ih", "W_ih"}, {"weight_hh", "W_hh"}, {"bias_ih", "b_ih"}, {"bias_hh", "b_hh"}};
  const auto their_name = [&](const std::string& ours) {
    const size_t dot = ours.find('.') + 1;
    return ours.substr(0, dot) + theirs.at(ours.substr(dot));
  };
  tests::on_every_isa([&](kernels::Isa) {
    Context context(2);
    const std::vector<int64_t> length = golden.ints("length");
    const Offsets offsets = Offsets::of_lengths(length);
    Units<T> units(context, {.d_in = 6, .d_h = 5});
    const auto parameters = by_name(units.parameters);
    for (const auto& [name, parameter] : parameters) {
      const Tensor<T> from = golden.read<T>(context.arena, their_name(name));
      std::ranges::copy(from.values(), parameter.value.values().begin());
    }
    Tape<T> tape(context, Tape<T>::Mode::train);
    const Var<T> x = tape.leaf(live_rows(context.arena, golden.read<T>(context.arena, "x"), offsets));
    const Var<T> states = bidirectional(tape, units.forward, units.backward, {x, offsets}).rows;
    const auto wanted = [&](const std::string& name) {
      return live_rows(context.arena, golden.read<double>(context.arena, name), offsets);
    };
    EXPECT_TRUE(close(states.value(), wanted("states"), kTolerance<T>));
    tape.backward(states, live_rows(context.arena, golden.read<T>(context.arena, "up.states"), offsets));
    EXPECT_TRUE(close(tape.gradient(x), wanted("grad.x"), kTolerance<T>));
    for (const auto& [name, parameter] : parameters) {
      SCOPED_TRACE(name);
      EXPECT_TRUE(close(std::vector<T>(parameter.gradient.begin(), parameter.gradient.end()),
                        golden.read<double>(context.arena, "grad." + their_name(name)), kTolerance<T>));
    }
  });
}

TYPED_TEST(GruGolden, Maxout) {
  using T = TypeParam;
  const Golden golden("maxout");
  tests::on_every_isa([&](kernels::Isa) {
    Context context;
    Tape<T> tape(context, Tape<T>::Mode::train);
    const Var<T> x = tape.leaf(golden.read<T>(context.arena, "x"));
    const Var<T> out = maxout(tape, x);
    EXPECT_TRUE(close(out.value(), golden.read<double>(context.arena, "out"), kTolerance<T>));
    tape.backward(out, golden.read<T>(context.arena, "up.out"));
    EXPECT_TRUE(close(tape.gradient(x), golden.read<double>(context.arena, "grad.x"), kTolerance<T>));
  });
}

// The two transitions of a decoder step; the attention between them is in tests/attention. What it gives, and
// what it passes back, is in the file.
TYPED_TEST(GruGolden, ConditionalSteps) {
  using T = TypeParam;
  const Golden golden("conditional_gru");
  Context context;
  const auto read = [&](const char* name) { return golden.read<T>(context.arena, name); };
  const auto wanted = [&](const char* name) { return golden.read<double>(context.arena, name); };
  Tape<T> tape(context, Tape<T>::Mode::train);
  const Var<T> embedding = tape.leaf(read("embedding")), s_prev = tape.leaf(read("s_prev")),
               attended = tape.leaf(read("context"));
  const GoldenUnit<T> first(context, golden, "gru_1.", {.d_in = embedding.cols(), .d_h = s_prev.cols()}),
      second(context, golden, "gru_2.", {.d_in = attended.cols(), .d_h = s_prev.cols()});
  const Var<T> query = first.unit.step(tape, first.unit.input_gates(tape, embedding), s_prev);
  EXPECT_TRUE(close(query.value(), wanted("query"), kTolerance<T>));
  const Var<T> s = second.unit.step(tape, second.unit.input_gates(tape, attended), query);
  EXPECT_TRUE(close(s.value(), wanted("s"), kTolerance<T>));
  tape.backward({{s, read("up.s")}, {query, read("grad.query_by_attention")}});
  EXPECT_TRUE(close(tape.gradient(attended), wanted("grad.context"), kTolerance<T>));
  EXPECT_TRUE(close(tape.gradient(embedding), wanted("grad.embedding"), kTolerance<T>));
  EXPECT_TRUE(close(tape.gradient(s_prev), wanted("grad.s_prev"), kTolerance<T>));
  expect_gradients(context, golden, first.parameters);
  expect_gradients(context, golden, second.parameters);
}

}  // namespace
}  // namespace gloss::nn
