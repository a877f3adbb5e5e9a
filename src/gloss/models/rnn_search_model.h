// RNNsearch behind the common interface of models.
#pragma once

#include <memory>

#include "gloss/models/model.h"
#include "gloss/models/rnn_search.h"

namespace gloss::models {

class RnnSearchModel final : public Model {
 public:
  RnnSearchModel(const RnnSearchConfig& config, Arena& arena,
                 autograd::Holding holding = autograd::Holding::numbers)
      : network_(config, arena, holding) {}

  const RnnSearch<float>& network() const { return network_; }

  std::string type() const override { return kRnnSearchType; }
  const Symbols& symbols() const override { return network_.config().symbols; }
  int64_t source_vocabulary() const override { return network_.config().source_vocabulary; }
  int64_t target_vocabulary() const override { return network_.config().target_vocabulary; }
  nlohmann::ordered_json config_json() const override { return to_json(network_.config()); }
  autograd::ParameterSet<float>& parameters() override { return network_.parameters(); }
  const autograd::ParameterSet<float>& parameters() const override { return network_.parameters(); }
  TrainingLoss<float> loss(autograd::Tape<float>& tape, const Tokens& source, const Tokens& target,
                           const Objective& objective) const override {
    return network_.loss(tape, source, target, objective);
  }
  std::vector<float> log_probabilities(autograd::Tape<float>& tape, const Tokens& source,
                                       const Tokens& target) const override {
    return network_.log_probabilities(tape, source, target);
  }
  std::vector<AttentionMap> attend(autograd::Tape<float>& tape, const Tokens& source, const Tokens& target,
                                   const AttentionRequest& request) const override;
  int64_t attention_layers(AttentionKind kind) const override { return kind == AttentionKind::cross ? 1 : 0; }
  int64_t attention_heads(AttentionKind) const override { return 1; }
  AttentionChoice alignment() const override { return {0, {}, RnnSearch<float>::kAlignmentStep}; }
  void require_cache(CachePrecision precision) const override;
  int64_t cap() const override { return network_.config().cap; }
  bool forced_end() const override { return network_.config().forced_end; }

 private:
  std::unique_ptr<DecoderState> make_decoder_state(Context& context, Caching caching,
                                                   CachePrecision precision) const override;
  CacheCost cost_of_cache(CachePrecision precision) const override;

  RnnSearch<float> network_;
};

}  // namespace gloss::models
