// A matrix in hostile surroundings: it begins anywhere, its rows are apart, and all that is not its own is
// NaN.
#pragma once

#include <cstring>
#include <limits>
#include <span>
#include <vector>

#include "gloss/kernels/matrix.h"
#include "support/random.h"

namespace gloss::tests {

template <class T>
class Framed {
 public:
  // Begins `start` numbers into an aligned-by-chance block; `gap` numbers between rows. All NaN so far.
  Framed(int64_t rows, int64_t cols, int64_t start, int64_t gap)
      : start_(start),
        rows_(rows),
        cols_(cols),
        stride_(cols + gap),
        memory_(static_cast<size_t>(start + rows * (cols + gap) + 40), kNan) {}
  static Framed random(int64_t rows, int64_t cols, int64_t start, int64_t gap, uint64_t seed,
                       double scale = 1) {
    Framed framed(rows, cols, start, gap);
    framed.set(random_values<T>(rows * cols, seed, scale));
    return framed;
  }

  kernels::Matrix<T> view() { return {memory_.data() + start_, rows_, cols_, stride_}; }
  kernels::Matrix<const T> view() const { return {memory_.data() + start_, rows_, cols_, stride_}; }
  void set(const std::vector<T>& values) {
    for (int64_t i = 0; i < rows_; ++i) std::copy_n(values.data() + i * cols_, cols_, view().row(i));
  }
  // The matrix, dense.
  std::vector<T> values() const {
    std::vector<T> dense;
    for (int64_t i = 0; i < rows_; ++i) dense.insert(dense.end(), view().row(i), view().row(i) + cols_);
    return dense;
  }
  // Nobody wrote around the matrix.
  bool frame_intact() const {
    Framed fresh(rows_, cols_, start_, stride_ - cols_);
    fresh.set(values());
    return std::memcmp(fresh.memory_.data(), memory_.data(), memory_.size() * sizeof(T)) == 0;
  }

 private:
  static constexpr T kNan = std::numeric_limits<T>::quiet_NaN();
  int64_t start_, rows_, cols_, stride_;
  std::vector<T> memory_;
};

// Widths around the sixteen numbers that kernels work on at once.
inline constexpr int64_t kWidths[] = {1, 2, 15, 16, 17, 31, 33, 128};
inline constexpr int64_t kRowCounts[] = {0, 1, 5, 70};

}  // namespace gloss::tests
