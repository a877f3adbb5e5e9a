#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "gloss/kernels/layer_norm.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "gloss/kernels/dispatch.h"
#include "gloss/kernels/dropout-inl.h"
#include "gloss/kernels/layer_norm-inl.h"
#include "gloss/kernels/layer_norm.h"

HWY_BEFORE_NAMESPACE();
namespace gloss::kernels::HWY_NAMESPACE {
namespace {

template <class T>
void forward_rows(const AddNorm<T>& in, Matrix<T> sums, Matrix<T> y, T* statistics, int64_t begin,
                  int64_t end) {
  const int64_t d = in.x.cols;
  for (int64_t i = begin; i < end; ++i) {
    const T* x = in.x.row(i);
    Wide<T> total = zero<T>();
    if (in.branch.data) {
      const T* branch = in.branch.row(i);
      T* kept = sums.row(i);
      for (int64_t c = 0; c < d; c += kWide) {
        Wide<T> b = load_chunk(branch + c, d - c);
        if (in.dropout.active()) b = b * dropout_factors(in.dropout, static_cast<uint64_t>(i * d + c), T{});
        const Wide<T> s = load_chunk(x + c, d - c) + b;
        store_chunk(s, kept + c, d - c);
        total = total + (d - c >= kWide ? s : keep_first(s, d - c));
      }
      x = kept;
    } else {
      for (int64_t c = 0; c < d; c += kWide) total = total + load_chunk(x + c, d - c);
    }
    const RowStatistics<T> row = normalise_row(x, d, total, in.gamma, in.beta, in.epsilon, y.row(i));
    if (statistics) {
      statistics[2 * i] = row.mean;
      statistics[2 * i + 1] = row.inverse;
    }
  }
}

// `partial` [2, d] gets this block's share of dgamma and dbeta.
template <class T>
void backward_rows(const AddNorm<T>& in, const AddNormGradient<T>& gr, T* partial, int64_t begin,
                   int64_t end) {
  const int64_t d = in.x.cols;
  T* dgamma = partial;
  T* dbeta = partial + d;
  for (int64_t c = 0; c < 2 * d; ++c) partial[c] = 0;
  for (int64_t i = begin; i < end; ++i) {
    const T* dy = gr.dy.row(i);
    const T* x = gr.sum.row(i);
    normalise_row_backward(
        dy, x, {gr.statistics[2 * i], gr.statistics[2 * i + 1]}, d, in.gamma,
        [&](int64_t c, int64_t n, const Wide<T>& up, const Wide<T>& normal) HWY_ATTR {
          store_chunk(mul_add(up, normal, load_chunk(dgamma + c, n)), dgamma + c, n);
          store_chunk(up + load_chunk(dbeta + c, n), dbeta + c, n);
        },
        [&](int64_t c, int64_t n, const Wide<T>& ds) HWY_ATTR {
          if (gr.dx.data) {
            T* dx = gr.dx.row(i) + c;
            store_chunk(gr.accumulate_x == Accumulate::yes ? ds + load_chunk(dx, n) : ds, dx, n);
          }
          if (gr.dbranch.data) {
            T* db = gr.dbranch.row(i) + c;
            Wide<T> b = ds;
            if (in.dropout.active())
              b = b * dropout_factors(in.dropout, static_cast<uint64_t>(i * d + c), T{});
            store_chunk(gr.accumulate_branch == Accumulate::yes ? b + load_chunk(db, n) : b, db, n);
          }
        });
  }
}

GLOSS_KERNEL(forward_rows);
GLOSS_KERNEL(backward_rows);

}  // namespace
}  // namespace gloss::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "gloss/kernels/scratch.h"

namespace gloss::kernels {
namespace {
GLOSS_EXPORT(forward_rows);
GLOSS_EXPORT(backward_rows);
constexpr int64_t kRows = 64;  // rows a task; the order of the sums below depends on it, not on threads
}  // namespace

template <class T>
void add_norm_forward(ThreadPool& pool, const AddNorm<T>& in, Matrix<T> sum, Matrix<T> y, T* statistics) {
  pool.parallel_ranges(in.x.rows, kRows, [&](int64_t begin, int64_t end) {
    GLOSS_CALL(forward_rows, T)(in, sum, y, statistics, begin, end);
  });
}

template <class T>
void add_norm_backward(ThreadPool& pool, const AddNorm<T>& in, const AddNormGradient<T>& gradient) {
  const int64_t d = in.x.cols, blocks = (in.x.rows + kRows - 1) / kRows;
  Scratch<T> partial(blocks * 2 * d);
  pool.parallel_ranges(in.x.rows, kRows, [&](int64_t begin, int64_t end) {
    T* mine = partial.data() + begin / kRows * 2 * d;
    GLOSS_CALL(backward_rows, T)(in, gradient, mine, begin, end);
  });
  for (int64_t block = 0; block < blocks; ++block) {
    const T* from = partial.data() + block * 2 * d;
    for (int64_t c = 0; c < d; ++c) {
      if (gradient.dgamma) gradient.dgamma[c] += from[c];
      if (gradient.dbeta) gradient.dbeta[c] += from[d + c];
    }
  }
}

template void add_norm_forward(ThreadPool&, const AddNorm<float>&, Matrix<float>, Matrix<float>, float*);
template void add_norm_forward(ThreadPool&, const AddNorm<double>&, Matrix<double>, Matrix<double>, double*);
template void add_norm_backward(ThreadPool&, const AddNorm<float>&, const AddNormGradient<float>&);
template void add_norm_backward(ThreadPool&, const AddNorm<double>&, const AddNormGradient<double>&);

}  // namespace gloss::kernels
#endif  // HWY_ONCE
