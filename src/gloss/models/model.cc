#include "gloss/models/model.h"

#include <algorithm>

namespace gloss::models {

void Model::initialise(uint64_t seed) {
  constexpr float kNever = -1e9f;  // far below every logit, but a number
  parameters().initialise(seed);
  parameters().each_part([&](const std::string& name, const Tensor<float>& value) {
    if (name == "final_logits_bias" && symbols().pad >= 0) value.data()[symbols().pad] = kNever;
  });
}

std::vector<int32_t> most_attended(const Model& model, autograd::Tape<float>& tape, const Tokens& source,
                                   const Tokens& target) {
  std::vector<int32_t> positions(target.rows.size(), -1);
  if (model.attention_layers(AttentionKind::cross) == 0) return positions;
  AttentionChoice look = model.alignment();
  // Unguided, a step knows the <unk> that it produces better than the next one, which reads it.
  if (!look.head) look.step = AlignmentStep::emitting;
  const auto maps = model.attend(tape, source, target, {{AttentionKind::cross}, look.layer, false});
  for (int64_t s = 0; s < target.offsets.count(); ++s) {
    const int64_t n_q = target.offsets.length(s), n_k = source.offsets.length(s);
    if (n_k == 0) continue;
    const std::vector<float> weights = maps.at(0).weights_of(s, look.head, n_q, n_k);
    for (int64_t i = 0; i < n_q; ++i) {
      const auto row = weights.begin() + std::min(row_of(i, look.step), n_q - 1) * n_k;
      positions[static_cast<size_t>(target.offsets.begin(s) + i)] =
          static_cast<int32_t>(std::max_element(row, row + n_k) - row);
    }
  }
  return positions;
}

}  // namespace gloss::models
