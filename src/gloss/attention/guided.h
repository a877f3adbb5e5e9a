// Guided attention (Chen et al. 2016, "Guided Alignment Training for Topic-Aware Neural Machine Translation",
// section 3; Garg et al. 2019, eq. 4): weights learn from word links that somebody else found.
#pragma once

#include <cstdint>
#include <vector>

#include "gloss/autograd/tape.h"

namespace gloss::attention {

// A weight that ought to be `share`: the shares of a row are its wanted weights and add up to 1.
struct GuidedWeight {
  int64_t element = 0;  // of the weights' tensor
  double share = 0;
};

template <class T>
struct Guided {
  autograd::Var<T> loss;     // [1]: what was given + scale * cross_entropy
  double cross_entropy = 0;  // -sum of share * log(weight)
};

// Adds the cross-entropy of attention weights with wanted ones to a loss [1]. `weights` are those that
// attention returned on request, of any shape, positive or 0 where they underflow (counted as the smallest
// number). An element outside them is an error.
template <class T>
Guided<T> guided_cross_entropy(autograd::Tape<T>& tape, const autograd::Var<T>& loss,
                               const autograd::Var<T>& weights, std::vector<GuidedWeight> wanted,
                               double scale);

}  // namespace gloss::attention
