// The Transformer (Vaswani et al. 2017): N encoder and N decoder layers over ragged batches.
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "gloss/attention/multi_head.h"
#include "gloss/attention/relative_bias.h"
#include "gloss/autograd/tape.h"
#include "gloss/models/attention_record.h"
#include "gloss/models/config.h"
#include "gloss/models/objective.h"
#include "gloss/nn/loss.h"
#include "gloss/tensor/ragged.h"

namespace gloss::models {

template <class T>
class Transformer {
 public:
  // Declares and allocates the parameters (zeros; initialise or load them).
  Transformer(const TransformerConfig& config, Arena& arena,
              autograd::Holding holding = autograd::Holding::numbers);
  Transformer(const Transformer&) = delete;
  Transformer& operator=(const Transformer&) = delete;

  using Rows = Ragged<autograd::Var<T>>;
  // Words are aligned, and learned to be, where a target token is read.
  static constexpr AlignmentStep kAlignmentStep = AlignmentStep::reading;

  const TransformerConfig& config() const { return config_; }
  autograd::ParameterSet<T>& parameters() { return parameters_; }
  const autograd::ParameterSet<T>& parameters() const { return parameters_; }

  // Source ids (each sequence with its end symbol) -> memory [tokens, d_model].
  Rows encode(autograd::Tape<T>& tape, const Tokens& source, AttentionRecord<T>* record = nullptr) const;
  // Decoder input (start symbol first) -> states [tokens, d_model]; causal, so row t depends on inputs up to
  // t.
  Rows decode(autograd::Tape<T>& tape, const Tokens& input, const Rows& memory,
              AttentionRecord<T>* record = nullptr) const;
  // states [n, d_model] -> logits [n, V].
  autograd::Var<T> logits(autograd::Tape<T>& tape, const autograd::Var<T>& states) const;
  // What makes logits of them: [V, width of the states] and [V].
  const autograd::Parameter<T>& output_weight() const { return *output_; }
  const autograd::Parameter<T>& output_bias() const { return *output_bias_; }

  // Label-smoothed cross-entropy of targets (with end symbols), teacher-forced; see
  // nn::projection_cross_entropy.
  TrainingLoss<T> loss(autograd::Tape<T>& tape, const Tokens& source, const Tokens& target,
                       const Objective& objective) const;
  // log P(y_t | y_<t, x) of every target token.
  std::vector<T> log_probabilities(autograd::Tape<T>& tape, const Tokens& source, const Tokens& target) const;
  // start symbol + target without its last token, sequence by sequence.
  Tokens decoder_input(const Tokens& target) const;

  // Translating: keys and values of every decoder layer over `memory`, sentence i into slots[i] of the cache.
  template <class Stored>
  void remember(autograd::Tape<T>& tape, const Rows& memory, std::span<const int> slots,
                attention::KvCache<Stored>& cache) const;
  // One token a hypothesis, at the positions of the cache's step -> states [ids, d_model].
  template <class Stored>
  autograd::Var<T> step(autograd::Tape<T>& tape, std::span<const int32_t> ids,
                        attention::KvCache<Stored>& cache) const;
  // The states of `decode` to the bits of `step`: keys and values are rounded as a cache of `Stored` would.
  template <class Stored>
  Rows decode_rounded(autograd::Tape<T>& tape, const Tokens& input, const Rows& memory) const;
  attention::KvWidths cache_widths() const;

 private:
  struct Norm {
    const autograd::Parameter<T>*gamma, *beta;
  };
  struct FeedForward {
    const autograd::Parameter<T>*W_1, *b_1, *W_2, *b_2;
  };
  struct EncoderLayer {
    attention::MultiHeadAttention<T> self;
    Norm self_norm;
    FeedForward feed_forward;
    Norm final_norm;
  };
  struct DecoderLayer {
    attention::MultiHeadAttention<T> self;
    Norm self_norm;
    attention::MultiHeadAttention<T> cross;
    Norm cross_norm;
    FeedForward feed_forward;
    Norm final_norm;
  };

  Norm declare_norm(const std::string& prefix);
  FeedForward declare_feed_forward(const std::string& prefix, int64_t d_ff);
  autograd::Var<T> embed(autograd::Tape<T>& tape, const autograd::Parameter<T>& table,
                         std::span<const int32_t> ids, std::vector<int64_t> positions) const;
  autograd::Var<T> normalise(autograd::Tape<T>& tape, const autograd::Var<T>& x, const Norm& norm) const;
  template <class F>
  autograd::Var<T> sublayer(autograd::Tape<T>& tape, const autograd::Var<T>& x, const Norm& norm,
                            F run) const;
  autograd::Var<T> feed_forward(autograd::Tape<T>& tape, const autograd::Var<T>& x,
                                const FeedForward& ff) const;
  template <class Self, class Cross>
  autograd::Var<T> decoder_layer(autograd::Tape<T>& tape, const DecoderLayer& layer, autograd::Var<T> x,
                                 Self self, Cross cross) const;

  TransformerConfig config_;
  autograd::ParameterSet<T> parameters_;
  autograd::Parameter<T>*source_table_ = nullptr, *target_table_ = nullptr, *output_ = nullptr;
  autograd::Parameter<T>* output_bias_ = nullptr;
  std::deque<EncoderLayer> encoder_;
  std::deque<DecoderLayer> decoder_;
  Norm encoder_norm_{}, decoder_norm_{};  // pre-norm only
  Tensor<T> positions_;  // sinusoids: the first ones, which nearly all tokens have, [kPositions, d]
  std::optional<attention::RelativeBias<T>> encoder_bias_, decoder_bias_;  // relative positions only
};

}  // namespace gloss::models
