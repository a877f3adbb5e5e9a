#include "gloss/models/limited_output.h"

#include "gloss/kernels/matrix.h"

namespace gloss::models {

bool LimitedOutput::limit(ThreadPool& pool, const OutputLayer& layer, std::span<const int32_t> tokens) {
  weights_ = {};
  bias_.clear();
  if (!layer.weights->packed || layer.weights->split > 0) return false;
  if (tokens.empty()) return true;
  weights_ = kernels::gather_rows(pool, layer.weights->packed, tokens);
  bias_.reserve(tokens.size());
  for (const int32_t token : tokens) bias_.push_back(layer.bias->value.data()[token]);
  return true;
}

void LimitedOutput::logits_in_parts(ThreadPool& pool, const Tensor<float>& states, kernels::ColumnParts parts,
                                    const kernels::SeePart& see) const {
  kernels::gemm_packed_parts(pool, kernels::matrix(states), weights_, bias_.data(), parts, see);
}

}  // namespace gloss::models
