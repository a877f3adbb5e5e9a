// Token embeddings: gather with scale, positions and dropout in one pass; scatter of gradients.
#pragma once

#include <cstdint>
#include <span>

#include "gloss/base/thread_pool.h"
#include "gloss/kernels/dropout.h"
#include "gloss/kernels/matrix.h"

namespace gloss::kernels {

// y[i] = dropout(scale * table[ids[i]] + positions[position_of[i]]); ids must be rows of the table.
// Without positions the second term is missing.
template <class T>
void embed_forward(ThreadPool& pool, Matrix<const T> table, std::span<const int32_t> ids, T scale,
                   Matrix<const T> positions, std::span<const int64_t> position_of, const Dropout& dropout,
                   Matrix<T> y);

// dtable[ids[i]] += scale * dropout(dy[i]): only rows that occur are touched, each summed in the order of i.
// The row `frozen` (the zero row of the start symbol) gets no gradient; -1 freezes none.
template <class T>
void embed_backward(ThreadPool& pool, std::span<const int32_t> ids, T scale, const Dropout& dropout,
                    Matrix<const T> dy, Matrix<T> dtable, int64_t frozen);

}  // namespace gloss::kernels
