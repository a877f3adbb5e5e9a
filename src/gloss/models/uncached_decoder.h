// Search without a cache, for comparison: the whole prefix of every hypothesis is computed at each step.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "gloss/autograd/tape.h"
#include "gloss/models/config.h"
#include "gloss/models/decoder_state.h"
#include "gloss/nn/rows.h"
#include "gloss/tensor/context.h"

namespace gloss::models {

// What models never produce.
inline std::vector<int32_t> never_produced(const Symbols& symbols) {
  if (symbols.pad < 0) return {};
  return {symbols.pad};
}

// Rows of sentence i, and rows of several sentences under each other.
using MemoryRows = Ragged<autograd::Var<float>>;
inline MemoryRows one_sentence(const MemoryRows& memory, int64_t i) {
  const int64_t length = memory.offsets.length(i);
  return {autograd::Var<float>(memory.rows.value().slice_rows(memory.offsets.begin(i), length)),
          Offsets({0, length})};
}
inline MemoryRows all_sentences(autograd::Tape<float>& tape, std::span<const MemoryRows* const> memories) {
  std::vector<autograd::Var<float>> parts;
  std::vector<int64_t> lengths;
  for (const MemoryRows* memory : memories) {
    parts.push_back(memory->rows);
    lengths.push_back(memory->rows.rows());
  }
  return {nn::stack_rows(tape, std::span<const autograd::Var<float>>(parts)), Offsets::of_lengths(lengths)};
}

// Network gives encode(tape, tokens) -> Memory, decode(tape, input, memory) -> rows, logits(tape, rows), and
// overloads of one_sentence(memory, i) and all_sentences(tape, memories). Only encoding is done once a
// sentence.
template <class Network, class Memory>
class UncachedDecoder : public DecoderState {
 public:
  UncachedDecoder(const Network& network, Context& context, std::vector<int32_t> forbidden)
      : network_(network), context_(context), forbidden_(std::move(forbidden)) {}

  int64_t vocabulary_size() const override { return network_.config().target_vocabulary; }
  int32_t start_token() const override { return network_.config().symbols.start; }
  int32_t end_token() const override { return network_.config().symbols.end; }
  std::span<const int32_t> forbidden_tokens() const override { return forbidden_; }

  void add(std::span<const int> slots, const Tokens& sources) override {
    autograd::Tape<float> tape(context_);
    const Memory memory = network_.encode(tape, sources);
    for (size_t s = 0; s < slots.size(); ++s) {
      const auto slot = static_cast<size_t>(slots[s]);
      if (slot >= sentences_.size()) sentences_.resize(slot + 1);
      sentences_[slot] = {one_sentence(memory, static_cast<int64_t>(s)), {{}}, 0};
    }
  }
  void remove(int slot) override { sentences_.at(static_cast<size_t>(slot)) = {}; }

  Tensor<float> advance(std::span<const Step> steps) override {
    std::vector<const Memory*> memories;
    std::vector<int64_t> lengths;
    Tokens input;
    for (size_t i = 0; i < steps.size();) {
      Sentence& sentence = sentences_.at(static_cast<size_t>(steps[i].slot));
      std::vector<std::vector<int32_t>> next;
      for (const int slot = steps[i].slot; i < steps.size() && steps[i].slot == slot; ++i) {
        std::vector<int32_t> prefix = sentence.prefixes.at(static_cast<size_t>(steps[i].parent));
        prefix.push_back(steps[i].token);
        input.rows.insert(input.rows.end(), prefix.begin(), prefix.end());
        lengths.push_back(static_cast<int64_t>(prefix.size()));
        sentence.rows += lengths.back();
        memories.push_back(&sentence.memory);
        next.push_back(std::move(prefix));
      }
      sentence.prefixes = std::move(next);
    }
    input.offsets = Offsets::of_lengths(lengths);
    rows_ += input.offsets.total();

    autograd::Tape<float> tape(context_);
    const auto states = decode(tape, input, all_sentences(tape, std::span<const Memory* const>(memories)));
    std::vector<int64_t> last;
    for (int64_t i = 0; i < input.offsets.count(); ++i) last.push_back(input.offsets.end(i) - 1);
    return nn::rows(tape, states.rows, std::span<const int64_t>(last)).value();
  }
  Tensor<float> logits(const Tensor<float>& states) override {
    autograd::Tape<float> tape(context_);
    return network_.logits(tape, autograd::Var<float>(states)).value();
  }
  int64_t key_value_rows() const override { return rows_; }
  int64_t key_value_rows_of(int slot) const override { return sentences_.at(static_cast<size_t>(slot)).rows; }

 protected:
  const Network& network() const { return network_; }

 private:
  // The states of whole prefixes.
  virtual MemoryRows decode(autograd::Tape<float>& tape, const Tokens& input, const Memory& memory) const {
    return network_.decode(tape, input, memory);
  }

  struct Sentence {
    Memory memory;
    std::vector<std::vector<int32_t>> prefixes;  // of the hypotheses of the last step
    int64_t rows = 0;                            // computed
  };
  const Network& network_;
  Context& context_;
  std::vector<int32_t> forbidden_;
  std::vector<Sentence> sentences_;  // by slot
  int64_t rows_ = 0;
};

}  // namespace gloss::models
