#include "gloss/kernels/adam.h"

#include <gtest/gtest.h>

#include <cmath>

#include "gloss/kernels/adam_reference.h"
#include "support/framed.h"
#include "support/isas.h"

namespace gloss::kernels {
namespace {

using tests::Framed;

template <class T>
constexpr double kNear = sizeof(T) == 4 ? 1e-5 : 1e-12;

template <class T>
class AdamKernel : public ::testing::Test {};
using Numbers = ::testing::Types<float, double>;
TYPED_TEST_SUITE(AdamKernel, Numbers);

template <class T>
std::span<T> span_of(Framed<T>& x) {
  return {x.view().data, static_cast<size_t>(x.view().cols)};
}
template <class T>
std::span<const T> span_of(const Framed<T>& x) {
  return {x.view().data, static_cast<size_t>(x.view().cols)};
}
// Lengths around the vector width and the blocks of 4,096 and 32,768.
constexpr int64_t kLengths[] = {0, 1, 15, 16, 17, 4095, 4097, 32'768, 70'001};

TYPED_TEST(AdamKernel, TenStepsEqualTheReference) {
  using T = TypeParam;
  for (const int64_t n : kLengths) {
    for (const double scale : {1.0, 0.125}) {
      const auto start = Framed<T>::random(1, n, 3, 0, 1);
      std::vector<Framed<T>> gradients;
      for (uint64_t step = 1; step <= 10; ++step)
        gradients.push_back(Framed<T>::random(1, n, 2, 0, 10 + step));
      Adam options;
      options.learning_rate = 1e-2;
      options.gradient_scale = scale;
      std::vector<double> value = tests::doubles(start.values()), m(value.size()), v(value.size());
      for (options.step = 1; options.step <= 10; ++options.step) {
        const std::vector<T> g = gradients[static_cast<size_t>(options.step) - 1].values();
        for (size_t i = 0; i < value.size(); ++i)
          reference::adam(options, static_cast<double>(g[i]), value[i], m[i], v[i]);
      }
      std::vector<double> want(value);
      want.insert(want.end(), m.begin(), m.end());
      want.insert(want.end(), v.begin(), v.end());
      tests::same_everywhere<T>(
          [&](ThreadPool& pool) {
            Framed<T> x = start, first(1, n, 1, 0), second(1, n, 5, 0);
            first.set(std::vector<T>(static_cast<size_t>(n), T{0}));
            second.set(std::vector<T>(static_cast<size_t>(n), T{0}));
            Adam step = options;
            for (step.step = 1; step.step <= 10; ++step.step) {
              const Framed<T>& g = gradients[static_cast<size_t>(step.step) - 1];
              adam<T>(pool, step, span_of(x), span_of(g), span_of(first), span_of(second));
            }
            std::vector<T> all;
            for (const Framed<T>* part : {&x, &first, &second}) {
              EXPECT_TRUE(part->frame_intact());
              for (const T y : part->values()) all.push_back(y);
            }
            return all;
          },
          [&](const auto& got) { EXPECT_TRUE(tests::close(got, want, kNear<T>)); });
    }
  }
}

// Numbers without gradient (padding between parameters, rows that never occur) stay where they are.
TYPED_TEST(AdamKernel, ZeroGradientsMoveNothing) {
  using T = TypeParam;
  ThreadPool pool(1);
  tests::on_every_isa([&](Isa) {
    std::vector<T> x(20, T{3}), g(20, T{0}), m(20, T{0}), v(20, T{0});
    Adam options;
    options.learning_rate = 1;
    adam<T>(pool, options, x, g, m, v);
    for (const T y : x) EXPECT_EQ(y, 3);
  });
}

TYPED_TEST(AdamKernel, MovingAverage) {
  using T = TypeParam;
  for (const int64_t n : kLengths) {
    const auto value = Framed<T>::random(1, n, 3, 0, 1), average = Framed<T>::random(1, n, 1, 0, 2);
    std::vector<double> want;
    for (int64_t i = 0; i < n; ++i) {
      want.push_back(0.9 * static_cast<double>(average.view().data[i]) +
                     0.1 * static_cast<double>(value.view().data[i]));
    }
    tests::same_everywhere<T>(
        [&](ThreadPool& pool) {
          Framed<T> a = average;
          moving_average<T>(pool, 0.9, span_of(value), span_of(a));
          EXPECT_TRUE(a.frame_intact());
          return a.values();
        },
        [&](const auto& got) { EXPECT_TRUE(tests::close(got, want, kNear<T>)); });
  }
}

TYPED_TEST(AdamKernel, SumOfSquares) {
  using T = TypeParam;
  for (const int64_t n : kLengths) {
    const auto x = Framed<T>::random(1, n, 3, 0, 1);
    double want = 0;
    for (const double y : tests::doubles(x.values())) want += y * y;
    tests::same_everywhere<double>(
        [&](ThreadPool& pool) { return std::vector{sum_of_squares<T>(pool, span_of(x))}; },
        [&](const auto& got) { EXPECT_TRUE(tests::close(got, std::vector{want}, 1e-12)); });
    if (n == 0) continue;
    // Numbers whose squares are no floats any more, or none yet, each beside the other.
    Framed<T> wide = x;
    want = 0;
    for (int64_t i = 0; i < n; ++i) {
      T& y = wide.view().data[i];
      y *= static_cast<T>(i % 3 == 0 ? 1e20 : i % 3 == 1 ? -1e-25 : 1);
      want += static_cast<double>(y) * static_cast<double>(y);
    }
    tests::same_everywhere<double>(
        [&](ThreadPool& pool) { return std::vector{sum_of_squares<T>(pool, span_of(wide))}; },
        [&](const auto& got) { EXPECT_TRUE(tests::close(got, std::vector{want}, 1e-12)); });
    // NaN and infinity reach the sum: the trainer tells a bad step by it.
    ThreadPool pool(1);
    Framed<T> bad = x;
    bad.view().data[n - 1] = std::numeric_limits<T>::quiet_NaN();
    EXPECT_TRUE(std::isnan(sum_of_squares<T>(pool, span_of(bad))));
    bad.view().data[n - 1] = -std::numeric_limits<T>::infinity();
    EXPECT_TRUE(std::isinf(sum_of_squares<T>(pool, span_of(bad))));
  }
}

}  // namespace
}  // namespace gloss::kernels
