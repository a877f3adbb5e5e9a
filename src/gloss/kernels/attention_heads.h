// Heads as tasks, for the forward and the backward pass of attention. Only for attention.cc and
// attention_backward.cc.
#pragma once

#include <cstdint>
#include <vector>

#include "gloss/kernels/attention.h"

namespace gloss::kernels {

// Where the weights [n_q, n_k] of one head of a sequence begin.
template <class T>
int64_t weights_at(const Attention<T>& in, const std::vector<int64_t>& offsets, int64_t sequence,
                   int64_t head) {
  return offsets[static_cast<size_t>(sequence)] +
         head * in.query_offsets.length(sequence) * in.key_offsets.length(sequence);
}

// Calls run(sequence, head) for all of them.
template <class T, class Run>
void each_head(ThreadPool& pool, const Attention<T>& in, Run run) {
  pool.parallel_for(in.query_offsets.count() * in.heads,
                    [&](int64_t task) { run(task / in.heads, task % in.heads); });
}

}  // namespace gloss::kernels
