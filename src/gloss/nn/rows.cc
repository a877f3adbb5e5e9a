#include "gloss/nn/rows.h"

#include <algorithm>
#include <vector>

#include "gloss/kernels/elementwise.h"

namespace gloss::nn {

using autograd::Slot;
using autograd::Tape;
using autograd::Var;
using kernels::Accumulate;
using kernels::Matrix;
using kernels::matrix;

namespace {
constexpr int64_t kRows = 256;  // a task
}

template <class T>
Var<T> rows(Tape<T>& tape, const Var<T>& x, std::span<const int64_t> indices, Columns columns) {
  const int64_t first = columns.first, count = columns.count > 0 ? columns.count : x.cols() - first;
  require(first >= 0 && count >= 0 && first + count <= x.cols(),
          "columns {}..{} were asked for of rows of {} numbers", first, first + count, x.cols());
  for (const int64_t index : indices) {
    require(index >= -1 && index < x.rows(), "row {} was asked for of a matrix of {} rows", index, x.rows());
  }
  const Tensor<T> y = tape.allocate({static_cast<int64_t>(indices.size()), count});
  tape.pool().parallel_ranges(y.rows(), kRows, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t index = indices[static_cast<size_t>(i)];
      if (index < 0) {
        std::fill_n(y.row(i), count, T{0});
      } else {
        std::copy_n(x.value().row(index) + first, count, y.row(i));
      }
    }
  });
  return tape.record(y, {&x}, [&] {
    return [x = x.place(), kept = std::vector<int64_t>(indices.begin(), indices.end()), first](
               Tape<T>& t, const Tensor<T>& dy) {
      const Slot<T> dx = t.slot(x);
      if (dx.accumulate == Accumulate::no) dx.tensor.fill(0);
      // A task owns columns, since a row may be taken twice.
      const int64_t width = dx.tensor.cols();
      t.pool().parallel_ranges(dy.cols(), 64, [&](int64_t begin, int64_t end) {
        for (size_t i = 0; i < kept.size(); ++i) {
          if (kept[i] < 0) continue;
          T* to = dx.tensor.data() + kept[i] * width + first;
          const T* from = dy.row(static_cast<int64_t>(i));
          for (int64_t c = begin; c < end; ++c) to[c] += from[c];
        }
      });
    };
  });
}

template <class T>
Var<T> stack_rows(Tape<T>& tape, std::span<const Var<T>> parts) {
  require(!parts.empty(), "no parts were given to be put under each other");
  int64_t total = 0;
  const Var<T>* wanting = &parts[0];
  for (const Var<T>& part : parts) {
    require(part.cols() == parts[0].cols(), "rows of {} and {} numbers cannot stand under each other",
            parts[0].cols(), part.cols());
    total += part.rows();
    if (part.wants_gradient()) wanting = &part;
  }
  const Tensor<T> y = tape.allocate({total, parts[0].cols()});
  T* to = y.data();
  for (const Var<T>& part : parts) to = std::copy_n(part.value().data(), part.value().size(), to);
  return tape.record(y, {wanting}, [&] {
    std::vector<Var<T>> places;
    std::vector<int64_t> counts;
    for (const Var<T>& part : parts) {
      places.push_back(part.place());
      counts.push_back(part.rows());
    }
    return [places, counts](Tape<T>& t, const Tensor<T>& dy) {
      int64_t first = 0;
      for (size_t i = 0; i < places.size(); first += counts[i++]) {
        if (const Slot<T> dx = t.slot(places[i])) {
          kernels::add<T>(t.pool(), matrix(dy.slice_rows(first, counts[i])), dx.matrix(), dx.accumulate);
        }
      }
    };
  });
}

template <class T>
Var<T> concat_columns(Tape<T>& tape, const Var<T>& a, const Var<T>& b) {
  require(a.rows() == b.rows(), "matrices of {} and {} rows cannot stand side by side", a.rows(), b.rows());
  const int64_t p = a.cols(), q = b.cols();
  const Tensor<T> y = tape.allocate({a.rows(), p + q});
  kernels::add<T>(tape.pool(), matrix(a.value()), kernels::columns(matrix(y), 0, p), Accumulate::no);
  kernels::add<T>(tape.pool(), matrix(b.value()), kernels::columns(matrix(y), p, q), Accumulate::no);
  return tape.record(y, {&a, &b}, [&] {
    return [a = a.place(), b = b.place(), p, q](Tape<T>& t, const Tensor<T>& dy) {
      const Matrix<T> up = matrix(dy);
      if (const Slot<T> da = t.slot(a)) {
        kernels::add<T>(t.pool(), kernels::columns(up, 0, p), da.matrix(), da.accumulate);
      }
      if (const Slot<T> db = t.slot(b)) {
        kernels::add<T>(t.pool(), kernels::columns(up, p, q), db.matrix(), db.accumulate);
      }
    };
  });
}

template Var<float> rows(Tape<float>&, const Var<float>&, std::span<const int64_t>, Columns);
template Var<double> rows(Tape<double>&, const Var<double>&, std::span<const int64_t>, Columns);
template Var<float> stack_rows(Tape<float>&, std::span<const Var<float>>);
template Var<double> stack_rows(Tape<double>&, std::span<const Var<double>>);
template Var<float> concat_columns(Tape<float>&, const Var<float>&, const Var<float>&);
template Var<double> concat_columns(Tape<double>&, const Var<double>&, const Var<double>&);

}  // namespace gloss::nn
