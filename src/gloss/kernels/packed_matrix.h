// Weights laid out once for many products y = x W^T.
#pragma once

#include <cstddef>
#include <cstdint>
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
// The right side of a product: W stored as [out, in], or with Transpose::no its transpose [in, out], which
// serves dX = dY W. Throws UsageError for a precision that this CPU does not serve.
PackedMatrix pack(Matrix<const float> weights, Transpose stored = Transpose::yes,
                  Precision precision = Precision::float32);

// y [M, out] (+)= x [M, in] W^T in the precision of W, to which x is rounded. Every row of y depends on its
// row of x and on W alone. Throws Error if the shapes do not fit, or if the instruction set was changed after
// packing.
//
// float32 and bfloat16: bit-equal to gemm with the plain weights.
void gemm_packed(ThreadPool& pool, Matrix<const float> x, const PackedMatrix& w, Matrix<float> y,
                 Accumulate accumulate = Accumulate::no, const Epilogue<float>& epilogue = {});

// Row `row` of W again, `out` [in]: the very numbers that were packed. On any instruction set. Throws Error
// if there is no such row.
void unpack_row(const PackedMatrix& w, int64_t row, float* out);
// out [rows.size(), in] = rows rows[0], rows[1], ... of W, as an embedding reads its table.
void unpack_rows(ThreadPool& pool, const PackedMatrix& w, std::span<const int32_t> rows, Matrix<float> out);

}  // namespace gloss::kernels
