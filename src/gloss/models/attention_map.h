// What attention did in one pass over sentence pairs: asked for here, answered by every model.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gloss/tensor/tensor.h"

namespace gloss::models {

enum class AttentionKind {
  cross,    // target tokens look at source tokens
  encoder,  // source tokens look at each other
  decoder,  // target tokens look at those before them and at themselves
};

// Which row of cross-attention speaks for a target token: that of the step that produced it, or that of the
// next one, which reads it (Chen et al. 2020, "Shift-Att").
enum class AlignmentStep { emitting, reading };
// That row, among those of the token's sentence. No step reads the last token: its row is past the end.
inline int64_t row_of(int64_t token, AlignmentStep step) {
  return token + (step == AlignmentStep::reading ? 1 : 0);
}

// Where in cross-attention to look for what a target token goes back to.
struct AttentionChoice {
  int64_t layer = 0;
  std::optional<int64_t> head;  // none: the mean of all heads
  AlignmentStep step = AlignmentStep::emitting;
};

struct AttentionRequest {
  std::vector<AttentionKind> kinds;  // none: nothing is recorded
  std::optional<int64_t> layer;      // of each kind; none: all
  bool tensors = false;              // the matrices in between as well

  bool wants(AttentionKind kind, int64_t of_layer) const {
    for (const AttentionKind wanted : kinds) {
      if (wanted == kind) return !layer || *layer == of_layer;
    }
    return false;
  }
};

// One layer of one kind, for all sentence pairs of the pass: n_q queries look at n_k keys. The rows of
// cross-attention and of the decoder are its input tokens: row t is computed where token t - 1 of the target
// (the start symbol for t = 0) is read and token t is predicted.
struct AttentionMap {
  AttentionKind kind = AttentionKind::cross;
  int64_t layer = 0, heads = 1;
  Tensor<float> scores, weights;  // sentence after sentence, [heads, n_q, n_k] each; hidden scores: -infinity
  std::vector<int64_t> offsets;   // where each sentence begins in them, and the end
  // The matrices in between by their names in the papers, rows of all sentences under each other: of
  // multi-head attention q, k, v [tokens, heads * d], concat [tokens, heads * d_v] and output [tokens,
  // d_model].
  std::vector<std::pair<std::string, Tensor<float>>> tensors;

  // The weights of one head in one sentence, or the mean of all heads: [n_q, n_k].
  std::vector<float> weights_of(int64_t sentence, std::optional<int64_t> of_head, int64_t n_q,
                                int64_t n_k) const {
    const float* from = weights.data() + offsets[static_cast<size_t>(sentence)];
    if (of_head) return {from + *of_head * n_q * n_k, from + (*of_head + 1) * n_q * n_k};
    std::vector<float> mean(static_cast<size_t>(n_q * n_k), 0.0F);
    for (int64_t head = 0; head < heads; ++head) {
      for (size_t i = 0; i < mean.size(); ++i) mean[i] += *from++;
    }
    for (float& weight : mean) weight /= static_cast<float>(heads);
    return mean;
  }
};

}  // namespace gloss::models
