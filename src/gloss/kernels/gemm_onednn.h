// The other backend of the matrix product: oneDNN's brgemm, where AVX-512 is there. The only file of Gloss
// that includes oneDNN is gemm_onednn.cc.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "gloss/kernels/gemm_task.h"

namespace gloss::kernels {

// Weights in the layout oneDNN prefers for y = x W^T.
struct OnednnWeights;
struct OnednnWeightsDelete {
  void operator()(const OnednnWeights* weights) const;
};
using OnednnWeightsPointer = std::unique_ptr<const OnednnWeights, OnednnWeightsDelete>;
OnednnWeightsPointer pack_for_onednn(Matrix<const float> weights);  // null if brgemm does not serve them
size_t bytes_of(const OnednnWeights& weights);

// Whether brgemm computes this product: AVX-512, nothing empty, dense B (or packed weights).
bool onednn_serves(const Product& product, const OnednnWeights* weights);

// sums [rows, N] (dense, 64-byte aligned) = rows [row, row + rows) of op(A) op(B), before any epilogue, for
// at most kOnednnRows rows, on the calling thread alone. B comes from `weights` if not null.
inline constexpr int64_t kOnednnRows = 256;
void onednn_rows(const Product& product, const OnednnWeights* weights, int64_t row, int64_t rows,
                 float* sums);
// Rows of `sums` that onednn_rows writes for `rows`: up to 15 more.
int64_t onednn_bucket(int64_t rows);

std::string onednn_version();  // "2.6.3"

}  // namespace gloss::kernels
