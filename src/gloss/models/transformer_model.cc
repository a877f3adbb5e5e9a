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

std::unique_ptr<DecoderState> TransformerModel::make_decoder_state(Context& context, Caching caching,
                                                                   CachePrecision precision) const {
  const bool rounded = precision == CachePrecision::bfloat16;
  if (caching == Caching::off) {
    if (rounded) return std::make_unique<UncachedRoundedTransformerDecoder>(transformer_, context);
    return std::make_unique<UncachedTransformerDecoder>(transformer_, context, never_produced(symbols()));
  }
  if (rounded) return std::make_unique<TransformerDecoder<kernels::Bfloat16>>(transformer_, context);
  return std::make_unique<TransformerDecoder<float>>(transformer_, context);
}

CacheCost TransformerModel::cost_of_cache(CachePrecision precision) const {
  const TransformerConfig& c = transformer_.config();
  const size_t element = precision == CachePrecision::bfloat16 ? sizeof(kernels::Bfloat16) : sizeof(float);
  const int64_t bytes = c.decoder.layers * 2 * c.d_model * static_cast<int64_t>(element);
  return {c.decoder.layers, bytes, bytes};
}

}  // namespace gloss::models
