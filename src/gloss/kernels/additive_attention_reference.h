// The plain reference of additive attention: eq. 5-6 and section A.1.2 of Bahdanau et al. 2015 written down
// query by query in double, with every joint vector stored. Slow; for tests and readers.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "gloss/kernels/matrix.h"

namespace gloss::kernels::reference {

// One sequence.
struct AdditiveSequence {
  Matrix<const double> query, keys, h;  // [n_q, d_a], [n, d_a], [n, d_h]
  const double* v_a = nullptr;          // [d_a]
};

struct AdditiveResult {
  std::vector<double> z;                // [n_q, n, d_a]
  std::vector<double> scores, weights;  // [n_q, n]
  std::vector<double> context;          // [n_q, d_h]
};

inline AdditiveResult additive_attention(const AdditiveSequence& in) {
  const int64_t n_q = in.query.rows, n = in.keys.rows, d_a = in.query.cols, d_h = in.h.cols;
  AdditiveResult r;
  r.z.assign(static_cast<size_t>(n_q * n * d_a), 0);
  r.scores.assign(static_cast<size_t>(n_q * n), 0);
  r.weights.assign(static_cast<size_t>(n_q * n), 0);
  r.context.assign(static_cast<size_t>(n_q * d_h), 0);
  for (int64_t i = 0; i < n_q; ++i) {
    double *e = r.scores.data() + i * n, *a = r.weights.data() + i * n;
    double top = -std::numeric_limits<double>::infinity(), sum = 0;
    for (int64_t j = 0; j < n; ++j) {
      double* z = r.z.data() + (i * n + j) * d_a;
      for (int64_t c = 0; c < d_a; ++c) {
        z[c] = std::tanh(in.query.row(i)[c] + in.keys.row(j)[c]);
        e[j] += in.v_a[c] * z[c];
      }
      top = std::max(top, e[j]);
    }
    for (int64_t j = 0; j < n; ++j) sum += a[j] = std::exp(e[j] - top);
    for (int64_t j = 0; j < n; ++j) {
      a[j] /= sum;
      for (int64_t c = 0; c < d_h; ++c) r.context[static_cast<size_t>(i * d_h + c)] += a[j] * in.h.row(j)[c];
    }
  }
  return r;
}

struct AdditiveGradients {
  std::vector<double> query, keys, h, v_a;
};

// From the chain rule, with the Jacobian of the softmax p_j (delta_jk - p_k) element by element. `dcontext`
// [n_q, d_h]; `dweights` [n_q, n] or empty.
inline AdditiveGradients additive_gradients(const AdditiveSequence& in, Matrix<const double> dcontext,
                                            const std::vector<double>& dweights) {
  const int64_t n_q = in.query.rows, n = in.keys.rows, d_a = in.query.cols, d_h = in.h.cols;
  const AdditiveResult forward = additive_attention(in);
  AdditiveGradients g;
  g.query.assign(static_cast<size_t>(n_q * d_a), 0);
  g.keys.assign(static_cast<size_t>(n * d_a), 0);
  g.h.assign(static_cast<size_t>(n * d_h), 0);
  g.v_a.assign(static_cast<size_t>(d_a), 0);
  for (int64_t i = 0; i < n_q; ++i) {
    const double* a = forward.weights.data() + i * n;
    std::vector<double> da(static_cast<size_t>(n), 0);
    for (int64_t j = 0; j < n; ++j) {
      if (!dweights.empty()) da[static_cast<size_t>(j)] = dweights[static_cast<size_t>(i * n + j)];
      for (int64_t c = 0; c < d_h; ++c) {
        da[static_cast<size_t>(j)] += dcontext.row(i)[c] * in.h.row(j)[c];
        g.h[static_cast<size_t>(j * d_h + c)] += a[j] * dcontext.row(i)[c];
      }
    }
    for (int64_t k = 0; k < n; ++k) {
      double de = 0;
      for (int64_t j = 0; j < n; ++j) de += da[static_cast<size_t>(j)] * a[j] * ((j == k ? 1.0 : 0.0) - a[k]);
      const double* z = forward.z.data() + (i * n + k) * d_a;
      for (int64_t c = 0; c < d_a; ++c) {
        const double dsum = de * in.v_a[c] * (1 - z[c] * z[c]);  // of what the tanh is taken of
        g.query[static_cast<size_t>(i * d_a + c)] += dsum;
        g.keys[static_cast<size_t>(k * d_a + c)] += dsum;
        g.v_a[static_cast<size_t>(c)] += de * z[c];
      }
    }
  }
  return g;
}

}  // namespace gloss::kernels::reference
