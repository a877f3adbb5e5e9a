// One product to try: operands inside memory full of NaN, a plain reference, a tolerance from the norms.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "gloss/base/random.h"
#include "gloss/kernels/gemm.h"

namespace gloss::kernels {

// A matrix whose rows lie `slack` apart and begin `shift` elements after an aligned address; everything
// around the numbers is NaN.
template <class T>
class Guarded {
 public:
  Guarded(int64_t rows, int64_t cols, int64_t slack, int64_t shift)
      : memory_(static_cast<size_t>(shift + rows * (cols + slack) + 64), std::numeric_limits<T>::quiet_NaN()),
        view_{memory_.data() + shift, rows, cols, cols + slack} {}
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;

  Guarded& fill(const RandomKey& key) {
    for (int64_t i = 0; i < view_.rows; ++i) {
      for (int64_t j = 0; j < view_.cols; ++j) {
        view_.row(i)[j] = static_cast<T>(2 * key.uniform(static_cast<uint64_t>(i * view_.cols + j)) - 1);
      }
    }
    return *this;
  }
  Guarded& copy(const Guarded& other) {
    for (int64_t i = 0; i < view_.rows; ++i) {
      std::copy_n(other.view().row(i), view_.cols, view_.row(i));
    }
    return *this;
  }
  Matrix<T> view() const { return view_; }
  bool surroundings_untouched() const {
    std::vector<bool> inside(memory_.size(), false);
    for (int64_t i = 0; i < view_.rows; ++i) {
      for (int64_t j = 0; j < view_.cols; ++j) {
        inside[static_cast<size_t>(view_.row(i) + j - memory_.data())] = true;
      }
    }
    for (size_t i = 0; i < memory_.size(); ++i) {
      if (!inside[i] && !std::isnan(memory_[i])) return false;
    }
    return true;
  }

 private:
  std::vector<T> memory_;
  Matrix<T> view_;
};

struct Case {
  int64_t m = 1, n = 1, k = 1;
  Transpose ta = Transpose::no, tb = Transpose::no;
  Accumulate accumulate = Accumulate::no;
  bool bias = false, keep = false;
  Activation activation = Activation::none;
  int64_t slack = 0, shift = 0;

  std::string text() const {
    return "M " + std::to_string(m) + " N " + std::to_string(n) + " K " + std::to_string(k) +
           (ta == Transpose::yes ? " A^T" : "") + (tb == Transpose::yes ? " B^T" : "") +
           (accumulate == Accumulate::yes ? " accumulate" : "") + (bias ? " bias" : "") +
           (keep ? " keep" : "") + " activation " + std::to_string(static_cast<int>(activation)) + " slack " +
           std::to_string(slack) + " shift " + std::to_string(shift);
  }
};

template <class T>
struct Operands {
  Case c;
  Guarded<T> a, b, bias, before, out, pre;

  Operands(const Case& cs, uint64_t seed)
      : c(cs),
        a(c.ta == Transpose::yes ? c.k : c.m, c.ta == Transpose::yes ? c.m : c.k, c.slack, c.shift),
        b(c.tb == Transpose::yes ? c.n : c.k, c.tb == Transpose::yes ? c.k : c.n, c.slack, c.shift),
        bias(1, c.n, 0, c.shift),
        before(c.m, c.n, c.slack, c.shift),
        out(c.m, c.n, c.slack, c.shift),
        pre(c.m, c.n, c.slack, c.shift) {
    const RandomKey key(seed);
    a.fill(key.with(1));
    b.fill(key.with(2));
    bias.fill(key.with(3));
    before.fill(key.with(4));
    reset();
  }
  // C as it is before a product: numbers when accumulating, else NaN that must be overwritten.
  void reset() {
    if (c.accumulate == Accumulate::yes) out.copy(before);
  }
  Epilogue<T> epilogue() const {
    Epilogue<T> e;
    if (c.bias) e.bias = bias.view().data;
    e.activation = c.activation;
    if (c.keep) e.pre_activation = pre.view();
    return e;
  }
  T a_at(int64_t i, int64_t p) const {
    return c.ta == Transpose::yes ? a.view().row(p)[i] : a.view().row(i)[p];
  }
  T b_at(int64_t p, int64_t j) const {
    return c.tb == Transpose::yes ? b.view().row(j)[p] : b.view().row(p)[j];
  }
};

inline double reference_activation(Activation activation, double x) {
  switch (activation) {
    case Activation::none:
      return x;
    case Activation::relu:
      return std::max(x, 0.0);
    case Activation::swish:
      return x / (1 + std::exp(-x));
    case Activation::gelu:
      return x * 0.5 * (1 + std::erf(x / std::sqrt(2.0)));
    case Activation::tanh:
      return std::tanh(x);
  }
  return x;
}

// The first element of `got` that is further from the plain double sum than rounding explains, or nothing.
// A chain of n operations errs by at most n * epsilon * (sum of magnitudes); activations of ours are good to
// 1e-6 and have slopes below 1.2.
template <class T>
std::optional<std::string> first_difference(const Operands<T>& o, const Matrix<T>& got) {
  const double epsilon = std::numeric_limits<T>::epsilon();
  for (int64_t i = 0; i < o.c.m; ++i) {
    for (int64_t j = 0; j < o.c.n; ++j) {
      double sum = 0, magnitude = 0;
      for (int64_t p = 0; p < o.c.k; ++p) {
        const double product = static_cast<double>(o.a_at(i, p)) * static_cast<double>(o.b_at(p, j));
        sum += product;
        magnitude += std::abs(product);
      }
      if (o.c.accumulate == Accumulate::yes) {
        sum += static_cast<double>(o.before.view().row(i)[j]);
        magnitude += 1;
      }
      if (o.c.bias) {
        sum += static_cast<double>(o.bias.view().row(0)[j]);
        magnitude += 1;
      }
      const double activation_error = o.c.activation == Activation::none ? 0
                                      : sizeof(T) == 4                   ? 1e-6 * (1 + std::abs(sum))
                                                                         : 1e-14 * (1 + std::abs(sum));
      // Errors of a sum grow like the root of its length in practice; the factor leaves room for all of it.
      const double steps = 4 * std::sqrt(static_cast<double>(o.c.k)) + 4;
      const double tolerance = 1.2 * steps * epsilon * magnitude + activation_error;
      const auto differs = [&](double value, double expected) {
        return !(std::abs(value - expected) <= tolerance);
      };
      const auto text = [&](const char* what, double value, double expected) {
        return std::string(what) + " [" + std::to_string(i) + ", " + std::to_string(j) + "] is " +
               std::to_string(value) + ", not " + std::to_string(expected) + ": " + o.c.text();
      };
      const double value = static_cast<double>(got.row(i)[j]);
      const double expected = reference_activation(o.c.activation, sum);
      if (differs(value, expected)) return text("element", value, expected);
      if (o.c.keep) {
        const double kept = static_cast<double>(o.pre.view().row(i)[j]);
        if (differs(kept, sum)) return text("pre-activation", kept, sum);
      }
    }
  }
  return std::nullopt;
}

template <class T>
bool same_bits(const Matrix<T>& x, const Matrix<T>& y) {
  if (x.rows != y.rows || x.cols != y.cols) return false;
  for (int64_t i = 0; i < x.rows; ++i) {
    if (std::memcmp(x.row(i), y.row(i), static_cast<size_t>(x.cols) * sizeof(T)) != 0) return false;
  }
  return true;
}

}  // namespace gloss::kernels
