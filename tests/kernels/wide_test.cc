// The elementary functions of wide-inl.h against the C library, on every instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/wide_test.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "gloss/kernels/wide-inl.h"

HWY_BEFORE_NAMESPACE();
namespace gloss::kernels::HWY_NAMESPACE {
namespace {

// y[i] = f(x[i]) for each of the functions, by number.
template <class T>
void apply_wide(int function, const T* x, T* y, int64_t n) {
  for (int64_t i = 0; i < n; i += kWide) {
    const Wide<T> v = load_chunk(x + i, n - i);
    const Wide<T> r = function == 0   ? exp(v)
                      : function == 1 ? sigmoid(v)
                      : function == 2 ? hyperbolic_tangent(v)
                                      : normal_cdf(v);
    store_chunk(r, y + i, n - i);
  }
}
void apply_f(int function, const float* x, float* y, int64_t n) {
  apply_wide(function, x, y, n);
}
void apply_d(int function, const double* x, double* y, int64_t n) {
  apply_wide(function, x, y, n);
}

// sum and largest of the first n of 16, padded with what is neutral.
void fold_f(const float* x, float* y, int64_t n) {
  y[0] = sum(load_first(x, n));
  y[1] = largest(load_first(x, n, -HUGE_VALF));
  store_first(keep_first(load(x), n, -1.0f), y + 2, 16);
}

}  // namespace
}  // namespace gloss::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "support/isas.h"
#include "support/random.h"

namespace gloss::kernels {
namespace {
HWY_EXPORT(apply_f);
HWY_EXPORT(apply_d);
HWY_EXPORT(fold_f);

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

enum Function { kExp, kSigmoid, kTanh, kNormalCdf };

std::vector<float> apply(Function function, const std::vector<float>& x) {
  std::vector<float> y(x.size());
  HWY_DYNAMIC_DISPATCH(apply_f)(function, x.data(), y.data(), static_cast<int64_t>(x.size()));
  return y;
}
double exactly(Function function, double x) {
  switch (function) {
    case kExp:
      return std::exp(x);
    case kSigmoid:
      return 1 / (1 + std::exp(-x));
    case kTanh:
      return std::tanh(x);
    case kNormalCdf:
      return 0.5 * std::erfc(-x / std::sqrt(2.0));
  }
  return 0;
}
// A dense sweep, powers of two down to the smallest numbers, both signs.
std::vector<float> sweep(float widest) {
  std::vector<float> x{0.0f, -0.0f};
  for (int i = -20'000; i <= 20'000; ++i) x.push_back(widest * static_cast<float>(i) / 20'000.0f);
  for (float small = 1; small > 0; small /= 2) x.insert(x.end(), {small, -small});
  return x;
}

TEST(WideFunctions, AreAsAccurateAsTheySay) {
  struct Bound {
    Function function;
    float widest;
    double relative, absolute;  // the error is below one of them
  };
  constexpr double kTiny = 2e-44;  // some steps of the smallest floats
  for (const Bound& b : {Bound{kExp, 87, 2e-7, kTiny}, Bound{kSigmoid, 80, 3e-7, kTiny},
                         Bound{kTanh, 20, 3.2e-7, kTiny}, Bound{kNormalCdf, 10, 0, 2.5e-7}}) {
    SCOPED_TRACE(b.function);
    std::vector<float> avx2;
    tests::on_every_isa([&](Isa isa) {
      const std::vector<float> x = sweep(b.widest), y = apply(b.function, x);
      std::vector<double> want;
      for (const float v : x) want.push_back(exactly(b.function, static_cast<double>(v)));
      EXPECT_TRUE(tests::each_close(y, want, b.relative, b.absolute));
      if (isa == Isa::avx2) avx2 = y;
      if (isa == Isa::avx512) {
        EXPECT_TRUE(tests::same_bits(y, avx2));
      }
    });
  }
}

TEST(WideFunctions, KeepTheirLimits) {
  tests::on_every_isa([](Isa) {
    const std::vector<float> x{-kInfinity, kInfinity, kNan, 0, -1e30f, 1e30f, 88.8f, -87.4f, -10'000, 10'000};
    const std::vector<float> e = apply(kExp, x);
    EXPECT_EQ(e[0], 0);
    EXPECT_EQ(e[1], kInfinity);
    EXPECT_TRUE(std::isnan(e[2]));
    EXPECT_EQ(e[3], 1);
    EXPECT_EQ(e[4], 0);
    EXPECT_EQ(e[5], kInfinity);
    EXPECT_EQ(e[6], kInfinity);
    EXPECT_EQ(e[7], 0);
    EXPECT_EQ(e[8], 0);
    EXPECT_EQ(e[9], kInfinity);
    EXPECT_TRUE(std::isfinite(apply(kExp, {88.72f})[0]));
    for (const Function f : {kSigmoid, kTanh, kNormalCdf}) {
      const std::vector<float> y = apply(f, x);
      EXPECT_EQ(y[0], f == kTanh ? -1 : 0);
      EXPECT_EQ(y[1], 1);
      EXPECT_TRUE(std::isnan(y[2]));
      EXPECT_EQ(y[4], f == kTanh ? -1 : 0);
      EXPECT_EQ(y[5], 1);
    }
  });
}

// 1 - z^2, the slope of tanh, is then never negative.
TEST(WideFunctions, TanhStaysWithinOneAndKeepsTheSign) {
  tests::on_every_isa([](Isa) {
    std::vector<float> high, low;
    for (float v = 5; v < 9.5f; v = std::nextafter(v, 10.0f)) {
      high.push_back(v);
      low.push_back(-v);
    }
    const std::vector<float> highest = kernels::apply(kTanh, high), lowest = kernels::apply(kTanh, low);
    EXPECT_EQ(*std::max_element(highest.begin(), highest.end()), 1);
    EXPECT_EQ(*std::min_element(lowest.begin(), lowest.end()), -1);
    const std::vector<float> zeros = apply(kTanh, {0.0f, -0.0f});
    EXPECT_FALSE(std::signbit(zeros[0]));
    EXPECT_TRUE(std::signbit(zeros[1]));
    EXPECT_EQ(zeros[1], 0);
  });
}

TEST(WideFunctions, InDoubleAreTheLibrarys) {
  tests::on_every_isa([](Isa) {
    const std::vector<double> x = tests::random_values<double>(100, 1, 3);
    for (const Function f : {kExp, kSigmoid, kTanh, kNormalCdf}) {
      std::vector<double> y(x.size()), want;
      HWY_DYNAMIC_DISPATCH(apply_d)(f, x.data(), y.data(), 100);
      for (const double v : x) want.push_back(exactly(f, v));
      EXPECT_TRUE(tests::close(y, want, 1e-15));
    }
  });
}

TEST(WideFolds, SumAndLargestOfAnyCount) {
  tests::on_every_isa([](Isa) {
    std::vector<float> x = tests::random_values<float>(16, 1);
    for (int64_t n = 1; n <= 16; ++n) {
      std::vector<float> padded(x);
      std::fill(padded.begin() + n, padded.end(), kNan);
      std::vector<float> y(18);
      HWY_DYNAMIC_DISPATCH(fold_f)(padded.data(), y.data(), n);
      double sum = 0;
      for (int64_t i = 0; i < n; ++i) sum += static_cast<double>(x[static_cast<size_t>(i)]);
      EXPECT_NEAR(static_cast<double>(y[0]), sum, 2e-6);
      EXPECT_EQ(y[1], *std::max_element(x.begin(), x.begin() + n));
      for (int64_t i = 0; i < 16; ++i) {
        EXPECT_EQ(y[static_cast<size_t>(i) + 2], i < n ? x[static_cast<size_t>(i)] : -1);
      }
    }
  });
}

}  // namespace
}  // namespace gloss::kernels
#endif  // HWY_ONCE
