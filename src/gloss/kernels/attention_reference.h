// The plain reference of attention: eq. 1 of Vaswani et al. 2017 written down query by query in double, with
// every weight stored. Slow; for tests and readers.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

#include "gloss/kernels/matrix.h"

namespace gloss::kernels::reference {

// One head of one sequence.
struct AttentionHead {
  Matrix<const double> query, key, value;  // [n_q, d_k], [n_k, d_k], [n_k, d_v]
  double scale = 1;
  std::function<bool(int64_t i, int64_t j)> sees;         // may query i look at key j?
  std::function<double(int64_t i, int64_t j)> kept = {};  // dropout factor of weight (i, j); none: 1
  double factor(int64_t i, int64_t j) const { return kept ? kept(i, j) : 1; }
  std::function<double(int64_t i, int64_t j)> bias = {};  // added to the scaled score (i, j); none: 0
};

struct AttentionResult {
  std::vector<double> scores, weights;  // [n_q, n_k]; hidden: -infinity and 0
  std::vector<double> output;           // [n_q, d_v]
};

inline AttentionResult attention(const AttentionHead& in) {
  const int64_t n_q = in.query.rows, n_k = in.key.rows, d_v = in.value.cols;
  AttentionResult r;
  r.scores.assign(static_cast<size_t>(n_q * n_k), -std::numeric_limits<double>::infinity());
  r.weights.assign(static_cast<size_t>(n_q * n_k), 0);
  r.output.assign(static_cast<size_t>(n_q * d_v), 0);
  for (int64_t i = 0; i < n_q; ++i) {
    double *s = r.scores.data() + i * n_k, *w = r.weights.data() + i * n_k;
    double top = -std::numeric_limits<double>::infinity(), sum = 0;
    for (int64_t j = 0; j < n_k; ++j) {
      if (!in.sees(i, j)) continue;
      double dot = 0;
      for (int64_t c = 0; c < in.query.cols; ++c) dot += in.query.row(i)[c] * in.key.row(j)[c];
      s[j] = dot * in.scale + (in.bias ? in.bias(i, j) : 0);
      top = std::max(top, s[j]);
    }
    for (int64_t j = 0; j < n_k; ++j) {
      if (in.sees(i, j)) sum += w[j] = std::exp(s[j] - top);
    }
    for (int64_t j = 0; j < n_k; ++j) {
      if (!in.sees(i, j)) continue;
      w[j] /= sum;
      for (int64_t c = 0; c < d_v; ++c) {
        r.output[static_cast<size_t>(i * d_v + c)] += w[j] * in.factor(i, j) * in.value.row(j)[c];
      }
    }
  }
  return r;
}

struct AttentionGradients {
  std::vector<double> query, key, value;
  std::vector<double> scores;  // [n_q, n_k]: what a bias of score (i, j) gets
};

// From the chain rule, with the Jacobian of the softmax p_j (delta_jk - p_k) element by element. `doutput`
// [n_q, d_v]; `dweights` [n_q, n_k] or empty.
inline AttentionGradients attention_gradients(const AttentionHead& in, Matrix<const double> doutput,
                                              const std::vector<double>& dweights) {
  const int64_t n_q = in.query.rows, n_k = in.key.rows, d_k = in.query.cols, d_v = in.value.cols;
  const AttentionResult forward = attention(in);
  AttentionGradients g;
  g.query.assign(static_cast<size_t>(n_q * d_k), 0);
  g.key.assign(static_cast<size_t>(n_k * d_k), 0);
  g.value.assign(static_cast<size_t>(n_k * d_v), 0);
  g.scores.assign(static_cast<size_t>(n_q * n_k), 0);
  for (int64_t i = 0; i < n_q; ++i) {
    const double* p = forward.weights.data() + i * n_k;
    std::vector<double> dp(static_cast<size_t>(n_k), 0);
    for (int64_t j = 0; j < n_k; ++j) {
      if (!in.sees(i, j)) continue;
      double dot = 0;
      for (int64_t c = 0; c < d_v; ++c) {
        dot += doutput.row(i)[c] * in.value.row(j)[c];
        g.value[static_cast<size_t>(j * d_v + c)] += p[j] * in.factor(i, j) * doutput.row(i)[c];
      }
      dp[static_cast<size_t>(j)] =
          dot * in.factor(i, j) + (dweights.empty() ? 0 : dweights[static_cast<size_t>(i * n_k + j)]);
    }
    for (int64_t k = 0; k < n_k; ++k) {
      if (!in.sees(i, k)) continue;
      double ds = 0;
      for (int64_t j = 0; j < n_k; ++j)
        ds += dp[static_cast<size_t>(j)] * p[j] * ((j == k ? 1.0 : 0.0) - p[k]);
      g.scores[static_cast<size_t>(i * n_k + k)] = ds;
      for (int64_t c = 0; c < d_k; ++c) {
        g.query[static_cast<size_t>(i * d_k + c)] += ds * in.scale * in.key.row(k)[c];
        g.key[static_cast<size_t>(k * d_k + c)] += ds * in.scale * in.query.row(i)[c];
      }
    }
  }
  return g;
}

}  // namespace gloss::kernels::reference
