// Softmax cross-entropy of rows of logits, with label smoothing, and its gradient in place.
#pragma once

#include <cstdint>
#include <span>

#include "gloss/base/thread_pool.h"
#include "gloss/kernels/matrix.h"

namespace gloss::kernels {

struct CrossEntropy {
  double smoothing = 0;    // e: (1 - e) * NLL + e * the mean NLL over the symbols that can be produced
  int64_t forbidden = -1;  // a symbol without probability, or -1
};

// Per row of `logits` [n, V]: the smoothed loss and the plain negative log-likelihood of `targets`.
// `gradient` != 0: the row becomes gradient * d loss / d logits.
template <class T>
void cross_entropy(ThreadPool& pool, Matrix<T> logits, std::span<const int32_t> targets,
                   const CrossEntropy& options, T gradient, T* loss, T* negative_log_likelihood);

}  // namespace gloss::kernels
