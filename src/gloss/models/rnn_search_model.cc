#include "gloss/models/rnn_search_model.h"

#include "gloss/models/rnn_search_decoder.h"
#include "gloss/models/teacher_forcing.h"

namespace gloss::models {

std::vector<AttentionMap> RnnSearchModel::attend(autograd::Tape<float>& tape, const Tokens& source,
                                                 const Tokens& target,
                                                 const AttentionRequest& request) const {
  AttentionRecord<float> record{request, {}};
  network_.decode(tape, decoder_input(target, symbols().start), network_.encode(tape, source), &record);
  std::vector<AttentionMap> maps;
  for (auto& entry : record.entries) maps.push_back(map_of(std::move(entry), 1, "context"));
  return maps;
}

void RnnSearchModel::require_cache(CachePrecision precision) const {
  if (precision != CachePrecision::float32)
    throw UsageError(
        "a recurrent model has no cache of keys and values to round: leave out --cache-precision");
}

std::unique_ptr<DecoderState> RnnSearchModel::make_decoder_state(Context& context, Caching caching,
                                                                 CachePrecision) const {
  if (caching == Caching::on) return std::make_unique<RnnSearchDecoder>(network_, context);
  return std::make_unique<UncachedRnnSearchDecoder>(network_, context, never_produced(symbols()));
}

// It remembers nothing of target tokens but the state, and of a source token its annotation and U_a h_j.
CacheCost RnnSearchModel::cost_of_cache(CachePrecision) const {
  const RnnSearchConfig& c = network_.config();
  return {1, 0, (c.attention + 2 * c.hidden) * static_cast<int64_t>(sizeof(float))};
}

}  // namespace gloss::models
