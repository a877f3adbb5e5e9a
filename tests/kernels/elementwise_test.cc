#include "gloss/kernels/elementwise.h"

#include <gtest/gtest.h>

#include <cfenv>
#include <cmath>

#include "gloss/kernels/activation_reference.h"
#include "support/framed.h"
#include "support/isas.h"

namespace gloss::kernels {
namespace {

using tests::Framed;

template <class T>
constexpr double kNear = sizeof(T) == 4 ? 2e-6 : 1e-14;

template <class T>
class Elementwise : public ::testing::Test {
 protected:
  // Calls check(rows, cols) for all ragged shapes.
  template <class Check>
  static void shapes(Check check) {
    for (const int64_t rows : tests::kRowCounts) {
      for (const int64_t cols : tests::kWidths) {
        SCOPED_TRACE(testing::Message() << rows << " x " << cols);
        check(rows, cols);
      }
    }
  }
};
using Numbers = ::testing::Types<float, double>;
TYPED_TEST_SUITE(Elementwise, Numbers);

TYPED_TEST(Elementwise, DropoutAndItsSums) {
  using T = TypeParam;
  for (const double p : {0.0, 0.1, 0.9}) {
    const Dropout mask(p, RandomKey(3));
    this->shapes([&](int64_t rows, int64_t cols) {
      const auto x = Framed<T>::random(rows, cols, 3, 2, 1), base = Framed<T>::random(rows, cols, 1, 5, 2);
      std::vector<double> want;
      for (int64_t i = 0; i < rows; ++i) {
        for (int64_t c = 0; c < cols; ++c) {
          // The factor of the vector form is the scalar one, rounded.
          const T factor = static_cast<T>(mask.factor(static_cast<uint64_t>(i * cols + c)));
          want.push_back(static_cast<double>(x.view().row(i)[c]) * static_cast<double>(factor));
        }
      }
      const std::vector<double> added = tests::doubles(base.values());
      std::vector<double> sums(want);
      for (size_t i = 0; i < sums.size(); ++i) sums[i] += added[i];
      const auto finish = [](const Framed<T>& y) {
        EXPECT_TRUE(y.frame_intact());
        return y.values();
      };
      tests::same_everywhere<T>(
          [&](ThreadPool& pool) {
            Framed<T> y(rows, cols, 2, 1);
            dropout<T>(pool, x.view(), mask, y.view(), Accumulate::no);
            return finish(y);
          },
          [&](const auto& got) { EXPECT_TRUE(tests::close(got, want, kNear<T>)); });
      tests::same_everywhere<T>(
          [&](ThreadPool& pool) {
            Framed<T> y = base;
            dropout<T>(pool, x.view(), mask, y.view(), Accumulate::yes);
            return finish(y);
          },
          [&](const auto& got) { EXPECT_TRUE(tests::close(got, sums, kNear<T>)); });
      tests::same_everywhere<T>(
          [&](ThreadPool& pool) {
            Framed<T> y(rows, cols, 7, 0);
            add_dropout<T>(pool, base.view(), x.view(), mask, y.view());
            return finish(y);
          },
          [&](const auto& got) { EXPECT_TRUE(tests::close(got, sums, kNear<T>)); });
      if (p > 0) return;
      tests::same_everywhere<T>(
          [&](ThreadPool& pool) {
            Framed<T> y = base;
            add<T>(pool, x.view(), y.view(), Accumulate::yes);
            return finish(y);
          },
          [&](const auto& got) { EXPECT_TRUE(tests::close(got, sums, kNear<T>)); });
    });
  }
}

// Every factor of the vector form is exactly the scalar one.
TYPED_TEST(Elementwise, DropoutVectorsEqualTheScalarFactor) {
  using T = TypeParam;
  for (const uint64_t seed : {1, 2, 3}) {
    const Dropout mask(0.25, RandomKey(seed));
    const std::vector<T> ones(10'000, T{1});
    std::vector<T> want;
    for (uint64_t i = 0; i < ones.size(); ++i) want.push_back(static_cast<T>(mask.factor(i)));
    tests::same_everywhere<T>(
        [&](ThreadPool& pool) {
          std::vector<T> y(ones.size());
          dropout<T>(pool, {ones.data(), 100, 100, 100}, mask, {y.data(), 100, 100, 100}, Accumulate::no);
          return y;
        },
        [&](const auto& got) { EXPECT_TRUE(tests::same_bits(got, want)); });
  }
}

TYPED_TEST(Elementwise, ActivationBackward) {
  using T = TypeParam;
  for (const Activation activation :
       {Activation::none, Activation::relu, Activation::swish, Activation::gelu, Activation::tanh}) {
    this->shapes([&](int64_t rows, int64_t cols) {
      auto x = Framed<T>::random(rows, cols, 3, 2, 1, 3);
      const auto dy = Framed<T>::random(rows, cols, 1, 5, 2);
      std::vector<T> kept = x.values();
      // Both sides of the kink, and far out.
      const T special[] = {T{0}, T(-0.0), T(1e-30), T(-1e-30), T(60), T(-60), T(200), T(-200)};
      for (size_t i = 0; i < std::min(kept.size(), std::size(special)); ++i) kept[i] = special[i];
      x.set(kept);
      std::vector<double> want;
      for (int64_t i = 0; i < rows; ++i) {
        for (int64_t c = 0; c < cols; ++c) {
          want.push_back(static_cast<double>(dy.view().row(i)[c]) *
                         reference::activation_slope(activation, static_cast<double>(x.view().row(i)[c])));
        }
      }
      tests::same_everywhere<T>(
          [&](ThreadPool& pool) {
            Framed<T> dx(rows, cols, 2, 1), in_place = dy;
            activation_backward<T>(pool, activation, x.view(), dy.view(), dx.view());
            activation_backward<T>(pool, activation, x.view(), in_place.view(), in_place.view());
            EXPECT_TRUE(dx.frame_intact() && in_place.frame_intact());
            EXPECT_TRUE(tests::same_bits(dx.values(), in_place.values()));
            return dx.values();
          },
          [&](const auto& got) { EXPECT_TRUE(tests::close(got, want, kNear<T>)); });
    });
  }
}

TYPED_TEST(Elementwise, Maxout) {
  using T = TypeParam;
  const T nan = std::numeric_limits<T>::quiet_NaN();
  this->shapes([&](int64_t rows, int64_t cols) {
    auto x = Framed<T>::random(rows, 2 * cols, 3, 2, 1);
    const auto dy = Framed<T>::random(rows, cols, 1, 5, 2),
               before = Framed<T>::random(rows, 2 * cols, 2, 1, 3);
    std::vector<T> values = x.values();
    // Equal ones, zeros of both signs, NaN on each side.
    const T special[] = {T{1}, T{1}, T(-0.0), T{0}, nan, T{2}, T{2}, nan};
    std::copy_n(special, std::min(values.size(), std::size(special)), values.begin());
    x.set(values);
    std::vector<double> want, gradient, sums;
    for (size_t i = 0; i < values.size(); i += 2) {
      const bool second = values[i + 1] > values[i] || std::isnan(values[i + 1]);
      const double up = static_cast<double>(dy.values()[i / 2]);
      want.push_back(static_cast<double>(second ? values[i + 1] : values[i]));
      gradient.insert(gradient.end(), {second ? 0 : up, second ? up : 0});
    }
    for (size_t i = 0; i < gradient.size(); ++i) {
      sums.push_back(gradient[i] + static_cast<double>(before.values()[i]));
    }
    tests::same_everywhere<T>(
        [&](ThreadPool& pool) {
          Framed<T> y(rows, cols, 4, 3), dx(rows, 2 * cols, 1, 1), added = before;
          maxout<T>(pool, x.view(), y.view());
          maxout_backward<T>(pool, x.view(), dy.view(), dx.view(), Accumulate::no);
          maxout_backward<T>(pool, x.view(), dy.view(), added.view(), Accumulate::yes);
          EXPECT_TRUE(tests::close(dx.values(), gradient, 0));
          EXPECT_TRUE(tests::close(added.values(), sums, kNear<T>));
          EXPECT_TRUE(y.frame_intact() && dx.frame_intact() && added.frame_intact());
          return y.values();
        },
        [&](const auto& got) { EXPECT_TRUE(tests::close(got, want, 0)); });
  });
}

TYPED_TEST(Elementwise, ColumnSums) {
  using T = TypeParam;
  for (const int64_t rows : {0, 1, 5, 255, 256, 257, 700}) {
    for (const int64_t cols : tests::kWidths) {
      const auto x = Framed<T>::random(rows, cols, 3, 2, 1);
      std::vector<double> want(static_cast<size_t>(cols), 0.5);
      for (int64_t i = 0; i < rows; ++i) {
        for (int64_t c = 0; c < cols; ++c)
          want[static_cast<size_t>(c)] += static_cast<double>(x.view().row(i)[c]);
      }
      tests::same_everywhere<T>(
          [&](ThreadPool& pool) {
            Framed<T> sums(1, cols, 3, 0);
            sums.set(std::vector<T>(static_cast<size_t>(cols), T(0.5)));
            add_column_sums<T>(pool, x.view(), sums.view().data);
            EXPECT_TRUE(sums.frame_intact());
            return sums.values();
          },
          [&](const auto& got) { EXPECT_TRUE(tests::close(got, want, 20 * kNear<T>)); });
    }
  }
}

TEST(Dropout, KeepsTheShareItSaysAndScalesIt) {
  for (const double p : {0.01, 0.1, 0.3, 0.5, 0.9}) {
    for (const uint64_t seed : {1, 2}) {
      const Dropout mask(p, RandomKey(seed));
      const int n = 200'000;
      int dropped = 0, pairs = 0;
      double sum = 0;
      for (int i = 0; i < n; ++i) {
        const double f = mask.factor(static_cast<uint64_t>(i));
        EXPECT_TRUE(f == 0 || f == 1 / (1 - p));
        dropped += f == 0;
        pairs += f == 0 && mask.factor(static_cast<uint64_t>(i) + 1) == 0;
        sum += f;
      }
      const double deviation = std::sqrt(p * (1 - p) / n);
      EXPECT_NEAR(static_cast<double>(dropped) / n, p, 5 * deviation);
      EXPECT_NEAR(sum / n, 1, 5 * deviation / (1 - p));
      // Neighbours know nothing of each other.
      EXPECT_NEAR(static_cast<double>(pairs) / n, p * p, 6 * std::sqrt(p * p / n));
    }
  }
}

TEST(Dropout, DependsOnAllOfItsKeyAndIndex) {
  const auto agreement = [](const Dropout& a, const Dropout& b, uint64_t shift) {
    int same = 0;
    for (uint64_t i = 0; i < 4000; ++i) same += (a.factor(i) == 0) == (b.factor(i + shift) == 0);
    return same / 4000.0;
  };
  const Dropout one(0.5, RandomKey(1));
  EXPECT_EQ(agreement(one, Dropout(0.5, RandomKey(1)), 0), 1);
  EXPECT_NEAR(agreement(one, Dropout(0.5, RandomKey(2)), 0), 0.5, 0.05);
  EXPECT_NEAR(agreement(one, one, 1), 0.5, 0.05);
  EXPECT_NEAR(agreement(one, one, 1024), 0.5, 0.05);
  EXPECT_NEAR(agreement(one, one, uint64_t{1} << 32), 0.5, 0.05);
  EXPECT_FALSE(Dropout().active());
  EXPECT_EQ(Dropout().factor(5), 1);
  for (const double bad : {-0.1, 1.0, 1.5, 1e300, -1e300, HUGE_VAL, std::nan("")})
    EXPECT_THROW(Dropout(bad, RandomKey(1)), Error) << bad;
}

// The processor notes when it converts a number that does not fit.
TEST(Dropout, ChecksItsProbabilityBeforeItConverts) {
  for (const double bad : {-1.5, 1.0, 1.5, 1e300}) {
    const volatile double p = bad;
    std::feclearexcept(FE_INVALID);
    bool refused = false;
    try {
      const Dropout dropout(p, RandomKey(1));
      EXPECT_TRUE(dropout.active());
    } catch (const Error&) {
      refused = true;
    }
    EXPECT_TRUE(refused) << bad;
    EXPECT_FALSE(std::fetestexcept(FE_INVALID)) << bad;
  }
}

}  // namespace
}  // namespace gloss::kernels
