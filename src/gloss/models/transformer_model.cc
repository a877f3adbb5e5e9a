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

std::vector<AttentionMap> TransformerModel::attend(autograd::Tape<float>& tape, const Tokens& source,
                                                   const Tokens& target,
                                                   const AttentionRequest& request) const {
  AttentionRecord<float> record{request, {}};
  const auto memory = transformer_.encode(tape, source, &record);
  transformer_.decode(tape, transformer_.decoder_input(target), memory, &record);
  std::ranges::stable_sort(record.entries, {}, &AttentionRecord<float>::Entry::kind);
  std::vector<AttentionMap> maps;
  for (auto& entry : record.entries) {
    AttentionMap map;
    map.kind = entry.kind;
    map.layer = entry.layer;
    map.heads = entry.kind == AttentionKind::encoder ? transformer_.config().encoder.heads
                                                     : transformer_.config().decoder.heads;
    map.scores = entry.attended.scores;
    map.weights = entry.attended.weights.value();
    map.offsets = std::move(entry.attended.offsets);
    map.tensors = std::move(entry.attended.tensors);
    if (request.tensors) map.tensors.emplace_back("output", entry.attended.output.value());
    maps.push_back(std::move(map));
  }
  return maps;
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
