// What training wants to be small.
#pragma once

#include <cstdint>
#include <span>

#include "gloss/models/config.h"
#include "gloss/nn/loss.h"
#include "gloss/tensor/ragged.h"

namespace gloss::models {

// What a head of cross-attention is told to look at (models/alignment_guide.h).
struct AlignmentGuide {
  AttentionHead head;
  std::span<const RowLink> links;  // of target tokens to source tokens, ascending by target
  double weight = 1;               // of its cross-entropy beside the loss of the translation
};

struct Objective {
  double smoothing = 0;  // of labels
  double scale = 1;      // of everything
  const AlignmentGuide* guide = nullptr;
};

template <class T>
struct TrainingLoss : nn::Loss<T> {
  // The cross-entropy of the guided head, summed over the target tokens that have links, unscaled. `sum` has
  // its part.
  double guided = 0;
  int64_t guided_tokens = 0;
};

}  // namespace gloss::models
