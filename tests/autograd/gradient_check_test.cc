// The gradient check itself must turn red.
#include "support/gradient_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "support/random.h"

namespace gloss::tests {
namespace {

using autograd::Slot;
using autograd::Tape;
using autograd::Var;
using ::testing::HasSubstr;

// y = f(x) element by element, with the derivative `slope(x, index)` it claims.
template <class F, class Slope>
Operation elementwise(F f, Slope slope) {
  return [f, slope](Tape<double>& tape, const std::vector<Var<double>>& in) -> std::vector<Var<double>> {
    const Var<double>& x = in[0];
    const Tensor<double> y = tape.allocate(x.shape());
    for (int64_t i = 0; i < y.size(); ++i) y.data()[i] = f(x.value().data()[i]);
    return {tape.record(y, {&x}, [&] {
      return [x, slope](Tape<double>& t, const Tensor<double>& dy) {
        const Slot<double> dx = t.slot(x);
        for (int64_t i = 0; i < dy.size(); ++i)
          dx.tensor.data()[i] = dy.data()[i] * slope(x.value().data()[i], i);
      };
    })};
  };
}

std::string check(const Operation& operation, std::vector<double> x = {}) {
  Context context;
  if (x.empty()) x = random_values<double>(6, 1);
  const auto input = Tensor<double>::from(context.arena, {1, static_cast<int64_t>(x.size())}, x);
  return check_gradients(context, {{"x", input}}, operation);
}

const auto kSine = [](double x) { return std::sin(x); };

TEST(GradientCheckSelf, AcceptsARightGradient) {
  EXPECT_EQ(check(elementwise(kSine, [](double x, int64_t) { return std::cos(x); })), "");
}
TEST(GradientCheckSelf, CatchesAWrongFactor) {
  EXPECT_NE(check(elementwise(kSine, [](double x, int64_t) { return 1.0001 * std::cos(x); })), "");
}
TEST(GradientCheckSelf, CatchesZeros) {
  EXPECT_NE(check(elementwise(kSine, [](double, int64_t) { return 0.0; })), "");
}
TEST(GradientCheckSelf, CatchesAWrongSign) {
  EXPECT_NE(check(elementwise(kSine, [](double x, int64_t) { return -std::cos(x); })), "");
}
TEST(GradientCheckSelf, CatchesNan) {
  EXPECT_NE(
      check(elementwise(kSine, [](double x, int64_t i) { return i == 2 ? std::nan("") : std::cos(x); })), "");
}
TEST(GradientCheckSelf, NamesTheWorstElement) {
  EXPECT_THAT(check(elementwise(kSine,
                                [](double x, int64_t i) {
                                  return std::cos(x) + (i == 4 ? 0.5 : i == 1 ? 0.1 : 0);
                                })),
              HasSubstr("x[4]"));
}
TEST(GradientCheckSelf, KnowsBothSidesOfAKink) {
  const auto relu = [](double x) { return x > 0 ? x : 0; };
  const std::vector<double> around{-1e-6, 0, 1e-6, 1};
  EXPECT_EQ(check(elementwise(relu, [](double x, int64_t) { return x > 0 ? 1.0 : 0.0; }), around), "");
  EXPECT_EQ(check(elementwise(relu, [](double x, int64_t) { return x >= 0 ? 1.0 : 0.0; }), around), "");
  EXPECT_NE(check(elementwise(relu, [](double x, int64_t) { return x > 0 ? 1.0 : 0.5; }), around), "");
}
TEST(GradientCheckSelf, ChecksParameters) {
  for (const double claimed : {3.0, 2.0}) {
    Context context;
    autograd::ParameterSet<double> parameters;
    const autograd::Parameter<double>& p = parameters.vector("p", 2, autograd::Init::ones());
    parameters.allocate(context.arena);
    parameters.initialise(1);
    parameters.allocate_gradients(context.arena);
    GradientCheck options;
    options.parameters = &parameters;
    const std::string message = check_gradients(
        context, {},
        [&](Tape<double>& tape, const std::vector<Var<double>>&) -> std::vector<Var<double>> {
          const Var<double> x = tape.use(p);
          const Tensor<double> y = tape.allocate(x.shape());
          for (int64_t i = 0; i < 2; ++i) y.data()[i] = 3 * x.value().data()[i];
          return {tape.record(y, {&x}, [&] {
            return [x, claimed](Tape<double>& t, const Tensor<double>& dy) {
              const Slot<double> dx = t.slot(x);
              for (int64_t i = 0; i < 2; ++i) dx.tensor.data()[i] += claimed * dy.data()[i];
            };
          })};
        },
        options);
    EXPECT_EQ(message.empty(), claimed == 3.0) << message;
  }
}

}  // namespace
}  // namespace gloss::tests
