// RNNsearch (Bahdanau, Cho and Bengio 2015): a bidirectional GRU encoder, and a GRU decoder that looks at its
// states by additive attention.
#pragma once

#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "gloss/attention/additive.h"
#include "gloss/autograd/tape.h"
#include "gloss/models/attention_record.h"
#include "gloss/models/objective.h"
#include "gloss/models/rnn_search_config.h"
#include "gloss/nn/gru.h"
#include "gloss/nn/loss.h"
#include "gloss/tensor/ragged.h"

namespace gloss::models {

template <class T>
class RnnSearch {
 public:
  // Declares and allocates the parameters (zeros; initialise or load them).
  RnnSearch(const RnnSearchConfig& config, Arena& arena,
            autograd::Holding holding = autograd::Holding::numbers);
  RnnSearch(const RnnSearch&) = delete;
  RnnSearch& operator=(const RnnSearch&) = delete;

  using Rows = Ragged<autograd::Var<T>>;
  // Words are aligned, and learned to be, where a target token is predicted.
  static constexpr AlignmentStep kAlignmentStep = AlignmentStep::emitting;
  // What the decoder knows of the sources.
  struct Memory {
    Rows h;                 // annotations [tokens, 2 hidden]: forward states beside backward ones
    autograd::Var<T> keys;  // U_a h_j [tokens, d_a], made once a sentence
    autograd::Var<T> s_0;   // [sequences, hidden]: tanh(W_s h<-_1 + b_s), from the backward state
  };

  const RnnSearchConfig& config() const { return config_; }
  autograd::ParameterSet<T>& parameters() { return parameters_; }
  const autograd::ParameterSet<T>& parameters() const { return parameters_; }

  // Source ids (each sequence with its end symbol).
  Memory encode(autograd::Tape<T>& tape, const Tokens& source) const;
  // Decoder input (start symbol first) -> deep output [tokens, maxout]; row t depends on inputs up to t. Time
  // step by time step, with the sequences that have not ended.
  Rows decode(autograd::Tape<T>& tape, const Tokens& input, const Memory& memory,
              AttentionRecord<T>* record = nullptr) const;
  // Deep output [n, maxout] -> logits [n, V].
  autograd::Var<T> logits(autograd::Tape<T>& tape, const autograd::Var<T>& output) const;
  // What makes logits of them: [V, width of the states] and [V].
  const autograd::Parameter<T>& output_weight() const { return *output_; }
  const autograd::Parameter<T>& output_bias() const { return *output_bias_; }

  // As Transformer's.
  TrainingLoss<T> loss(autograd::Tape<T>& tape, const Tokens& source, const Tokens& target,
                       const Objective& objective) const;
  std::vector<T> log_probabilities(autograd::Tape<T>& tape, const Tokens& source, const Tokens& target) const;

  // Translating: one token a hypothesis. ids [m] after states s_prev [m, hidden], each over its source, which
  // hypotheses share. The bits are those of decode.
  struct Stepped {
    autograd::Var<T> s, output;  // [m, hidden], [m, maxout]
  };
  Stepped step(autograd::Tape<T>& tape, std::span<const int32_t> ids, const autograd::Var<T>& s_prev,
               std::span<const attention::RowsOfSource<T>> sources) const;

 private:
  // The GRUs' recurrent weights as one pass uses them.
  struct Weights {
    nn::GruWeights<T> first, second;
  };
  Weights weights(autograd::Tape<T>& tape) const;
  // One transition of m rows. y [m, embedding] are embeddings of the tokens read; `gates` are those that
  // the first GRU makes of them (conditional; else empty).
  struct Transited {
    autograd::Var<T> s, query, context;  // s_i; what looked (s'_i or s_{i-1}); c_i
  };
  template <class Attend>
  Transited transit(autograd::Tape<T>& tape, const Weights& weights, const autograd::Var<T>& y,
                    const autograd::Var<T>& gates, const autograd::Var<T>& s_prev, Attend attend) const;
  // Bahdanau et al., A.2.2: maxout(U_o s + V_o y + C_o c + b). s is s_i, with a single transition s_{i-1}.
  autograd::Var<T> deep_output(autograd::Tape<T>& tape, const autograd::Var<T>& s, const autograd::Var<T>& y,
                               const autograd::Var<T>& c) const;
  bool conditional() const { return config_.transition == Transition::conditional; }

  RnnSearchConfig config_;
  autograd::ParameterSet<T> parameters_;
  autograd::Parameter<T>*source_table_ = nullptr, *target_table_ = nullptr, *output_ = nullptr;
  autograd::Parameter<T>* output_bias_ = nullptr;
  std::optional<nn::Gru<T>> encoder_forward_, encoder_backward_, decoder_first_, decoder_second_;
  autograd::Parameter<T>*W_s_ = nullptr, *b_s_ = nullptr;
  std::optional<attention::AdditiveAttention<T>> attention_;
  autograd::Parameter<T>*readout_ = nullptr, *readout_bias_ = nullptr;  // [2 maxout, s, y, c side by side]
};

}  // namespace gloss::models
