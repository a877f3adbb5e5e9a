#include "gloss/attention/kernel_regression.h"

#include <cmath>
#include <tuple>
#include <vector>

#include "gloss/kernels/matrix.h"

namespace gloss::attention {

using autograd::Slot;
using autograd::Tape;
using autograd::Var;
using kernels::Accumulate;

namespace {

constexpr int64_t kRows = 16;  // of a task

template <class T>
double squared_distance(const T* x, const T* x_i, int64_t d) {
  double sum = 0;
  for (int64_t c = 0; c < d; ++c) {
    const double difference = static_cast<double>(x[c]) - static_cast<double>(x_i[c]);
    sum += difference * difference;
  }
  return sum;
}

// |x - x_i|^2 - |x - x_m|^2 = (x_i - x_m)^T ((x_i - x) + (x_m - x)). Neither square is computed: far from all
// x_i they are so large that their difference, all that the softmax sees, would be lost in rounding.
template <class T>
double farther(const T* x, const T* x_i, const T* x_m, int64_t d) {
  double sum = 0;
  for (int64_t c = 0; c < d; ++c) {
    const auto at = static_cast<double>(x[c]), i = static_cast<double>(x_i[c]),
               m = static_cast<double>(x_m[c]);
    sum += (i - m) * ((i - at) + (m - at));
  }
  return sum;
}

// The x_m nearest to x, which has the largest score.
template <class T>
const T* nearest(const T* x, const Tensor<T>& x_i) {
  const T* m = x_i.row(0);
  for (int64_t i = 1; i < x_i.rows(); ++i) {
    if (farther(x, x_i.row(i), m, x_i.cols()) < 0) m = x_i.row(i);
  }
  return m;
}

// One query: its rows of scores, weights [n] and prediction [d_y].
template <class T>
void regress(const T* x, const Tensor<T>& x_i, const Tensor<T>& y_i, double b, T* scores, T* weights,
             T* prediction) {
  const int64_t n = x_i.rows(), d = x_i.cols(), d_y = y_i.cols();
  std::fill_n(prediction, d_y, T{0});
  if (n == 0) return;
  // Score: s_i = -|x - x_i|^2 / (2 b^2).
  for (int64_t i = 0; i < n; ++i) {
    scores[i] = static_cast<T>(-squared_distance(x, x_i.row(i), d) / b / b / 2);
  }
  // Normalise: w_i = exp(s_i - s_m) / sum_j exp(s_j - s_m), with s_m the largest.
  const T* x_m = nearest(x, x_i);
  std::vector<double> w(static_cast<size_t>(n));
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) {
    sum += w[static_cast<size_t>(i)] = std::exp(-farther(x, x_i.row(i), x_m, d) / b / b / 2);
  }
  for (int64_t i = 0; i < n; ++i) weights[i] = static_cast<T>(w[static_cast<size_t>(i)] / sum);
  // Aggregate: f(x) = sum_i w_i y_i.
  for (int64_t c = 0; c < d_y; ++c) {
    double f = 0;
    for (int64_t i = 0; i < n; ++i) f += w[static_cast<size_t>(i)] / sum * static_cast<double>(y_i(i, c));
    prediction[c] = static_cast<T>(f);
  }
}

// ds [n] = dL/ds_i of one query: w_i (dw_i - sum_j w_j dw_j) with dw_i = df^T y_i (+ the weights' own).
template <class T>
void score_gradients(const T* weights, const Tensor<T>& y_i, const T* df, const T* dweights, double* ds) {
  const int64_t n = y_i.rows();
  double mean = 0;
  for (int64_t i = 0; i < n; ++i) {
    double dw = dweights ? static_cast<double>(dweights[i]) : 0;
    for (int64_t c = 0; df && c < y_i.cols(); ++c) {
      dw += static_cast<double>(df[c]) * static_cast<double>(y_i(i, c));
    }
    ds[i] = dw;
    mean += static_cast<double>(weights[i]) * dw;
  }
  for (int64_t i = 0; i < n; ++i) ds[i] = static_cast<double>(weights[i]) * (ds[i] - mean);
}

// Calls sum(row, column) -> double for every element of a gradient, and writes or adds what comes.
template <class T, class Sum>
void fill(ThreadPool& pool, const Slot<T>& slot, Sum sum) {
  if (!slot) return;
  const kernels::Matrix<T> out = slot.matrix();
  pool.parallel_ranges(out.rows, kRows, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      for (int64_t c = 0; c < out.cols; ++c) {
        const auto g = static_cast<T>(sum(r, c));
        out.row(r)[c] = slot.accumulate == Accumulate::yes ? out.row(r)[c] + g : g;
      }
    }
  });
}

}  // namespace

template <class T>
KernelRegression<T> kernel_regression(Tape<T>& tape, const Var<T>& x, const Var<T>& x_i, const Var<T>& y_i,
                                      const Var<T>& b) {
  require(x.cols() == x_i.cols(), "queries x have {} numbers, x_i have {}", x.cols(), x_i.cols());
  require(x_i.rows() == y_i.rows(), "there are {} x_i and {} y_i", x_i.rows(), y_i.rows());
  require(!b || b.value().size() == 1, "the bandwidth b is one number, not a tensor of shape {}",
          b ? b.shape().text() : "");
  const double width = b ? static_cast<double>(b.value().data()[0]) : 1;
  require(width > 0 && std::isfinite(width), "the bandwidth b is a number above 0, not {}", width);
  const int64_t queries = x.rows(), n = x_i.rows();
  const Tensor<T> prediction = tape.allocate({queries, y_i.cols()}), scores = tape.allocate({queries, n}),
                  weights = tape.allocate({queries, n});
  tape.pool().parallel_ranges(queries, kRows, [&](int64_t begin, int64_t end) {
    for (int64_t q = begin; q < end; ++q) {
      regress(x.value().row(q), x_i.value(), y_i.value(), width, scores.row(q), weights.row(q),
              prediction.row(q));
    }
  });

  KernelRegression<T> result;
  result.scores = scores;
  std::tie(result.prediction, result.weights) = tape.record2(prediction, weights, {&x, &x_i, &y_i, &b}, [&] {
    return [x, x_i, y_i, b, weights, width](Tape<T>& t, const Tensor<T>& df, const Tensor<T>& dweights) {
      const Tensor<T>&at = x.value(), &keys = x_i.value();
      const int64_t m = at.rows(), count = keys.rows();
      std::vector<double> ds(static_cast<size_t>(m * count));
      const auto of = [&](int64_t q, int64_t i) { return ds[static_cast<size_t>(q * count + i)]; };
      std::vector<const T*> x_m(static_cast<size_t>(m));
      t.pool().parallel_ranges(m, kRows, [&](int64_t begin, int64_t end) {
        for (int64_t q = begin; q < end && count > 0; ++q) {
          score_gradients(weights.row(q), y_i.value(), df ? df.row(q) : nullptr,
                          dweights ? dweights.row(q) : nullptr, ds.data() + q * count);
          x_m[static_cast<size_t>(q)] = nearest(at.row(q), keys);
        }
      });
      // Each ds_i / b^2 comes first, for where it is zero the rest may be infinite. The ds_i of a query sum
      // to zero, so that any point serves as origin: the nearest keeps x and b exact far away.
      fill(t.pool(), t.slot(x), [&](int64_t q, int64_t c) {
        double sum = 0;
        for (int64_t i = 0; i < count; ++i) {
          sum += of(q, i) / width / width *
                 (static_cast<double>(keys(i, c)) - static_cast<double>(x_m[static_cast<size_t>(q)][c]));
        }
        return sum;
      });
      fill(t.pool(), t.slot(x_i), [&](int64_t i, int64_t c) {
        double sum = 0;
        for (int64_t q = 0; q < m; ++q) {
          sum += of(q, i) / width / width * (static_cast<double>(at(q, c)) - static_cast<double>(keys(i, c)));
        }
        return sum;
      });
      fill(t.pool(), t.slot(y_i), [&](int64_t i, int64_t c) {
        double sum = 0;
        for (int64_t q = 0; df && q < m; ++q) {
          sum += static_cast<double>(weights(q, i)) * static_cast<double>(df(q, c));
        }
        return sum;
      });
      fill(t.pool(), t.slot(b), [&](int64_t, int64_t) {
        double sum = 0;
        for (int64_t q = 0; q < m; ++q) {
          for (int64_t i = 0; i < count; ++i) {
            sum += of(q, i) / width / width / width *
                   farther(at.row(q), keys.row(i), x_m[static_cast<size_t>(q)], keys.cols());
          }
        }
        return sum;
      });
    };
  });
  return result;
}

template KernelRegression<float> kernel_regression(Tape<float>&, const Var<float>&, const Var<float>&,
                                                   const Var<float>&, const Var<float>&);
template KernelRegression<double> kernel_regression(Tape<double>&, const Var<double>&, const Var<double>&,
                                                    const Var<double>&, const Var<double>&);

}  // namespace gloss::attention
