// The output layer of a model cut down to some tokens.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "gloss/autograd/parameter.h"
#include "gloss/base/thread_pool.h"
#include "gloss/kernels/packed_matrix.h"
#include "gloss/tensor/tensor.h"

namespace gloss::models {

// Where a model's logits x W^T + b come from: W [V, d], b [V].
struct OutputLayer {
  const autograd::Parameter<float>*weights, *bias;
};

// What DecoderState::limit_output needs: rows of W and of b, copied, so that the products are as small as the
// tokens are few and their bits those of the whole layer.
class LimitedOutput {
 public:
  // Takes the rows of some tokens, or with none lets go of them. False where the weights are not packed: a
  // model that is also trained; nothing is limited then.
  bool limit(ThreadPool& pool, const OutputLayer& layer, std::span<const int32_t> tokens);
  explicit operator bool() const { return static_cast<bool>(weights_); }
  // As kernels::gemm_packed_parts; column i is that of tokens[i].
  void logits_in_parts(ThreadPool& pool, const Tensor<float>& states, kernels::ColumnParts parts,
                       const kernels::SeePart& see) const;

 private:
  kernels::PackedMatrix weights_;
  std::vector<float> bias_;
};

}  // namespace gloss::models
