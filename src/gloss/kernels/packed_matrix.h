// Weights laid out once for many products y = x W^T.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <utility>

#include "gloss/base/thread_pool.h"
#include "gloss/kernels/epilogue.h"
#include "gloss/kernels/isa.h"
#include "gloss/kernels/matrix.h"
#include "gloss/kernels/precision.h"

namespace gloss::kernels {

// Weights W [out, in] in panels, as the kernels of one instruction set read them. Immutable; copies share the
// numbers, among threads too.
class PackedMatrix {
 public:
  PackedMatrix() = default;
  int64_t rows() const;  // out
  int64_t cols() const;  // in
  Precision precision() const;
  size_t bytes() const;  // of the packed numbers
  Isa isa() const;       // what it was packed for; gemm_packed refuses any other
  explicit operator bool() const { return body_ != nullptr; }

  struct Body;
  explicit PackedMatrix(std::shared_ptr<const Body> body) : body_(std::move(body)) {}
  const Body* body() const { return body_.get(); }

 private:
  std::shared_ptr<const Body> body_;
};
// int8 products sum up to this many k exactly in 32 bits; packing refuses more. (2^31 - 1) / (127 * 128)
inline constexpr int64_t kMostInt8Inputs = 132104;

// The right side of a product: W stored as [out, in], or with Transpose::no its transpose [in, out], which
// serves dX = dY W. Throws UsageError for a precision that this CPU does not serve.
//
// int8: row o of W becomes round(W[o] / scale[o]) with scale[o] = max |W[o]| / 127, or 0 where the row is
// zero; a row with a number that is not finite gives NaN.
PackedMatrix pack(Matrix<const float> weights, Transpose stored = Transpose::yes,
                  Precision precision = Precision::float32);
// Weights that a file holds as int8: W[o, i] = weights[o, i] * scales[o]. Of the precision int8.
PackedMatrix pack_int8(Matrix<const int8_t> weights, std::span<const float> scales);

// The same from a few rows at a time, so that the plain weights are never there as a whole. All rows must
// have been added before `finish`; threads may add different ones at the same time.
class Packer {
 public:
  // A `first` and, but for the last rows, a number of rows are multiples of this.
  static constexpr int64_t kStep = 64;
  Packer(int64_t rows, int64_t cols, Precision precision);
  // Rows [first, first + weights.rows) of W.
  void add(int64_t first, Matrix<const float> weights);
  void add_int8(int64_t first, Matrix<const int8_t> weights, std::span<const float> scales);
  PackedMatrix finish() &&;

 private:
  std::shared_ptr<PackedMatrix::Body> body_;
};

// y [M, out] (+)= x [M, in] W^T in the precision of W, to which x is rounded. Every row of y depends on its
// row of x and on W alone. Throws Error if the shapes do not fit, or if the instruction set was changed after
// packing.
//
// float32 and bfloat16: bit-equal to gemm with the plain weights.
// int8: a row of x is quantised as those of W are (a row with a number that is not finite gives NaN); an
// element is float(exact sum) * (scale of its row * scale of its output), and then takes the way out. The
// same bits on every instruction set from AVX2 up, with VNNI and without.
void gemm_packed(ThreadPool& pool, Matrix<const float> x, const PackedMatrix& w, Matrix<float> y,
                 Accumulate accumulate = Accumulate::no, const Epilogue<float>& epilogue = {});

// How y is cut for those who want it a few columns at a time: into parts, of which a run of several is one
// task. Multiples of 64.
struct ColumnParts {
  int64_t part = 512, run = 4096;
};
// Receives y [rows, columns] from (row, col) on. Parts of a run come from left to right on one thread, those
// of several runs at the same time; a part is valid during the call and may be written to.
using SeePart = std::function<void(int64_t row, int64_t col, Matrix<float> y)>;
// gemm_packed, bit for bit, for a y that is never there as a whole: a part is used while it is in the cache.
// W is read from memory once, however many rows x has.
void gemm_packed_parts(ThreadPool& pool, Matrix<const float> x, const PackedMatrix& w, const float* bias,
                       ColumnParts parts, const SeePart& see);

// Row `row` of W again, `out` [in]: the very numbers that were packed. On any instruction set. Throws Error
// if there is no such row.
void unpack_row(const PackedMatrix& w, int64_t row, float* out);
// out [rows.size(), in] = rows rows[0], rows[1], ... of W, as an embedding reads its table.
void unpack_rows(ThreadPool& pool, const PackedMatrix& w, std::span<const int32_t> rows, Matrix<float> out);
// Rows rows[0], rows[1], ... of W as weights of their own, with the very numbers: in gemm_packed and
// gemm_packed_parts column i has the bits that column rows[i] has with W (of oneDNN's layout there is no
// copy: products with this one are our own kernel's). Throws Error if there is no such row, or if the
// instruction set was changed after packing.
PackedMatrix gather_rows(ThreadPool& pool, const PackedMatrix& w, std::span<const int32_t> rows);
// What pack_int8 takes: weights [out, in] and scales [out] of a matrix in int8, to be written to a file.
void unpack_int8(const PackedMatrix& w, Matrix<int8_t> weights, std::span<float> scales);

}  // namespace gloss::kernels
