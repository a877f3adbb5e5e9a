// Raw views and small words shared by all kernels.
#pragma once

#include <cstdint>

#include "gloss/tensor/tensor.h"

namespace gloss::kernels {

// A row-major matrix inside some memory: row i begins at data + i * stride.
template <class T>
struct Matrix {
  T* data = nullptr;
  int64_t rows = 0, cols = 0, stride = 0;
  T* row(int64_t i) const { return data + i * stride; }
  operator Matrix<const T>() const { return {data, rows, cols, stride}; }
};

template <class T>
Matrix<T> matrix(const Tensor<T>& tensor) {
  return {tensor.data(), tensor.rows(), tensor.cols(), tensor.cols()};
}
// Columns [begin, begin + count) of a matrix: one head, one projection of a fused product.
template <class T>
Matrix<T> columns(Matrix<T> m, int64_t begin, int64_t count) {
  return {m.data + begin, m.rows, count, m.stride};
}
// Rows [begin, begin + count) of a matrix: one sequence.
template <class T>
Matrix<T> rows(Matrix<T> m, int64_t begin, int64_t count) {
  return {m.row(begin), count, m.cols, m.stride};
}

enum class Transpose : bool { no, yes };
enum class Accumulate : bool { no, yes };  // write the result, or add it to what is there
enum class Activation : uint8_t { none, relu, swish, gelu, tanh };

}  // namespace gloss::kernels
