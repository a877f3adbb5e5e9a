// The Transformer behind the common interface of models.
#pragma once

#include <algorithm>
#include <memory>

#include "gloss/models/model.h"
#include "gloss/models/transformer.h"

namespace gloss::models {

class TransformerModel final : public Model {
 public:
  TransformerModel(const TransformerConfig& config, Arena& arena,
                   autograd::Holding holding = autograd::Holding::numbers)
      : transformer_(config, arena, holding) {}

  const Transformer<float>& transformer() const { return transformer_; }

  std::string type() const override { return model_type(transformer_.config()); }
  const Symbols& symbols() const override { return transformer_.config().symbols; }
  int64_t source_vocabulary() const override { return transformer_.config().source_vocabulary; }
  int64_t target_vocabulary() const override { return transformer_.config().target_vocabulary; }
  nlohmann::ordered_json config_json() const override { return to_json(transformer_.config()); }
  autograd::ParameterSet<float>& parameters() override { return transformer_.parameters(); }
  const autograd::ParameterSet<float>& parameters() const override { return transformer_.parameters(); }
  TrainingLoss<float> loss(autograd::Tape<float>& tape, const Tokens& source, const Tokens& target,
                           const Objective& objective) const override {
    return transformer_.loss(tape, source, target, objective);
  }
  std::vector<float> log_probabilities(autograd::Tape<float>& tape, const Tokens& source,
                                       const Tokens& target) const override {
    return transformer_.log_probabilities(tape, source, target);
  }
  std::vector<AttentionMap> attend(autograd::Tape<float>& tape, const Tokens& source, const Tokens& target,
                                   const AttentionRequest& request) const override;
  int64_t attention_layers(AttentionKind kind) const override {
    const TransformerConfig& config = transformer_.config();
    return kind == AttentionKind::encoder ? config.encoder.layers : config.decoder.layers;
  }
  int64_t attention_heads(AttentionKind kind) const override {
    const TransformerConfig& config = transformer_.config();
    return kind == AttentionKind::encoder ? config.encoder.heads : config.decoder.heads;
  }
  AttentionChoice alignment() const override {
    const auto& guided = transformer_.config().guided;
    return {alignment_layer(transformer_.config()), guided ? std::optional(guided->head) : std::nullopt,
            Transformer<float>::kAlignmentStep};
  }
  void require_cache(CachePrecision) const override {}
  int64_t cap() const override { return transformer_.config().cap; }
  bool forced_end() const override { return transformer_.config().forced_end; }

 private:
  std::unique_ptr<DecoderState> make_decoder_state(Context& context, Caching caching,
                                                   CachePrecision precision) const override;
  CacheCost cost_of_cache(CachePrecision precision) const override;

  Transformer<float> transformer_;
};

}  // namespace gloss::models
