// A Transformer being searched: with the key/value cache, and without it for comparison.
#pragma once

#include <vector>

#include "gloss/attention/kv_cache.h"
#include "gloss/models/decoder_state.h"
#include "gloss/models/limited_output.h"
#include "gloss/models/transformer.h"
#include "gloss/models/uncached_decoder.h"
#include "gloss/tensor/context.h"

namespace gloss::models {

// Keys and values of the source are made once a sentence, those of a target token once a hypothesis; they are
// kept as `Stored`, float or kernels::Bfloat16.
template <class Stored>
class TransformerDecoder final : public DecoderState {
 public:
  TransformerDecoder(const Transformer<float>& transformer, Context& context);

  int64_t vocabulary_size() const override { return transformer_.config().target_vocabulary; }
  int32_t start_token() const override { return transformer_.config().symbols.start; }
  int32_t end_token() const override { return transformer_.config().symbols.end; }
  std::span<const int32_t> forbidden_tokens() const override { return forbidden_; }
  void add(std::span<const int> slots, const Tokens& sources) override;
  void remove(int slot) override { cache_.close(slot); }
  Tensor<float> advance(std::span<const Step> steps) override;
  Tensor<float> logits(const Tensor<float>& states) override;
  void logits_in_parts(const Tensor<float>& states, kernels::ColumnParts parts,
                       const kernels::SeePart& see) override;
  bool limit_output(std::span<const int32_t> tokens) override {
    return limited_.limit(context_.pool, {&transformer_.output_weight(), &transformer_.output_bias()},
                          tokens);
  }
  int64_t key_value_rows() const override { return cache_.rows_projected(); }
  int64_t key_value_rows_of(int slot) const override { return rows_of_.at(static_cast<size_t>(slot)); }
  attention::KvCacheSize cache_size() const { return cache_.size(); }

 private:
  const Transformer<float>& transformer_;
  Context& context_;
  attention::KvCache<Stored> cache_;
  std::vector<int32_t> forbidden_;
  LimitedOutput limited_;
  std::vector<attention::KvExtension> extensions_;  // of one advance; kept for their memory
  std::vector<int32_t> ids_;
  std::vector<int64_t> rows_of_;  // projected, by slot
};

using UncachedTransformerDecoder = UncachedDecoder<Transformer<float>, MemoryRows>;

// Rounds where TransformerDecoder<kernels::Bfloat16> rounds, and says the same to the bit.
class UncachedRoundedTransformerDecoder final : public UncachedTransformerDecoder {
 public:
  UncachedRoundedTransformerDecoder(const Transformer<float>& transformer, Context& context)
      : UncachedTransformerDecoder(transformer, context, never_produced(transformer.config().symbols)) {}

 private:
  MemoryRows decode(autograd::Tape<float>& tape, const Tokens& input,
                    const MemoryRows& memory) const override {
    return network().decode_rounded<kernels::Bfloat16>(tape, input, memory);
  }
};

}  // namespace gloss::models
