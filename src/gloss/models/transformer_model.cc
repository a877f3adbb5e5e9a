#include "gloss/models/transformer_model.h"

#include <algorithm>

#include "gloss/models/transformer_decoder.h"

namespace gloss::models {

namespace {
// Far below every logit, but a number: the softmax of any program then gives it probability 0.
constexpr float kNever = -1e9f;
}  // namespace

void TransformerModel::initialise(uint64_t seed) {
  transformer_.parameters().initialise(seed);
  transformer_.parameters().each_part([&](const std::string& name, const Tensor<float>& value) {
    if (name == "final_logits_bias" && symbols().pad >= 0) value.data()[symbols().pad] = kNever;
  });
}

// The heads' mean of the last layer but one, which aligns best (Garg et al. 2019, section 4.1); of the last
// in a model of one layer.
std::vector<int32_t> TransformerModel::align(autograd::Tape<float>& tape, const Tokens& source,
                                             const Tokens& target) const {
  std::vector<int32_t> aligned(target.rows.size(), -1);
  AttentionRecord<float> record;
  record.cross = true;
  transformer_.decode(tape, transformer_.decoder_input(target), transformer_.encode(tape, source), &record);
  if (record.cross_attention.empty()) return aligned;
  const auto& layer =
      record.cross_attention[record.cross_attention.size() >= 2 ? record.cross_attention.size() - 2 : 0];
  const int64_t heads = transformer_.config().decoder.heads;
  for (int64_t s = 0; s < target.offsets.count(); ++s) {
    const int64_t n_q = target.offsets.length(s), n_k = source.offsets.length(s);
    const float* weights = layer.weights.value().data() + layer.offsets[static_cast<size_t>(s)];
    for (int64_t i = 0; i < n_q; ++i) {
      float best = -1;
      for (int64_t j = 0; j < n_k; ++j) {
        float total = 0;
        for (int64_t h = 0; h < heads; ++h) total += weights[(h * n_q + i) * n_k + j];
        if (total > best) {
          best = total;
          aligned[static_cast<size_t>(target.offsets.begin(s) + i)] = static_cast<int32_t>(j);
        }
      }
    }
  }
  return aligned;
}

std::unique_ptr<DecoderState> TransformerModel::decoder_state(Context& context, Caching caching) const {
  if (caching == Caching::off) return std::make_unique<UncachedTransformerDecoder>(transformer_, context);
  return std::make_unique<TransformerDecoder>(transformer_, context);
}

CacheCost TransformerModel::cache_cost() const {
  const TransformerConfig& c = transformer_.config();
  const auto row = static_cast<int64_t>(2 * c.d_model * static_cast<int64_t>(sizeof(float)));
  return {c.decoder.layers, c.decoder.layers * row, c.decoder.layers * row};
}

}  // namespace gloss::models
