// The plain reference of Add & Norm: the definition, and its derivative through the full Jacobian of each
// row. Slow; for tests and readers.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

namespace gloss::kernels::reference {

struct NormalisedRow {
  std::vector<double> y, normal;
  double inverse = 0;  // 1 / deviation
};

inline NormalisedRow layer_norm(const std::vector<double>& x, const std::vector<double>& gamma,
                                const std::vector<double>& beta, double epsilon) {
  const auto d = static_cast<double>(x.size());
  double mean = 0, variance = 0;
  for (const double v : x) mean += v / d;
  for (const double v : x) variance += (v - mean) * (v - mean) / d;
  NormalisedRow row;
  row.inverse = 1 / std::sqrt(variance + epsilon);
  for (size_t c = 0; c < x.size(); ++c) {
    row.normal.push_back((x[c] - mean) * row.inverse);
    row.y.push_back(gamma[c] * row.normal[c] + beta[c]);
  }
  return row;
}

// d y_c / d x_k = gamma_c inverse (delta_ck - 1/d - normal_c normal_k / d)
inline std::vector<double> layer_norm_gradient(const NormalisedRow& row, const std::vector<double>& gamma,
                                               const std::vector<double>& dy) {
  const auto d = static_cast<double>(dy.size());
  std::vector<double> dx(dy.size(), 0);
  for (size_t k = 0; k < dy.size(); ++k) {
    for (size_t c = 0; c < dy.size(); ++c) {
      const double same = c == k ? 1 : 0;
      dx[k] += dy[c] * gamma[c] * row.inverse * (same - 1 / d - row.normal[c] * row.normal[k] / d);
    }
  }
  return dx;
}

}  // namespace gloss::kernels::reference
