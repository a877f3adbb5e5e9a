#include "gloss/models/transformer_decoder.h"

#include <algorithm>

namespace gloss::models {

using autograd::Tape;
using autograd::Var;

namespace {
std::vector<int32_t> forbidden_symbols(const Symbols& symbols) {
  if (symbols.pad < 0) return {};
  return {symbols.pad};
}

Tensor<float> logits_of(const Transformer<float>& transformer, Context& context,
                        const Tensor<float>& states) {
  Tape<float> tape(context);
  return transformer.logits(tape, Var<float>(states)).value();
}
}  // namespace

TransformerDecoder::TransformerDecoder(const Transformer<float>& transformer, Context& context)
    : transformer_(transformer),
      context_(context),
      cache_(context.arena, transformer.config().decoder.layers, transformer.cache_widths(),
             transformer.cache_widths()),
      forbidden_(forbidden_symbols(transformer.config().symbols)) {}

void TransformerDecoder::add(std::span<const int> slots, const Tokens& sources) {
  Tape<float> tape(context_);
  for (const int slot : slots) {
    cache_.open(slot);
    if (static_cast<size_t>(slot) >= rows_of_.size()) rows_of_.resize(static_cast<size_t>(slot) + 1);
    rows_of_[static_cast<size_t>(slot)] = 0;
  }
  transformer_.remember(tape, transformer_.encode(tape, sources), slots, cache_);
}

Tensor<float> TransformerDecoder::advance(std::span<const Step> steps) {
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

Tensor<float> TransformerDecoder::logits(const Tensor<float>& states) {
  return logits_of(transformer_, context_, states);
}

UncachedTransformerDecoder::UncachedTransformerDecoder(const Transformer<float>& transformer,
                                                       Context& context)
    : transformer_(transformer),
      context_(context),
      forbidden_(forbidden_symbols(transformer.config().symbols)) {}

void UncachedTransformerDecoder::add(std::span<const int> slots, const Tokens& sources) {
  Tape<float> tape(context_);
  const auto memory = transformer_.encode(tape, sources);
  for (size_t s = 0; s < slots.size(); ++s) {
    const auto slot = static_cast<size_t>(slots[s]);
    if (slot >= sentences_.size()) sentences_.resize(slot + 1);
    const auto i = static_cast<int64_t>(s);
    sentences_[slot] = {
        memory.rows.value().slice_rows(memory.offsets.begin(i), memory.offsets.length(i)), {{}}, 0};
  }
}

void UncachedTransformerDecoder::remove(int slot) {
  sentences_.at(static_cast<size_t>(slot)) = {};
}

Tensor<float> UncachedTransformerDecoder::advance(std::span<const Step> steps) {
  std::vector<int64_t> memory_lengths, prefix_lengths;
  Tokens input;
  for (size_t i = 0; i < steps.size();) {
    Sentence& sentence = sentences_.at(static_cast<size_t>(steps[i].slot));
    std::vector<std::vector<int32_t>> next;
    for (const int slot = steps[i].slot; i < steps.size() && steps[i].slot == slot; ++i) {
      std::vector<int32_t> prefix = sentence.prefixes.at(static_cast<size_t>(steps[i].parent));
      prefix.push_back(steps[i].token);
      input.rows.insert(input.rows.end(), prefix.begin(), prefix.end());
      prefix_lengths.push_back(static_cast<int64_t>(prefix.size()));
      sentence.rows += prefix_lengths.back();
      memory_lengths.push_back(sentence.memory.rows());
      next.push_back(std::move(prefix));
    }
    sentence.prefixes = std::move(next);
  }
  input.offsets = Offsets::of_lengths(prefix_lengths);
  rows_ += input.offsets.total();

  Tape<float> tape(context_);
  const Offsets memory_offsets = Offsets::of_lengths(memory_lengths);
  const int64_t d = transformer_.config().d_model;
  const Tensor<float> memory = tape.allocate({memory_offsets.total(), d});
  const Tensor<float> last = tape.allocate({static_cast<int64_t>(steps.size()), d});
  for (size_t i = 0; i < steps.size(); ++i) {
    const Tensor<float>& from = sentences_[static_cast<size_t>(steps[i].slot)].memory;
    std::copy_n(from.data(), from.size(), memory.row(memory_offsets.begin(static_cast<int64_t>(i))));
  }
  const auto states = transformer_.decode(tape, input, {Var<float>(memory), memory_offsets});
  for (int64_t i = 0; i < last.rows(); ++i) {
    std::copy_n(states.rows.value().row(input.offsets.end(i) - 1), d, last.row(i));
  }
  return last;
}

Tensor<float> UncachedTransformerDecoder::logits(const Tensor<float>& states) {
  return logits_of(transformer_, context_, states);
}

}  // namespace gloss::models
