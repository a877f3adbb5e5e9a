#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "gloss/kernels/elementwise.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "gloss/kernels/activation-inl.h"
#include "gloss/kernels/dispatch.h"
#include "gloss/kernels/dropout-inl.h"
#include "gloss/kernels/elementwise.h"

HWY_BEFORE_NAMESPACE();
namespace gloss::kernels::HWY_NAMESPACE {
namespace {

// y = base + dropout(x), where base is nothing, another matrix, or y itself.
template <class T>
void dropout_rows(Matrix<const T> base, Matrix<const T> x, const Dropout& dropout, Matrix<T> y, int64_t begin,
                  int64_t end) {
  for (int64_t i = begin; i < end; ++i) {
    for (int64_t c = 0; c < x.cols; c += kWide) {
      const int64_t n = x.cols - c;
      Wide<T> v = load_chunk(x.row(i) + c, n);
      if (dropout.active()) v = v * dropout_factors(dropout, static_cast<uint64_t>(i * x.cols + c), T{});
      if (base.data) v = v + load_chunk(base.row(i) + c, n);
      store_chunk(v, y.row(i) + c, n);
    }
  }
}

template <Activation A, class T>
void activation_rows(Matrix<const T> kept, Matrix<const T> dy, Matrix<T> dx, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i) {
    for (int64_t c = 0; c < dy.cols; c += kWide) {
      const int64_t n = dy.cols - c;
      const Wide<T> slope = activation_slope<A>(load_chunk(kept.row(i) + c, n));
      store_chunk(load_chunk(dy.row(i) + c, n) * slope, dx.row(i) + c, n);
    }
  }
}
template <class T>
void activation_backward_rows(Activation activation, Matrix<const T> kept, Matrix<const T> dy, Matrix<T> dx,
                              int64_t begin, int64_t end) {
  switch (activation) {
    case Activation::none:
      return activation_rows<Activation::none>(kept, dy, dx, begin, end);
    case Activation::relu:
      return activation_rows<Activation::relu>(kept, dy, dx, begin, end);
    case Activation::swish:
      return activation_rows<Activation::swish>(kept, dy, dx, begin, end);
    case Activation::gelu:
      return activation_rows<Activation::gelu>(kept, dy, dx, begin, end);
    case Activation::tanh:
      return activation_rows<Activation::tanh>(kept, dy, dx, begin, end);
  }
}

// Neighbours of a row: sixteen first ones and sixteen second ones.
template <class T>
struct Pairs {
  Wide<T> first, second;
};
template <class T>
HWY_INLINE Pairs<T> load_pairs(const T* p, int64_t n) {
  HWY_ALIGN T lanes[2 * kWide] = {};
  if (n < kWide) {
    std::memcpy(lanes, p, static_cast<size_t>(2 * n) * sizeof(T));
    p = lanes;
  }
  const typename Wide<T>::D d;
  Pairs<T> pairs;
  for (int i = 0; i < Wide<T>::kVectors; ++i) {
    hn::LoadInterleaved2(d, p + 2 * i * Wide<T>::kLanes, pairs.first.v[i], pairs.second.v[i]);
  }
  return pairs;
}
template <class T>
HWY_INLINE void store_pairs(const Pairs<T>& pairs, T* p, int64_t n) {
  HWY_ALIGN T lanes[2 * kWide];
  T* to = n < kWide ? lanes : p;
  const typename Wide<T>::D d;
  for (int i = 0; i < Wide<T>::kVectors; ++i) {
    hn::StoreInterleaved2(pairs.first.v[i], pairs.second.v[i], d, to + 2 * i * Wide<T>::kLanes);
  }
  if (n < kWide) std::memcpy(p, lanes, static_cast<size_t>(2 * n) * sizeof(T));
}
// Where the second wins: `second`, elsewhere `first`. NaN wins over numbers.
template <class T>
HWY_INLINE Wide<T> by_winner(const Pairs<T>& x, const Wide<T>& first, const Wide<T>& second) {
  return each<T>([&](int i) HWY_ATTR {
    const auto wins = hn::Or(hn::Gt(x.second.v[i], x.first.v[i]), hn::IsNaN(x.second.v[i]));
    return hn::IfThenElse(wins, second.v[i], first.v[i]);
  });
}

template <class T>
void maxout_rows(Matrix<const T> x, Matrix<T> y, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i) {
    for (int64_t c = 0; c < y.cols; c += kWide) {
      const Pairs<T> pairs = load_pairs(x.row(i) + 2 * c, y.cols - c);
      store_chunk(by_winner(pairs, pairs.first, pairs.second), y.row(i) + c, y.cols - c);
    }
  }
}
template <class T>
void maxout_backward_rows(Matrix<const T> x, Matrix<const T> dy, Matrix<T> dx, Accumulate accumulate,
                          int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i) {
    for (int64_t c = 0; c < dy.cols; c += kWide) {
      const int64_t n = dy.cols - c;
      const Pairs<T> pairs = load_pairs(x.row(i) + 2 * c, n);
      const Wide<T> up = load_chunk(dy.row(i) + c, n);
      Pairs<T> to{by_winner(pairs, up, zero<T>()), by_winner(pairs, zero<T>(), up)};
      if (accumulate == Accumulate::yes) {
        const Pairs<T> there = load_pairs<T>(dx.row(i) + 2 * c, n);
        to = {there.first + to.first, there.second + to.second};
      }
      store_pairs(to, dx.row(i) + 2 * c, n);
    }
  }
}

template <class T>
void column_sums(Matrix<const T> x, T* sums, int64_t begin, int64_t end) {
  for (int64_t c = 0; c < x.cols; c += kWide) {
    const int64_t n = x.cols - c;
    Wide<T> total = zero<T>();
    for (int64_t i = begin; i < end; ++i) total = total + load_chunk(x.row(i) + c, n);
    store_chunk(total, sums + c, n);
  }
}

GLOSS_KERNEL(dropout_rows);
GLOSS_KERNEL(activation_backward_rows);
GLOSS_KERNEL(maxout_rows);
GLOSS_KERNEL(maxout_backward_rows);
GLOSS_KERNEL(column_sums);

}  // namespace
}  // namespace gloss::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "gloss/kernels/scratch.h"

namespace gloss::kernels {
namespace {
GLOSS_EXPORT(dropout_rows);
GLOSS_EXPORT(activation_backward_rows);
GLOSS_EXPORT(maxout_rows);
GLOSS_EXPORT(maxout_backward_rows);
GLOSS_EXPORT(column_sums);
constexpr int64_t kRows = 64;

template <class T>
void run_dropout(ThreadPool& pool, Matrix<const T> base, Matrix<const T> x, const Dropout& dropout,
                 Matrix<T> y) {
  pool.parallel_ranges(x.rows, kRows, [&](int64_t begin, int64_t end) {
    GLOSS_CALL(dropout_rows, T)(base, x, dropout, y, begin, end);
  });
}
}  // namespace

template <class T>
void dropout(ThreadPool& pool, Matrix<const T> x, const Dropout& dropout, Matrix<T> y,
             Accumulate accumulate) {
  run_dropout<T>(pool, accumulate == Accumulate::yes ? Matrix<const T>(y) : Matrix<const T>{}, x, dropout, y);
}
template <class T>
void add_dropout(ThreadPool& pool, Matrix<const T> x, Matrix<const T> branch, const Dropout& dropout,
                 Matrix<T> y) {
  run_dropout<T>(pool, x, branch, dropout, y);
}
template <class T>
void add(ThreadPool& pool, Matrix<const T> x, Matrix<T> y, Accumulate accumulate) {
  dropout<T>(pool, x, Dropout(), y, accumulate);
}

template <class T>
void activation_backward(ThreadPool& pool, Activation activation, Matrix<const T> kept, Matrix<const T> dy,
                         Matrix<T> dx) {
  pool.parallel_ranges(dy.rows, kRows, [&](int64_t begin, int64_t end) {
    GLOSS_CALL(activation_backward_rows, T)(activation, kept, dy, dx, begin, end);
  });
}

template <class T>
void maxout(ThreadPool& pool, Matrix<const T> x, Matrix<T> y) {
  pool.parallel_ranges(y.rows, kRows, [&](int64_t begin, int64_t end) {
    GLOSS_CALL(maxout_rows, T)(x, y, begin, end);
  });
}
template <class T>
void maxout_backward(ThreadPool& pool, Matrix<const T> x, Matrix<const T> dy, Matrix<T> dx,
                     Accumulate accumulate) {
  pool.parallel_ranges(dy.rows, kRows, [&](int64_t begin, int64_t end) {
    GLOSS_CALL(maxout_backward_rows, T)(x, dy, dx, accumulate, begin, end);
  });
}

template <class T>
void add_column_sums(ThreadPool& pool, Matrix<const T> x, T* sums) {
  const int64_t rows = 256, blocks = (x.rows + rows - 1) / rows;
  Scratch<T> partial(blocks * x.cols);
  pool.parallel_ranges(x.rows, rows, [&](int64_t begin, int64_t end) {
    T* mine = partial.data() + begin / rows * x.cols;
    GLOSS_CALL(column_sums, T)(x, mine, begin, end);
  });
  for (int64_t block = 0; block < blocks; ++block) {
    for (int64_t c = 0; c < x.cols; ++c) sums[c] += partial[block * x.cols + c];
  }
}

template void dropout(ThreadPool&, Matrix<const float>, const Dropout&, Matrix<float>, Accumulate);
template void dropout(ThreadPool&, Matrix<const double>, const Dropout&, Matrix<double>, Accumulate);
template void add_dropout(ThreadPool&, Matrix<const float>, Matrix<const float>, const Dropout&,
                          Matrix<float>);
template void add_dropout(ThreadPool&, Matrix<const double>, Matrix<const double>, const Dropout&,
                          Matrix<double>);
template void add(ThreadPool&, Matrix<const float>, Matrix<float>, Accumulate);
template void add(ThreadPool&, Matrix<const double>, Matrix<double>, Accumulate);
template void activation_backward(ThreadPool&, Activation, Matrix<const float>, Matrix<const float>,
                                  Matrix<float>);
template void activation_backward(ThreadPool&, Activation, Matrix<const double>, Matrix<const double>,
                                  Matrix<double>);
template void maxout(ThreadPool&, Matrix<const float>, Matrix<float>);
template void maxout(ThreadPool&, Matrix<const double>, Matrix<double>);
template void maxout_backward(ThreadPool&, Matrix<const float>, Matrix<const float>, Matrix<float>,
                              Accumulate);
template void maxout_backward(ThreadPool&, Matrix<const double>, Matrix<const double>, Matrix<double>,
                              Accumulate);
template void add_column_sums(ThreadPool&, Matrix<const float>, float*);
template void add_column_sums(ThreadPool&, Matrix<const double>, double*);

}  // namespace gloss::kernels
#endif  // HWY_ONCE
