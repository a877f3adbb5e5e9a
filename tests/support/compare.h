// Are these numbers those numbers? A comparator that can fail: see compare_test in tests/kernels.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "gloss/tensor/tensor.h"

namespace gloss::tests {

struct Difference {
  double relative = 0;  // the largest |got - want| / max(|want|, root mean square of all wanted)
  int64_t index = -1;   // where
  double got = 0, want = 0;
};

// The scale of an element is its own size or that of the whole, so that rounding in sums that cancel is
// forgiven and nothing larger is. Where only one of the two is NaN, or everything wanted is zero and
// something else came, the difference is infinite.
Difference largest_difference(std::span<const double> got, std::span<const double> want);

template <class T>
std::vector<double> doubles(std::span<const T> values) {
  return {values.begin(), values.end()};
}
template <class T>
std::vector<double> doubles(const std::vector<T>& values) {
  return {values.begin(), values.end()};
}
template <class T>
std::vector<double> doubles(const Tensor<T>& tensor) {
  return doubles(std::span<const T>(tensor.values()));
}

// EXPECT_TRUE(close(got, want, 1e-6)): the same count of numbers, none farther away than `tolerance`.
::testing::AssertionResult close_numbers(std::span<const double> got, std::span<const double> want,
                                         double tolerance);
template <class Got, class Want>
::testing::AssertionResult close(const Got& got, const Want& want, double tolerance) {
  return close_numbers(doubles(got), doubles(want), tolerance);
}

// The same where the numbers have nothing to do with each other, so that each is its own scale:
// |got - want| <= max(relative * |want|, absolute).
::testing::AssertionResult each_close_numbers(std::span<const double> got, std::span<const double> want,
                                              double relative, double absolute);
template <class Got, class Want>
::testing::AssertionResult each_close(const Got& got, const Want& want, double relative, double absolute) {
  return each_close_numbers(doubles(got), doubles(want), relative, absolute);
}

// What float32 and float64 computations of our operations are held to (see the golden numbers).
template <class T>
inline constexpr double kTolerance = sizeof(T) == 4 ? 1e-4 : 1e-9;

// The same bits.
template <class T>
::testing::AssertionResult same_bits(std::span<const T> a, std::span<const T> b) {
  if (a.size() != b.size()) return ::testing::AssertionFailure() << a.size() << " numbers and " << b.size();
  for (size_t i = 0; i < a.size(); ++i) {
    if (std::memcmp(&a[i], &b[i], sizeof(T)) != 0) {
      return ::testing::AssertionFailure() << "element " << i << " differs: " << a[i] << " and " << b[i];
    }
  }
  return ::testing::AssertionSuccess();
}
template <class T>
::testing::AssertionResult same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return same_bits(std::span<const T>(a), std::span<const T>(b));
}
template <class T>
::testing::AssertionResult same_bits(const Tensor<T>& a, const Tensor<T>& b) {
  return same_bits(std::span<const T>(a.values()), std::span<const T>(b.values()));
}

}  // namespace gloss::tests
