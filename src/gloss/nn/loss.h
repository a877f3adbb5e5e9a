// The output layer and the label-smoothed cross-entropy as one operation: logits exist for a block of tokens
// at a time.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "gloss/autograd/tape.h"
#include "gloss/kernels/cross_entropy.h"

namespace gloss::nn {

template <class T>
struct Loss {
  autograd::Var<T> sum;                // [1]: smoothed loss summed over tokens, times the scale
  double smoothed = 0;                 // the same sum, unscaled
  double negative_log_likelihood = 0;  // of the targets, without smoothing, summed: perplexity = e^(mean)
};

// logits = x W^T + b for x [n, d], weight [V, d], bias [V] or empty; targets [n] are ids below V.
// loss = scale * sum over tokens of (1 - e) NLL + e * mean NLL over the symbols that can be produced.
// When recording, the gradients are made together with the loss, block by block, so that logits are computed
// once and [n, V] never exists; backward only scales them by what comes from above.
template <class T>
Loss<T> projection_cross_entropy(autograd::Tape<T>& tape, const autograd::Var<T>& x,
                                 const autograd::Var<T>& weight, const autograd::Var<T>& bias,
                                 std::span<const int32_t> targets, const kernels::CrossEntropy& options,
                                 double scale);

// Log-probability of each target: [n]. No gradient.
template <class T>
std::vector<T> projection_log_probabilities(autograd::Tape<T>& tape, const autograd::Var<T>& x,
                                            const autograd::Var<T>& weight, const autograd::Var<T>& bias,
                                            std::span<const int32_t> targets);

}  // namespace gloss::nn
