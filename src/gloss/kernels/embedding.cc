#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "gloss/kernels/embedding.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "gloss/kernels/dispatch.h"
#include "gloss/kernels/dropout-inl.h"
#include "gloss/kernels/embedding.h"

HWY_BEFORE_NAMESPACE();
namespace gloss::kernels::HWY_NAMESPACE {
namespace {

template <class T>
void gather_row(const T* embedding, T scale, const T* position, const Dropout& dropout, int64_t i, int64_t d,
                T* y) {
  for (int64_t c = 0; c < d; c += kWide) {
    Wide<T> v = load_chunk(embedding + c, d - c) * set(scale);
    if (position) v = v + load_chunk(position + c, d - c);
    if (dropout.active()) v = v * dropout_factors(dropout, static_cast<uint64_t>(i * d + c), T{});
    store_chunk(v, y + c, d - c);
  }
}
template <class T>
void scatter_row(const T* dy, T scale, const Dropout& dropout, int64_t i, int64_t d, T* dtable) {
  for (int64_t c = 0; c < d; c += kWide) {
    Wide<T> v = load_chunk(dy + c, d - c) * set(scale);
    if (dropout.active()) v = v * dropout_factors(dropout, static_cast<uint64_t>(i * d + c), T{});
    store_chunk(load_chunk(dtable + c, d - c) + v, dtable + c, d - c);
  }
}

GLOSS_KERNEL(gather_row);
GLOSS_KERNEL(scatter_row);

}  // namespace
}  // namespace gloss::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gloss::kernels {
namespace {
GLOSS_EXPORT(gather_row);
GLOSS_EXPORT(scatter_row);
}  // namespace

template <class T>
void embed_forward(ThreadPool& pool, Matrix<const T> table, std::span<const int32_t> ids, T scale,
                   Matrix<const T> positions, std::span<const int64_t> position_of, const Dropout& dropout,
                   Matrix<T> y) {
  pool.parallel_ranges(y.rows, 256, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const auto at = static_cast<size_t>(i);
      const T* position = positions.data ? positions.row(position_of[at]) : nullptr;
      GLOSS_CALL(gather_row, T)(table.row(ids[at]), scale, position, dropout, i, y.cols, y.row(i));
    }
  });
}

template <class T>
void embed_backward(ThreadPool& pool, std::span<const int32_t> ids, T scale, const Dropout& dropout,
                    Matrix<const T> dy, Matrix<T> dtable, int64_t frozen) {
  // Each task owns the ids of one residue class: no two tasks touch a row, and frequent ids spread.
  constexpr int32_t kClasses = 16;
  pool.parallel_for(kClasses, [&](int64_t mine) {
    for (size_t i = 0; i < ids.size(); ++i) {
      const int32_t id = ids[i];
      if (id % kClasses != mine || id == frozen) continue;
      const auto at = static_cast<int64_t>(i);
      GLOSS_CALL(scatter_row, T)(dy.row(at), scale, dropout, at, dy.cols, dtable.row(id));
    }
  });
}

template void embed_forward(ThreadPool&, Matrix<const float>, std::span<const int32_t>, float,
                            Matrix<const float>, std::span<const int64_t>, const Dropout&, Matrix<float>);
template void embed_forward(ThreadPool&, Matrix<const double>, std::span<const int32_t>, double,
                            Matrix<const double>, std::span<const int64_t>, const Dropout&, Matrix<double>);
template void embed_backward(ThreadPool&, std::span<const int32_t>, float, const Dropout&,
                             Matrix<const float>, Matrix<float>, int64_t);
template void embed_backward(ThreadPool&, std::span<const int32_t>, double, const Dropout&,
                             Matrix<const double>, Matrix<double>, int64_t);

}  // namespace gloss::kernels
#endif  // HWY_ONCE
