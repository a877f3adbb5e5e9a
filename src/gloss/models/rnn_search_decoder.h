// RNNsearch being searched: annotations and U_a h_j are made once a sentence, a hypothesis is one state.
#pragma once

#include <vector>

#include "gloss/models/decoder_state.h"
#include "gloss/models/limited_output.h"
#include "gloss/models/rnn_search.h"
#include "gloss/models/uncached_decoder.h"
#include "gloss/tensor/context.h"

namespace gloss::models {

class RnnSearchDecoder final : public DecoderState {
 public:
  RnnSearchDecoder(const RnnSearch<float>& network, Context& context);

  int64_t vocabulary_size() const override { return network_.config().target_vocabulary; }
  int32_t start_token() const override { return network_.config().symbols.start; }
  int32_t end_token() const override { return network_.config().symbols.end; }
  std::span<const int32_t> forbidden_tokens() const override { return forbidden_; }
  void add(std::span<const int> slots, const Tokens& sources) override;
  void remove(int slot) override { sentences_.at(static_cast<size_t>(slot)) = {}; }
  Tensor<float> advance(std::span<const Step> steps) override;
  Tensor<float> logits(const Tensor<float>& states) override;
  void logits_in_parts(const Tensor<float>& states, kernels::ColumnParts parts,
                       const kernels::SeePart& see) override;
  bool limit_output(std::span<const int32_t> tokens) override {
    return limited_.limit(context_.pool, {&network_.output_weight(), &network_.output_bias()}, tokens);
  }

 private:
  struct Sentence {
    Tensor<float> keys, h;  // [source tokens, d_a], [source tokens, 2 hidden]
    Tensor<float> s;        // [hypotheses, hidden], of the last advance; s_0 before the first
  };
  const RnnSearch<float>& network_;
  Context& context_;
  std::vector<int32_t> forbidden_;
  LimitedOutput limited_;
  std::vector<Sentence> sentences_;  // by slot
  std::vector<int32_t> ids_;         // of one advance; kept for their memory
  std::vector<attention::RowsOfSource<float>> sources_;
};

RnnSearch<float>::Memory one_sentence(const RnnSearch<float>::Memory& memory, int64_t i);
RnnSearch<float>::Memory all_sentences(autograd::Tape<float>& tape,
                                       std::span<const RnnSearch<float>::Memory* const> memories);
using UncachedRnnSearchDecoder = UncachedDecoder<RnnSearch<float>, RnnSearch<float>::Memory>;

}  // namespace gloss::models
