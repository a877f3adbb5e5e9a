#include "gloss/models/transformer_model.h"

#include <algorithm>

#include "gloss/models/transformer_decoder.h"

namespace gloss::models {

std::vector<AttentionMap> TransformerModel::attend(autograd::Tape<float>& tape, const Tokens& source,
                                                   const Tokens& target,
                                                   const AttentionRequest& request) const {
  AttentionRecord<float> record{request, {}};
  const auto memory = transformer_.encode(tape, source, &record);
  transformer_.decode(tape, transformer_.decoder_input(target), memory, &record);
  std::ranges::stable_sort(record.entries, {}, &AttentionRecord<float>::Entry::kind);
  std::vector<AttentionMap> maps;
  for (auto& entry : record.entries) {
    const int64_t heads = attention_heads(entry.kind);
    maps.push_back(map_of(std::move(entry), heads, "output"));
  }
  return maps;
}

std::unique_ptr<DecoderState> TransformerModel::decoder_state(Context& context, Caching caching) const {
  if (caching == Caching::off)
    return std::make_unique<UncachedTransformerDecoder>(transformer_, context, never_produced(symbols()));
  return std::make_unique<TransformerDecoder>(transformer_, context);
}

CacheCost TransformerModel::cache_cost() const {
  const TransformerConfig& c = transformer_.config();
  const auto row = static_cast<int64_t>(2 * c.d_model * static_cast<int64_t>(sizeof(float)));
  return {c.decoder.layers, c.decoder.layers * row, c.decoder.layers * row};
}

}  // namespace gloss::models
