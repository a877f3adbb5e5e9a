// What training, translating and inspecting need of a model, whatever its architecture.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "gloss/autograd/tape.h"
#include "gloss/models/attention_map.h"
#include "gloss/models/cache_memory.h"
#include "gloss/models/config.h"
#include "gloss/models/decoder_state.h"
#include "gloss/models/objective.h"
#include "gloss/tensor/context.h"
#include "gloss/tensor/ragged.h"

namespace gloss::models {

// Whether a decoder remembers keys and values, or computes every prefix again (to compare).
enum class Caching : bool { off, on };

class Model {
 public:
  virtual ~Model() = default;

  virtual std::string type() const = 0;  // as in config.json
  virtual const Symbols& symbols() const = 0;
  virtual int64_t source_vocabulary() const = 0;
  virtual int64_t target_vocabulary() const = 0;
  virtual nlohmann::ordered_json config_json() const = 0;
  // For models that are trained here: random numbers by seed, and a <pad> that no softmax of any program can
  // produce.
  void initialise(uint64_t seed);
  virtual autograd::ParameterSet<float>& parameters() = 0;
  virtual const autograd::ParameterSet<float>& parameters() const = 0;

  // The label-smoothed loss of targets, teacher-forced (nn::projection_cross_entropy), with that of a guided
  // head where the objective has one.
  virtual TrainingLoss<float> loss(autograd::Tape<float>& tape, const Tokens& source, const Tokens& target,
                                   const Objective& objective) const = 0;
  // log P(y_t | y_<t, x) of every target token.
  virtual std::vector<float> log_probabilities(autograd::Tape<float>& tape, const Tokens& source,
                                               const Tokens& target) const = 0;
  // What attention did where the target is given (teacher-forced): layers of a kind from the first on, in the
  // order cross, encoder, decoder. A model has the kinds that attention_layers counts.
  virtual std::vector<AttentionMap> attend(autograd::Tape<float>& tape, const Tokens& source,
                                           const Tokens& target, const AttentionRequest& request) const = 0;
  virtual int64_t attention_layers(AttentionKind kind) const = 0;
  virtual int64_t attention_heads(AttentionKind kind) const = 0;  // of a layer
  // Where cross-attention aligns words best; the head that was guided to, if one was.
  virtual AttentionChoice alignment() const = 0;
  // A state to search with. The context and the model outlive it; one thread of control uses both. Without a
  // cache numbers are rounded where it would round them. UsageError as `require_cache`.
  std::unique_ptr<DecoderState> decoder_state(Context& context, Caching caching,
                                              CachePrecision precision = CachePrecision::float32) const {
    require_cache(precision);
    return make_decoder_state(context, caching, precision);
  }
  CacheCost cache_cost(CachePrecision precision = CachePrecision::float32) const {
    require_cache(precision);
    return cost_of_cache(precision);
  }
  // Throws UsageError where what the model remembers is not kept in these numbers.
  virtual void require_cache(CachePrecision precision) const = 0;
  // The longest translation in tokens that its own files ask for, and whether one that reaches it gets the
  // end symbol at no cost.
  virtual int64_t cap() const = 0;
  virtual bool forced_end() const = 0;

 private:
  virtual std::unique_ptr<DecoderState> make_decoder_state(Context& context, Caching caching,
                                                           CachePrecision precision) const = 0;
  virtual CacheCost cost_of_cache(CachePrecision precision) const = 0;
};

// For each target token the source position (within its sequence) that it goes back to: what the alignment
// layer looked at most, the mean of its heads where the token was predicted, or a guided head where it was
// guided to; -1 where there is nothing to look at.
std::vector<int32_t> most_attended(const Model& model, autograd::Tape<float>& tape, const Tokens& source,
                                   const Tokens& target);

}  // namespace gloss::models
