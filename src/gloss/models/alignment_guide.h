// What training tells a head of cross-attention to look at.
#pragma once

#include <span>

#include "gloss/models/attention_record.h"
#include "gloss/models/config.h"
#include "gloss/nn/loss.h"
#include "gloss/tensor/ragged.h"

namespace gloss::models {

struct AlignmentGuide {
  AttentionHead head;
  std::span<const RowLink> links;  // of target tokens to source tokens, ascending by target
  double weight = 1;               // of its cross-entropy beside the loss of the translation
};

// What training wants to be small.
struct Objective {
  double smoothing = 0;  // of labels
  double scale = 1;      // of everything
  const AlignmentGuide* guide = nullptr;
};

// Asks a pass for the guided layer; for nothing without a guide.
template <class T>
AttentionRecord<T> guided_record(const Objective& objective) {
  AttentionRecord<T> record;
  record.request.kinds.clear();
  if (objective.guide) {
    record.request.kinds = {AttentionKind::cross};
    record.request.layer = objective.guide->head.layer;
  }
  return record;
}
// Adds the cross-entropy of the guided head to the loss: each linked target token asks for equal shares of
// the source tokens that it is linked with. Its row of attention is that of the step that predicts it, or
// with `where_read` that of the next one, which reads it. `record` holds the layer, with weights.
template <class T>
nn::Loss<T> guided(autograd::Tape<T>& tape, nn::Loss<T> loss, const AttentionRecord<T>& record, int64_t heads,
                   const Tokens& source, const Tokens& target, const Objective& objective, bool where_read);

}  // namespace gloss::models
