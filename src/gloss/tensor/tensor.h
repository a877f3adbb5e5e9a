// Tensor: a counted, row-major block of numbers with a shape. A row is a token, the last dimension is dense.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

#include "gloss/base/error.h"
#include "gloss/tensor/arena.h"

namespace gloss {

// Up to four dimensions; a scalar is [1].
class Shape {
 public:
  static constexpr int kMaxRank = 4;
  Shape() = default;
  Shape(std::initializer_list<int64_t> dims);
  explicit Shape(std::span<const int64_t> dims);

  int rank() const { return rank_; }
  int64_t operator[](int i) const { return dims_[static_cast<size_t>(i)]; }
  int64_t size() const;  // number of elements
  int64_t cols() const { return rank_ ? dims_[static_cast<size_t>(rank_ - 1)] : 0; }
  int64_t rows() const;  // product of all dimensions but the last
  bool operator==(const Shape&) const = default;
  std::string text() const;  // "[3, 128]"

 private:
  std::array<int64_t, kMaxRank> dims_{};
  int rank_ = 0;
};

// Copies share the numbers. T is float (training, translating) or double (gradient checks).
template <class T>
class Tensor {
 public:
  Tensor() = default;
  // Uninitialised.
  Tensor(Arena& arena, Shape shape)
      : storage_(arena, static_cast<size_t>(shape.size()) * sizeof(T)),
        data_(static_cast<T*>(storage_.data())),
        shape_(shape) {}

  static Tensor zeros(Arena& arena, Shape shape) {
    Tensor tensor(arena, shape);
    tensor.fill(T{0});
    return tensor;
  }
  static Tensor from(Arena& arena, Shape shape, std::span<const T> values) {
    require(static_cast<int64_t>(values.size()) == shape.size(), "{} values do not fill a tensor of shape {}",
            values.size(), shape.text());
    Tensor tensor(arena, shape);
    std::copy(values.begin(), values.end(), tensor.data_);
    return tensor;
  }

  // A shape without numbers: they are held elsewhere in another form.
  static Tensor shape_only(Shape shape) {
    Tensor tensor;
    tensor.shape_ = shape;
    return tensor;
  }

  bool empty() const { return shape_.rank() == 0; }  // holds no tensor at all; [0, 5] is not empty
  bool has_numbers() const { return data_ != nullptr || size() == 0; }
  explicit operator bool() const { return !empty(); }
  const Shape& shape() const { return shape_; }
  int64_t size() const { return shape_.size(); }
  int64_t rows() const { return shape_.rows(); }
  int64_t cols() const { return shape_.cols(); }
  T* data() const { return data_; }
  T* row(int64_t i) const { return data_ + i * cols(); }
  T& operator()(int64_t row_index, int64_t col) const { return data_[row_index * cols() + col]; }
  std::span<T> values() const { return {data_, static_cast<size_t>(size())}; }

  void fill(T value) const { std::fill_n(data_, size(), value); }

  // The same numbers under another shape of the same size.
  Tensor reshaped(Shape shape) const {
    require(shape.size() == size(), "a tensor of shape {} cannot be seen as {}", shape_.text(), shape.text());
    Tensor view = *this;
    view.shape_ = shape;
    return view;
  }
  // Rows [begin, begin + count) of the matrix [rows, cols], sharing the numbers.
  Tensor slice_rows(int64_t begin, int64_t count) const {
    require(begin >= 0 && count >= 0 && begin + count <= rows(),
            "rows {}..{} are outside a tensor of {} rows", begin, begin + count, rows());
    Tensor view = *this;
    if (data_) view.data_ += begin * cols();
    view.shape_ = Shape{count, cols()};
    return view;
  }

 private:
  Storage storage_;
  T* data_ = nullptr;
  Shape shape_;
};

}  // namespace gloss
