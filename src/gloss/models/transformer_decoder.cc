#include "gloss/models/transformer_decoder.h"

#include <algorithm>

#include "gloss/nn/linear.h"

namespace gloss::models {

using autograd::Tape;
using autograd::Var;

template <class Stored>
TransformerDecoder<Stored>::TransformerDecoder(const Transformer<float>& transformer, Context& context)
    : transformer_(transformer),
      context_(context),
      cache_(context.arena, transformer.config().decoder.layers, transformer.cache_widths(),
             transformer.cache_widths()),
      forbidden_(never_produced(transformer.config().symbols)) {}

template <class Stored>
void TransformerDecoder<Stored>::add(std::span<const int> slots, const Tokens& sources) {
  Tape<float> tape(context_);
  for (const int slot : slots) {
    cache_.open(slot);
    if (static_cast<size_t>(slot) >= rows_of_.size()) rows_of_.resize(static_cast<size_t>(slot) + 1);
    rows_of_[static_cast<size_t>(slot)] = 0;
  }
  transformer_.remember(tape, transformer_.encode(tape, sources), slots, cache_);
}

template <class Stored>
Tensor<float> TransformerDecoder<Stored>::advance(std::span<const Step> steps) {
  extensions_.clear();
  ids_.clear();
  for (const Step& step : steps) {
    extensions_.push_back({step.slot, step.parent});
    ids_.push_back(step.token);
  }
  cache_.begin_step(extensions_);
  for (const Step& step : steps) ++rows_of_[static_cast<size_t>(step.slot)];
  Tape<float> tape(context_);
  return transformer_.step(tape, ids_, cache_).value();
}

template <class Stored>
Tensor<float> TransformerDecoder<Stored>::logits(const Tensor<float>& states) {
  Tape<float> tape(context_);
  return transformer_.logits(tape, Var<float>(states)).value();
}

template <class Stored>
void TransformerDecoder<Stored>::logits_in_parts(const Tensor<float>& states, kernels::ColumnParts parts,
                                                 const kernels::SeePart& see) {
  if (limited_) return limited_.logits_in_parts(context_.pool, states, parts, see);
  Tape<float> tape(context_);
  nn::multiply_parts(tape, Var<float>(states), tape.use(transformer_.output_weight()),
                     tape.use(transformer_.output_bias()), parts, see);
}

template class TransformerDecoder<float>;
template class TransformerDecoder<kernels::Bfloat16>;

}  // namespace gloss::models
