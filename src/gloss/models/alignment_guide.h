// How a network learns what a head of cross-attention shall look at.
#pragma once

#include "gloss/models/attention_record.h"
#include "gloss/models/objective.h"

namespace gloss::models {

// Asks a pass for the guided layer; for nothing without a guide.
template <class T>
AttentionRecord<T> guided_record(const Objective& objective) {
  AttentionRecord<T> record;
  if (objective.guide) record.request = {{AttentionKind::cross}, objective.guide->head.layer, false};
  return record;
}
// Adds the cross-entropy of the guided head to the loss of the translation: each linked target token asks for
// equal shares of the source tokens that it is linked with, from the row of its `step`. `record` holds the
// layer, with weights.
template <class T>
TrainingLoss<T> guided(autograd::Tape<T>& tape, const nn::Loss<T>& translation,
                       const AttentionRecord<T>& record, int64_t heads, const Tokens& source,
                       const Tokens& target, const Objective& objective, AlignmentStep step);

}  // namespace gloss::models
