#include "gloss/autograd/tape.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "gloss/nn/add_norm.h"
#include "gloss/nn/linear.h"
#include "support/compare.h"
#include "support/random.h"

namespace gloss::autograd {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class TapeTest : public ::testing::Test {
 protected:
  Tensor<double> numbers(std::vector<double> values) {
    return Tensor<double>::from(context_.arena, {1, static_cast<int64_t>(values.size())}, values);
  }
  // y = factor * x, counting how often its backward runs.
  Var<double> times(Tape<double>& tape, double factor, const Var<double>& x) {
    const Tensor<double> y = tape.allocate(x.shape());
    for (int64_t i = 0; i < y.size(); ++i) y.data()[i] = factor * x.value().data()[i];
    return tape.record(y, {&x}, [&] {
      return [this, factor, x = x.place()](Tape<double>& t, const Tensor<double>& dy) {
        ++backward_runs_;
        const Slot<double> dx = t.slot(x);
        for (int64_t i = 0; i < dy.size(); ++i) {
          double& to = dx.tensor.data()[i];
          to = (dx.accumulate == kernels::Accumulate::yes ? to : 0) + factor * dy.data()[i];
        }
      };
    });
  }
  // (2 x, 3 x) from one operation; notes which upstream gradients came.
  std::pair<Var<double>, Var<double>> twice_and_thrice(Tape<double>& tape, const Var<double>& x) {
    const Tensor<double> two = tape.allocate(x.shape()), three = tape.allocate(x.shape());
    for (int64_t i = 0; i < two.size(); ++i) {
      two.data()[i] = 2 * x.value().data()[i];
      three.data()[i] = 3 * x.value().data()[i];
    }
    return tape.record2(two, three, {&x}, [&] {
      return [this, x = x.place()](Tape<double>& t, const Tensor<double>& d2, const Tensor<double>& d3) {
        ++backward_runs_;
        came_ = {!d2.empty(), !d3.empty()};
        const Slot<double> dx = t.slot(x);
        for (int64_t i = 0; i < dx.tensor.size(); ++i) {
          double& to = dx.tensor.data()[i];
          to = (dx.accumulate == kernels::Accumulate::yes ? to : 0) + (d2 ? 2 * d2.data()[i] : 0) +
               (d3 ? 3 * d3.data()[i] : 0);
        }
      };
    });
  }
  size_t live() const { return context_.arena.counters().bytes_live; }

  Context context_;
  Tape<double> tape_{context_, Tape<double>::Mode::train};
  int backward_runs_ = 0;
  std::pair<bool, bool> came_{};
};

TEST_F(TapeTest, AddsUpOverEveryUseOfAValue) {
  const Var<double> x = tape_.leaf(numbers({1, -2}));
  const Var<double> a = times(tape_, 2, x), b = times(tape_, 5, a), c = times(tape_, 7, a);
  tape_.backward({{b, numbers({1, 10})}, {c, numbers({1, 0})}, {x, numbers({0.5, 0})}});
  EXPECT_THAT(tape_.gradient(x).values(), ElementsAre(2 * (5 + 7) + 0.5, 2 * 50));
  EXPECT_EQ(backward_runs_, 3);
}

TEST_F(TapeTest, AValueGivenTwiceGetsBothUpstreamGradients) {
  const Var<double> x = tape_.leaf(numbers({1})), y = times(tape_, 2, x);
  tape_.backward({{y, numbers({1})}, {y, numbers({10})}});
  EXPECT_THAT(tape_.gradient(x).values(), ElementsAre(22));
}

TEST_F(TapeTest, SkipsWhatNoGradientReaches) {
  const Var<double> x = tape_.leaf(numbers({1})), unused = tape_.leaf(numbers({1, 2}));
  const Var<double> y = times(tape_, 2, x);
  times(tape_, 3, y);       // a result nobody looks at
  times(tape_, 3, unused);  // a branch nobody looks at
  tape_.backward(y, numbers({1}));
  EXPECT_EQ(backward_runs_, 1);
  EXPECT_THAT(tape_.gradient(x).values(), ElementsAre(2));
  EXPECT_THAT(tape_.gradient(unused).values(), ElementsAre(0, 0));
}

TEST_F(TapeTest, TwoResultsMeetInOneBackward) {
  for (const auto& [first, second] : {std::pair{true, true}, {true, false}, {false, true}}) {
    Tape<double> tape(context_, Tape<double>::Mode::train);
    backward_runs_ = 0;
    const Var<double> x = tape.leaf(numbers({1}));
    const auto [two, three] = twice_and_thrice(tape, x);
    std::vector<std::pair<Var<double>, Tensor<double>>> results;
    double want = 0;
    if (first) results.emplace_back(times(tape, 10, two), numbers({1})), want += 20;
    if (second) results.emplace_back(times(tape, 100, three), numbers({1})), want += 300;
    tape.backward(results);
    EXPECT_THAT(tape.gradient(x).values(), ElementsAre(want));
    EXPECT_EQ(came_, std::pair(first, second));
    EXPECT_EQ(backward_runs_, static_cast<int>(results.size()) + 1);
  }
  // Neither used: it does not run.
  Tape<double> tape(context_, Tape<double>::Mode::train);
  backward_runs_ = 0;
  const Var<double> x = tape.leaf(numbers({1}));
  twice_and_thrice(tape, x);
  tape.backward(times(tape, 2, x), numbers({1}));
  EXPECT_EQ(backward_runs_, 1);
}

TEST_F(TapeTest, ParametersAccumulateOverUsesAndPasses) {
  ParameterSet<double> parameters;
  const Parameter<double>& p = parameters.declare({{"a", 2, Init::ones()}, {"b", 1, Init::ones()}}, 0);
  parameters.allocate(context_.arena);
  parameters.initialise(1);
  parameters.allocate_gradients(context_.arena);
  for (int pass = 1; pass <= 2; ++pass) {
    Tape<double> tape(context_, Tape<double>::Mode::train);
    const Var<double> once = times(tape, 2, tape.use(p)), again = times(tape, 3, tape.use(p)),
                      part = times(tape, 10, tape.use_rows(p, 1, 2));
    const Tensor<double> ones3 = Tensor<double>::from(context_.arena, {3}, std::vector{1.0, 1.0, 1.0});
    const Tensor<double> ones2 = Tensor<double>::from(context_.arena, {2}, std::vector{1.0, 1.0});
    tape.backward({{once, ones3}, {again, ones3}, {part, ones2}});
    EXPECT_THAT(p.gradient.values(), ElementsAre(5 * pass, 15 * pass, 15 * pass));
  }
}

TEST_F(TapeTest, ParametersWithoutGradientsAreConstants) {
  ParameterSet<double> parameters;
  const Parameter<double>& p = parameters.vector("a", 3, Init::ones());
  parameters.allocate(context_.arena);
  EXPECT_FALSE(tape_.use(p).wants_gradient());
  EXPECT_FALSE(tape_.use_rows(p, 0, 2).wants_gradient());
}

TEST_F(TapeTest, RecordsNothingWhenTranslating) {
  ParameterSet<double> parameters;
  const Parameter<double>& p = parameters.vector("a", 3, Init::ones());
  parameters.allocate(context_.arena);
  parameters.allocate_gradients(context_.arena);
  Tape<double> tape(context_);
  EXPECT_FALSE(tape.training());
  for (const Var<double>& x : {tape.leaf(numbers({1, 2, 3})), tape.use(p), tape.use_rows(p, 0, 2)}) {
    EXPECT_FALSE(x.wants_gradient());
    const size_t before = live();
    EXPECT_FALSE(times(tape, 2, x).wants_gradient());
    EXPECT_EQ(live(), before);  // the result is gone with its variable
  }
  EXPECT_FALSE(tape.dropout(0.5).active());
  EXPECT_THROW(tape.gradient(tape.leaf(numbers({1}))), Error);
}

TEST_F(TapeTest, DropoutsOfAPassDifferAndComeAgainWithTheKey) {
  const auto masks = [&](uint64_t seed) {
    Tape<double> tape(context_, Tape<double>::Mode::train, RandomKey(seed));
    std::vector<double> factors;
    for (int layer = 0; layer < 2; ++layer) {
      const kernels::Dropout d = tape.dropout(0.5);
      for (uint64_t i = 0; i < 64; ++i) factors.push_back(d.factor(i));
    }
    return factors;
  };
  const std::vector<double> one = masks(1);
  EXPECT_EQ(one, masks(1));
  EXPECT_NE(one, masks(2));
  EXPECT_NE(std::vector(one.begin(), one.begin() + 64), std::vector(one.begin() + 64, one.end()));
}

TEST_F(TapeTest, IsWalkedOnce) {
  const Var<double> x = tape_.leaf(numbers({1, 2})), y = times(tape_, 2, x);
  tape_.backward(y, numbers({1, 1}));
  EXPECT_THAT(tape_.gradient(x).values(), ElementsAre(2, 2));
  // Again, from another result, and from what was recorded since.
  const Var<double> z = times(tape_, 3, x);
  for (const Var<double>* result : {&y, &x, &z}) {
    try {
      tape_.backward(*result, numbers({1, 1}));
      ADD_FAILURE() << "it was walked again";
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr("walked back already"));
    }
  }
  EXPECT_THAT(tape_.gradient(x).values(), ElementsAre(2, 2));
  EXPECT_EQ(backward_runs_, 1);
}

TEST_F(TapeTest, RefusesAnUpstreamGradientOfAnotherShape) {
  const Var<double> x = tape_.leaf(numbers({1, 2}));
  try {
    tape_.backward(times(tape_, 2, x), numbers({1, 2, 3}));
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("[1, 3]"));
    EXPECT_THAT(error.what(), HasSubstr("[1, 2]"));
  }
}

// Memory is given back while the walk goes on: a chain of n layers needs its activations on the way up, and
// on the way down what is freed makes room for gradients.
TEST_F(TapeTest, FreesWhatItUsed) {
  const size_t before = live();
  {
    Tape<float> tape(context_, Tape<float>::Mode::train);
    const auto weight = tests::random_tensor<float>(context_.arena, {64, 64}, 1);
    const Var<float> leaf = tape.leaf(tests::random_tensor<float>(context_.arena, {128, 64}, 2));
    const size_t start = live();
    size_t kept = 0, after_forward = 0;
    {
      Var<float> x = leaf;
      for (int layer = 0; layer < 20; ++layer) {
        x = nn::linear(tape, x, Var<float>(weight), Var<float>(), kernels::Activation::relu);
      }
      after_forward = live();
      kept = after_forward - start;
      EXPECT_GE(kept, 20u * 128 * 64 * sizeof(float));
      context_.arena.reset_peak();
      tape.backward(x, tests::random_tensor<float>(context_.arena, x.shape(), 3));
    }
    // What came on top while walking: gradients of two or three layers, not of twenty.
    EXPECT_LE(context_.arena.counters().bytes_peak - after_forward, kept / 4);
    // What is left: the gradient of the leaf.
    EXPECT_LE(live() - start, kept / 10);
    EXPECT_EQ(tape.gradient(leaf).size(), 128 * 64);
  }
  EXPECT_EQ(live(), before);
}

// The walk is a loop: depth costs no stack.
TEST_F(TapeTest, WalksAnyDepth) {
  const Var<double> x = tape_.leaf(numbers({1}));
  Var<double> y = x;
  for (int i = 0; i < 200'000; ++i) y = times(tape_, i % 2 ? 2 : 0.5, y);
  tape_.backward(y, numbers({3}));
  EXPECT_THAT(tape_.gradient(x).values(), ElementsAre(3));
}

TEST_F(TapeTest, WarmStepsAskTheSystemForNothing) {
  const auto step = [&] {
    Tape<float> tape(context_, Tape<float>::Mode::train, RandomKey(1));
    const Var<float> x = tape.leaf(tests::random_tensor<float>(context_.arena, {40, 64}, 2));
    const Var<float> w = tape.leaf(tests::random_tensor<float>(context_.arena, {64, 64}, 3));
    const Var<float> y =
        nn::add_dropout(tape, x, nn::linear(tape, x, w, Var<float>(), kernels::Activation::gelu), 0.1);
    tape.backward(y, tests::random_tensor<float>(context_.arena, y.shape(), 4));
  };
  step();
  const uint64_t before = context_.arena.counters().system_allocations;
  for (int i = 0; i < 5; ++i) step();
  EXPECT_EQ(context_.arena.counters().system_allocations, before);
}

TEST(Parameters, StartOrthogonal) {
  Context context;
  ParameterSet<double> set;
  // Square blocks of 20 numbers, one of them cut off after 7 rows; the key is the name.
  const auto& tall = set.matrix("tall", 47, 20, Init::orthogonal(2));
  const auto& other = set.matrix("other", 40, 20, Init::orthogonal());
  set.allocate(context.arena);
  set.initialise(3);
  const auto dot = [](const Parameter<double>& p, int64_t i, int64_t j) {
    return std::inner_product(p.value.row(i), p.value.row(i) + 20, p.value.row(j), 0.0);
  };
  for (int64_t i = 0; i < 47; ++i) {
    for (int64_t j = 0; j < 47; ++j) {
      if (i / 20 == j / 20) {
        EXPECT_NEAR(dot(tall, i, j), i == j ? 4 : 0, 1e-12) << i << " " << j;
      }
    }
  }
  EXPECT_GT(std::abs(dot(tall, 0, 20)), 1e-3);  // blocks know nothing of each other
  EXPECT_NE(tall.value(0, 0), 2 * other.value(0, 0));
  const std::vector<double> before(set.values().begin(), set.values().end());
  set.initialise(3);
  EXPECT_TRUE(std::ranges::equal(before, set.values()));
  set.initialise(4);
  EXPECT_NE(tall.value(0, 0), before[0]);
}

TEST(Parameters, StandByNameInOneBlock) {
  Context context;
  ParameterSet<float> set;
  Parameter<float>& stacked = set.declare({{"q", 3, Init::normal(1)}, {"k", 2, Init::xavier(2, 5)}}, 5);
  Parameter<float>& vector = set.vector("bias", 7, Init::ones());
  Parameter<float>& table = set.matrix("table", 4, 5, Init::normal(2));
  table.frozen_row = 1;
  set.allocate(context.arena);
  set.allocate_gradients(context.arena);
  set.initialise(42);
  EXPECT_EQ(set.count(), 25 + 7 + 20);
  EXPECT_EQ(stacked.value.shape(), (Shape{5, 5}));
  EXPECT_EQ(vector.value.shape(), (Shape{7}));
  EXPECT_THAT(vector.value.values(), Each(1.0f));
  for (int64_t c = 0; c < 5; ++c) EXPECT_EQ(table.value(1, c), 0);
  EXPECT_THAT(set.gradients(), Each(0.0f));
  std::vector<std::string> names;
  set.each_part([&](const std::string& name, const Tensor<float>& value) {
    names.push_back(name + value.shape().text());
    EXPECT_GE(value.data(), set.values().data());
    EXPECT_LE(value.data() + value.size(), set.values().data() + set.values().size());
    if (name == "k") {
      EXPECT_EQ(value.data(), stacked.value.row(3));
      const float bound = std::sqrt(6.0f / 7.0f);
      for (const float x : value.values()) EXPECT_LE(std::abs(x), bound);
    }
  });
  EXPECT_THAT(names, ElementsAre("q[3, 5]", "k[2, 5]", "bias[7]", "table[4, 5]"));
  EXPECT_THROW(set.vector("late", 1, Init::ones()), Error);

  // Initial numbers are a matter of seed, name and index: another order and another stacking change none.
  ParameterSet<float> other;
  other.matrix("table", 4, 5, Init::normal(2));
  const Parameter<float>& k = other.matrix("k", 2, 5, Init::xavier(2, 5));
  other.allocate(context.arena);
  other.initialise(42);
  EXPECT_TRUE(tests::same_bits(k.value, stacked.value.slice_rows(3, 2)));
  other.initialise(43);
  EXPECT_FALSE(tests::same_bits(k.value, stacked.value.slice_rows(3, 2)));
}

}  // namespace
}  // namespace gloss::autograd
