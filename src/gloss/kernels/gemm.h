// The one matrix product of Gloss, C (+)= op(A) op(B), with bias and activation applied on the way out.
//
// Every element of C is a sum in the order of k: one chain of fused multiply-adds for each 1,024 of k, the
// chains added one after another. Neither the other rows, nor M, nor threads, nor packing, nor the backend
// changes a bit of it; AVX2 and AVX-512 agree (SSE has no fused multiply-add and differs in the last bits).
//
// In bfloat16 both operands are rounded while they are laid out, and a chain adds the exact products of a
// pair of k one after the other (see gemm_bf16.h): everything else stays, and results are float.
#pragma once

#include <string>
#include <string_view>
#include <type_traits>

#include "gloss/base/thread_pool.h"
#include "gloss/kernels/epilogue.h"
#include "gloss/kernels/isa.h"
#include "gloss/kernels/matrix.h"
#include "gloss/kernels/packed_matrix.h"
#include "gloss/kernels/precision.h"

namespace gloss::kernels {

// C [M, N] (+)= op(A) [M, K] op(B) [K, N]. Transpose::yes: the stored matrix is [K, M] (A) or [N, K] (B).
//   forward y = x W^T: tb = yes      dX = dY W: both no      dW = dY^T X: ta = yes
// K = 0 is a sum of zero. C may not overlap A or B. T is float (fast) or double (plain loops, for gradient
// checks). Throws Error if the shapes do not fit.
//
// `precision` float32 takes the numbers as they are, in double too; bfloat16 rounds those of float
// (UsageError where the CPU does not serve it, see precision.h). int8 serves packed weights only, and is an
// Error here.
template <class T>
void gemm(ThreadPool& pool, Matrix<const std::type_identity_t<T>> a, Transpose ta,
          Matrix<const std::type_identity_t<T>> b, Transpose tb, Matrix<T> c,
          Accumulate accumulate = Accumulate::no, const Epilogue<std::type_identity_t<T>>& epilogue = {},
          Precision precision = Precision::float32);

// The same on the calling thread, for callers that run inside a task already.
template <class T>
void gemm_serial(Matrix<const std::type_identity_t<T>> a, Transpose ta,
                 Matrix<const std::type_identity_t<T>> b, Transpose tb, Matrix<T> c,
                 Accumulate accumulate = Accumulate::no,
                 const Epilogue<std::type_identity_t<T>>& epilogue = {},
                 Precision precision = Precision::float32);

// Who computes float products: the measured better one (`automatic`), our Highway kernel, or oneDNN where
// its AVX-512 brgemm serves (elsewhere our kernel steps in). For the whole process; not while products
// run. Packed matrices keep the backend they were packed for.
enum class GemmBackend { automatic, own, onednn };
void set_gemm_backend(GemmBackend backend);
GemmBackend gemm_backend();
GemmBackend parse_gemm_backend(std::string_view name);  // throws UsageError listing the names there are
// For `gloss --version`: "own Highway kernel (avx512)". The other precisions are always ours: "AVX512_BF16".
std::string gemm_description(Precision precision = Precision::float32);

}  // namespace gloss::kernels
