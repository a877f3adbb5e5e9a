// What search needs of a model: sentences come and go, hypotheses are extended one token at a time.
#pragma once

#include <cstdint>
#include <span>

#include "gloss/kernels/packed_matrix.h"
#include "gloss/tensor/ragged.h"
#include "gloss/tensor/tensor.h"

namespace gloss::models {

// One live hypothesis to extend: its sentence's slot, the hypothesis it extends (an index among that slot's
// rows of the slot's previous advance) and its newest token. The first advance of a sentence has the one row
// {slot, 0, start symbol}.
struct Step {
  int slot = 0;
  int parent = 0;
  int32_t token = 0;
  bool operator==(const Step&) const = default;
};

// The sentences being translated and what the model remembers of their hypotheses.
//
// A slot is a small number from 0 up that the caller gives a sentence; the state makes room as slots appear.
// Slots stand at different positions: a sentence may begin while others are half done. What a row gets must
// not depend on the other rows, bit for bit (but for the rows of its own sentence it was derived from).
class DecoderState {
 public:
  virtual ~DecoderState() = default;

  virtual int64_t vocabulary_size() const = 0;
  virtual int32_t start_token() const = 0;  // what the decoder reads first
  virtual int32_t end_token() const = 0;
  // Symbols the model never produces, <pad> for one. Search gives them no probability.
  virtual std::span<const int32_t> forbidden_tokens() const { return {}; }

  // Encodes new sentences (ids of the source with its end symbol) into free slots, sentence i into slots[i].
  virtual void add(std::span<const int> slots, const Tokens& sources) = 0;
  // A finished sentence leaves at once; its slot and memory are free again.
  virtual void remove(int slot) = 0;
  // Extends hypotheses by one token each. The rows of a slot stand together, in any order of slots; a slot
  // without rows waits. A hypothesis that no row names as its parent is forgotten. Returns the decoder's
  // states [steps, width of the model], valid until the next add, advance or remove.
  virtual Tensor<float> advance(std::span<const Step> steps) = 0;
  // The logits [n, V] of n rows of those states. The caller may overwrite them; they are valid until the next
  // call of any member.
  virtual Tensor<float> logits(const Tensor<float>& states) = 0;
  // The same logits in parts of rows and tokens, for who ranks each while it is in the cache; of fewer tokens
  // after limit_output. `see` must take all that kernels::SeePart may do, and more than a part or a run at
  // once.
  virtual void logits_in_parts(const Tensor<float>& states, kernels::ColumnParts /*parts*/,
                               const kernels::SeePart& see) {
    see(0, 0, kernels::matrix(logits(states)));
  }
  // Limits logits_in_parts to some tokens, ascending and none twice: from then on a column is a place in
  // `tokens`, with the bits it has among all. Without tokens all are back, and columns are tokens. Returns
  // false where the state has no such way: then columns stay tokens, and the caller picks.
  virtual bool limit_output(std::span<const int32_t> /*tokens*/) { return false; }
  // Rows of target keys and values projected so far, a layer: n a hypothesis of n tokens with a cache, n (n +
  // 1) / 2 where every step computes its whole prefix again.
  virtual int64_t key_value_rows() const { return 0; }
  // The same for the sentence in a slot, since it was added.
  virtual int64_t key_value_rows_of(int /*slot*/) const { return 0; }
};

}  // namespace gloss::models
