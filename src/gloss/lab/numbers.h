// What experiments share: numbers written down plainly, and how far two results are apart.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "gloss/tensor/tensor.h"

namespace gloss::lab {

inline bool same_bits(std::span<const double> a, std::span<const double> b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size_bytes()) == 0);
}

// Infinite where the counts differ or one of two numbers is NaN.
inline double largest_difference(std::span<const double> a, std::span<const double> b) {
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  if (a.size() != b.size()) return kInfinite;
  double largest = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i] == b[i]) continue;  // equal infinities too
    const double difference = std::abs(a[i] - b[i]);
    largest = std::isnan(difference) ? kInfinite : std::max(largest, difference);
  }
  return largest;
}
inline double largest_difference(const Tensor<double>& a, const Tensor<double>& b) {
  return largest_difference(a.values(), b.values());
}
// Of row i.
inline double row_difference(const Tensor<double>& a, const Tensor<double>& b, int64_t i) {
  return largest_difference(a.slice_rows(i, 1), b.slice_rows(i, 1));
}

inline double dot(std::span<const double> a, std::span<const double> b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

inline std::span<const double> row_of(const Tensor<double>& x, int64_t i) {
  return {x.row(i), static_cast<size_t>(x.cols())};
}

// exp(s_j) / sum_k exp(s_k), written down; a row of -inf alone gives NaN.
inline std::vector<double> softmax(std::span<const double> s) {
  const double top = s.empty() ? 0 : *std::ranges::max_element(s);
  std::vector<double> p;
  double sum = 0;
  for (const double v : s) sum += p.emplace_back(std::exp(v - top));
  for (double& v : p) v /= sum;
  return p;
}

// The larger of two numbers, and NaN if either is: what went wrong must not look like nothing.
inline double worst_of(double a, double b) {
  return std::isnan(a) || a > b ? a : b;
}

inline double least_of(double a, double b) {
  return std::isnan(a) || a < b ? a : b;
}

// How far the sums of the rows of x [rows, columns] are from 1, at most.
inline double row_sums_off(std::span<const double> x, size_t columns) {
  double worst = 0;
  for (size_t begin = 0; begin + columns <= x.size(); begin += columns) {
    double sum = 0;
    for (const double v : x.subspan(begin, columns)) sum += v;
    worst = worst_of(worst, std::abs(sum - 1));
  }
  return worst;
}

// [rows, columns] -> [columns, rows]
inline std::vector<double> transposed(std::span<const double> x, size_t columns) {
  std::vector<double> y(x.size());
  const size_t rows = x.size() / columns;
  for (size_t i = 0; i < x.size(); ++i) y[i % columns * rows + i / columns] = x[i];
  return y;
}

// "1", "2", ... "n"
inline std::vector<std::string> numbered(int64_t n) {
  std::vector<std::string> names;
  for (int64_t i = 1; i <= n; ++i) names.push_back(fmt::format("{}", i));
  return names;
}

inline std::vector<float> floats(std::span<const double> x) {
  std::vector<float> y;
  for (const double v : x) y.push_back(static_cast<float>(v));
  return y;
}

}  // namespace gloss::lab
