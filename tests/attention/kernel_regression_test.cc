// Kernel regression: PyTorch's numbers, finite differences, and what every kind of attention must keep.
#include "gloss/attention/kernel_regression.h"

#include <cmath>
#include <limits>

#include "attention/support.h"
#include "support/golden.h"
#include "support/gradient_check.h"

namespace gloss::attention {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using tests::check_gradients;
using tests::close;
using tests::Golden;
using tests::kTolerance;
using tests::random_tensor;
using tests::same_bits;

template <class T>
class KernelRegressionGolden : public ::testing::Test {};
using Numbers = ::testing::Types<float, double>;
TYPED_TEST_SUITE(KernelRegressionGolden, Numbers);

TYPED_TEST(KernelRegressionGolden, EqualsPyTorch) {
  using T = TypeParam;
  for (const char* name :
       {"kernel_regression_scalar", "kernel_regression_vector", "kernel_regression_bandwidth"}) {
    SCOPED_TRACE(name);
    Context context(2);
    Arena& arena = context.arena;
    const Golden golden(name);
    Tape<T> tape(context, Tape<T>::Mode::train);
    const auto leaf = [&](const char* of) { return tape.leaf(golden.read<T>(arena, of)); };
    const Var<T> x = leaf("x"), x_i = leaf("xi"), y_i = leaf("y"), b = golden.has("b") ? leaf("b") : Var<T>();
    const KernelRegression<T> r = kernel_regression(tape, x, x_i, y_i, b);
    EXPECT_TRUE(close(r.prediction.value(), golden.read<double>(arena, "out"), kTolerance<T>));
    EXPECT_TRUE(close(r.weights.value(), golden.read<double>(arena, "weights"), kTolerance<T>));
    if (golden.has("scores")) {
      EXPECT_TRUE(close(r.scores, golden.read<double>(arena, "scores"), kTolerance<T>));
    }
    tape.backward(
        {{r.prediction, golden.read<T>(arena, "up.out")}, {r.weights, golden.read<T>(arena, "up.weights")}});
    const auto check = [&](const Var<T>& var, const char* of) {
      EXPECT_TRUE(close(tape.gradient(var), golden.read<double>(arena, of), kTolerance<T>)) << of;
    };
    check(x, "grad.x");
    check(x_i, "grad.xi");
    check(y_i, "grad.y");
    if (b) check(b, "grad.b");
  }
}

class KernelRegressionTest : public ::testing::Test {
 protected:
  template <class T>
  Tensor<T> column(std::vector<T> values) {
    return Tensor<T>::from(context_.arena, {static_cast<int64_t>(values.size()), 1}, values);
  }
  Context context_{2};
};

TEST_F(KernelRegressionTest, GradientsEqualFiniteDifferences) {
  Arena& arena = context_.arena;
  const auto all = [](Tape<double>& tape, const std::vector<Var<double>>& in) {
    const auto r = kernel_regression(tape, in[0], in[1], in[2], in.size() > 3 ? in[3] : Var<double>());
    return std::vector<Var<double>>{r.prediction, r.weights};
  };
  for (const double b : {0.3, 1.0, 4.0}) {
    for (const int64_t d : {1, 3}) {
      for (const int64_t n : {0, 1, 7}) {
        SCOPED_TRACE(testing::Message() << "b " << b << " d " << d << " n " << n);
        EXPECT_EQ(check_gradients(context_,
                                  {{"x", random_tensor<double>(arena, {4, d}, 1)},
                                   {"x_i", random_tensor<double>(arena, {n, d}, 2)},
                                   {"y_i", random_tensor<double>(arena, {n, 2}, 3)},
                                   {"b", Tensor<double>::from(arena, {1}, std::vector<double>{b})}},
                                  all),
                  "");
      }
    }
  }
  // The prediction alone, the weights alone, and points that are queries and values too.
  const auto part = [&](bool weights) {
    return check_gradients(context_,
                           {{"x", random_tensor<double>(arena, {4, 2}, 1)},
                            {"x_i", random_tensor<double>(arena, {5, 2}, 2)},
                            {"y_i", random_tensor<double>(arena, {5, 3}, 3)}},
                           [&](Tape<double>& tape, const std::vector<Var<double>>& in) {
                             const auto r = kernel_regression(tape, in[0], in[1], in[2]);
                             return std::vector<Var<double>>{weights ? r.weights : r.prediction};
                           });
  };
  EXPECT_EQ(part(false), "");
  EXPECT_EQ(part(true), "");
  EXPECT_EQ(check_gradients(context_, {{"x", random_tensor<double>(arena, {5, 2}, 1)}},
                            [&](Tape<double>& tape, const std::vector<Var<double>>& in) {
                              const auto r = kernel_regression(tape, in[0], in[0], in[0]);
                              return std::vector<Var<double>>{r.prediction, r.weights};
                            }),
            "");
}

TEST_F(KernelRegressionTest, RowsSumToOneAndNearerPointsWeighMore) {
  Tape<float> tape(context_);
  const Var<float> x(random_tensor<float>(context_.arena, {50, 2}, 1)),
      x_i(random_tensor<float>(context_.arena, {40, 2}, 2)),
      y_i(random_tensor<float>(context_.arena, {40, 3}, 3));
  const auto r = kernel_regression(tape, x, x_i, y_i);
  for (int64_t q = 0; q < 50; ++q) {
    double sum = 0;
    for (int64_t i = 0; i < 40; ++i) {
      sum += static_cast<double>(r.weights.value()(q, i));
      EXPECT_EQ(r.scores(q, i) > r.scores(q, 0), r.weights.value()(q, i) > r.weights.value()(q, 0));
    }
    EXPECT_NEAR(sum, 1, 1e-6);
  }
}

// From the nearest neighbour to the plain mean.
TEST_F(KernelRegressionTest, BandwidthLimits) {
  Tape<double> tape(context_);
  const Var<double> x(column<double>({0.4, 2.9})), x_i(column<double>({0, 1, 2, 3})),
      y_i(column<double>({5, 7, 1, 3}));
  const auto predict = [&](double b) {
    return kernel_regression(tape, x, x_i, y_i, Var<double>(column<double>({b}))).prediction.value();
  };
  for (const double b : {1e-3, 1e-200}) EXPECT_THAT(predict(b).values(), ElementsAre(5, 3));
  for (const double far : predict(1e9).values()) EXPECT_NEAR(far, 4, 1e-12);
  EXPECT_FALSE(close(predict(0.5), predict(1), 1e-2));  // the negative control
}

// The softmax of two points a distance 1 apart is that of their difference, wherever the query is: at x = -t
// the scores differ by t + 1/2, however large both are.
template <class T>
void check_far(Context& context) {
  const auto column = [&](std::vector<T> values) {
    return Tensor<T>::from(context.arena, {static_cast<int64_t>(values.size()), 1}, values);
  };
  for (const double b : {1.0, 1e3}) {
    for (const double t : {1.0, 1e4, 1e6, 1e15, 1e25}) {
      SCOPED_TRACE(testing::Message() << "b " << b << " t " << t);
      Tape<T> tape(context, Tape<T>::Mode::train);
      const Var<T> x = tape.leaf(column({static_cast<T>(-t)})), x_i = tape.leaf(column({T{0}, T{1}}));
      const Var<T> y_i = tape.leaf(column({T{10}, T{20}})), width = tape.leaf(column({static_cast<T>(b)}));
      const auto r = kernel_regression(tape, x, x_i, y_i, width);
      const double gap = (static_cast<double>(-x.value()(0, 0)) + 0.5) / b / b;
      const double p = 1 / (1 + std::exp(gap));  // of the farther point
      EXPECT_NEAR(static_cast<double>(r.weights.value()(0, 0)), 1 - p, 1e-6);
      EXPECT_NEAR(static_cast<double>(r.weights.value()(0, 1)), p, 1e-6 * p + 1e-40);
      tape.backward(r.prediction, column({T{1}}));
      // d f / dx = 10 p (1 - p) / b^2, and d f / db = 10 p (1 - p) 2 gap / b.
      const double slope = 10 * p * (1 - p) / b / b, along = p > 0 ? 20 * p * (1 - p) * gap / b : 0;
      EXPECT_NEAR(static_cast<double>(tape.gradient(x)(0, 0)), slope, 1e-5 * slope + 1e-12);
      EXPECT_NEAR(static_cast<double>(tape.gradient(width)(0, 0)), along, 1e-5 * along + 1e-12);
    }
  }
}
TEST_F(KernelRegressionTest, StaysExactFarAway) {
  check_far<float>(context_);
  check_far<double>(context_);
}

TEST_F(KernelRegressionTest, AnyNumberOfQueriesGivesTheSameBits) {
  const auto x = random_tensor<float>(context_.arena, {37, 2}, 1),
             x_i = random_tensor<float>(context_.arena, {33, 2}, 2),
             y_i = random_tensor<float>(context_.arena, {33, 3}, 3);
  Tape<float> tape(context_);
  const auto all = kernel_regression(tape, Var<float>(x), Var<float>(x_i), Var<float>(y_i));
  for (int64_t q = 0; q < 37; ++q) {
    const auto one =
        kernel_regression(tape, Var<float>(x.slice_rows(q, 1)), Var<float>(x_i), Var<float>(y_i));
    EXPECT_TRUE(same_bits(one.prediction.value(), all.prediction.value().slice_rows(q, 1)));
    EXPECT_TRUE(same_bits(one.weights.value(), all.weights.value().slice_rows(q, 1)));
    EXPECT_TRUE(same_bits(one.scores, all.scores.slice_rows(q, 1)));
  }
  const auto none = kernel_regression(tape, Var<float>(x.slice_rows(0, 0)), Var<float>(x_i), Var<float>(y_i));
  EXPECT_EQ(none.prediction.shape(), (Shape{0, 3}));
}

TEST_F(KernelRegressionTest, ThreadsChangeNothing) {
  std::vector<std::vector<float>> results;
  for (const int threads : {1, 2, 3}) {
    Context context(threads);
    Tape<float> tape(context, Tape<float>::Mode::train);
    const Var<float> x = tape.leaf(random_tensor<float>(context.arena, {70, 2}, 1)),
                     x_i = tape.leaf(random_tensor<float>(context.arena, {65, 2}, 2)),
                     y_i = tape.leaf(random_tensor<float>(context.arena, {65, 3}, 3));
    const auto r = kernel_regression(tape, x, x_i, y_i);
    tape.backward(r.prediction, random_tensor<float>(context.arena, {70, 3}, 4));
    std::vector<float> all;
    for (const Tensor<float>& part :
         {r.prediction.value(), tape.gradient(x), tape.gradient(x_i), tape.gradient(y_i)}) {
      all.insert(all.end(), part.values().begin(), part.values().end());
    }
    results.push_back(all);
  }
  EXPECT_TRUE(same_bits(results[0], results[1]));
  EXPECT_TRUE(same_bits(results[0], results[2]));
}

TEST_F(KernelRegressionTest, NanIsNotLost) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  Tape<float> tape(context_);
  for (int row = 0; row < 3; ++row) {
    std::vector<float> points{0, 1, 2};
    points[static_cast<size_t>(row)] = nan;
    const auto r = kernel_regression(tape, Var<float>(column<float>({1})), Var<float>(column(points)),
                                     Var<float>(column<float>({1, 2, 3})));
    EXPECT_TRUE(std::isnan(r.prediction.value()(0, 0)));
  }
}

TEST_F(KernelRegressionTest, WrongShapesAndBandwidthsAreRefused) {
  Tape<float> tape(context_);
  const auto run = [&](Shape x, Shape x_i, Shape y_i, std::vector<float> b) {
    return message_of([&] {
      const auto of = [&](Shape shape) { return Var<float>(random_tensor<float>(context_.arena, shape, 1)); };
      kernel_regression(tape, of(x), of(x_i), of(y_i), b.empty() ? Var<float>() : Var<float>(column(b)));
    });
  };
  EXPECT_EQ(run({4, 2}, {5, 2}, {5, 3}, {0.5f}), "");
  EXPECT_THAT(run({4, 2}, {5, 3}, {5, 3}, {}), AllOf(HasSubstr("2 numbers"), HasSubstr("3")));
  EXPECT_THAT(run({4, 2}, {5, 2}, {6, 3}, {}), AllOf(HasSubstr("5 x_i"), HasSubstr("6 y_i")));
  EXPECT_THAT(run({4, 2}, {5, 2}, {5, 3}, {1, 2}), HasSubstr("[2, 1]"));
  EXPECT_THAT(run({4, 2}, {5, 2}, {5, 3}, {0}), HasSubstr("not 0"));
  EXPECT_THAT(run({4, 2}, {5, 2}, {5, 3}, {-1}), HasSubstr("not -1"));
  EXPECT_THAT(run({4, 2}, {5, 2}, {5, 3}, {std::numeric_limits<float>::quiet_NaN()}), HasSubstr("not nan"));
  EXPECT_THAT(run({4, 2}, {5, 2}, {5, 3}, {std::numeric_limits<float>::infinity()}), HasSubstr("not inf"));
}

}  // namespace
}  // namespace gloss::attention
