// The one matrix product of Gloss, C (+)= op(A) op(B), with bias and activation applied on the way out.
//
// Every element of C is a sum in the order of k: one chain of fused multiply-adds for each 1,024 of k, the
// chains added one after another. Neither the other rows, nor M, nor threads, nor packing, nor the backend
// changes a bit of it; AVX2 and AVX-512 agree (SSE has no fused multiply-add and differs in the last bits).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "gloss/base/thread_pool.h"
#include "gloss/kernels/isa.h"
#include "gloss/kernels/matrix.h"

namespace gloss::kernels {

// What happens to each element of C once its sum is complete (and added to C, if accumulating).
template <class T>
struct Epilogue {
  const T* bias = nullptr;  // [N], added
  Activation activation = Activation::none;
  // [M, N]; if data is not null: receives the sum with bias before the activation, which the backward of
  // swish and GELU needs.
  Matrix<T> pre_activation{};
};

// C [M, N] (+)= op(A) [M, K] op(B) [K, N]. Transpose::yes: the stored matrix is [K, M] (A) or [N, K] (B).
//   forward y = x W^T: tb = yes      dX = dY W: both no      dW = dY^T X: ta = yes
// K = 0 is a sum of zero. C may not overlap A or B. T is float (fast) or double (plain loops, for gradient
// checks). Throws Error if the shapes do not fit.
template <class T>
void gemm(ThreadPool& pool, Matrix<const std::type_identity_t<T>> a, Transpose ta,
          Matrix<const std::type_identity_t<T>> b, Transpose tb, Matrix<T> c,
          Accumulate accumulate = Accumulate::no, const Epilogue<std::type_identity_t<T>>& epilogue = {});

// The same on the calling thread, for callers that run inside a task already.
template <class T>
void gemm_serial(Matrix<const std::type_identity_t<T>> a, Transpose ta,
                 Matrix<const std::type_identity_t<T>> b, Transpose tb, Matrix<T> c,
                 Accumulate accumulate = Accumulate::no,
                 const Epilogue<std::type_identity_t<T>>& epilogue = {});

// Weights W [out, in] laid out once for y = x W^T. Immutable; copies share the numbers, among threads too.
class PackedMatrix {
 public:
  PackedMatrix() = default;
  int64_t rows() const;  // out
  int64_t cols() const;  // in
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
// serves dX = dY W.
PackedMatrix pack(Matrix<const float> weights, Transpose stored = Transpose::yes);

// y [M, out] (+)= x [M, in] W^T, bit-equal to gemm with the plain weights. Throws Error if the shapes do
// not fit, or if the instruction set was changed after packing.
void gemm_packed(ThreadPool& pool, Matrix<const float> x, const PackedMatrix& w, Matrix<float> y,
                 Accumulate accumulate = Accumulate::no, const Epilogue<float>& epilogue = {});

// Who computes float products: the measured better one (`automatic`), our Highway kernel, or oneDNN where
// its AVX-512 brgemm serves (elsewhere our kernel steps in). For the whole process; not while products
// run. Packed matrices keep the backend they were packed for.
enum class GemmBackend { automatic, own, onednn };
void set_gemm_backend(GemmBackend backend);
GemmBackend gemm_backend();
GemmBackend parse_gemm_backend(std::string_view name);  // throws UsageError listing the names there are
std::string gemm_description();  // for `gloss --version`: "own Highway kernel (avx512)"

}  // namespace gloss::kernels
