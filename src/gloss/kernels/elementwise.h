// Passes over the elements of a matrix.
#pragma once

#include "gloss/base/thread_pool.h"
#include "gloss/kernels/dropout.h"
#include "gloss/kernels/matrix.h"

namespace gloss::kernels {

// y (+)= dropout(x)
template <class T>
void dropout(ThreadPool& pool, Matrix<const T> x, const Dropout& dropout, Matrix<T> y, Accumulate accumulate);

// y = x + dropout(branch): the residual connection of a pre-norm layer.
template <class T>
void add_dropout(ThreadPool& pool, Matrix<const T> x, Matrix<const T> branch, const Dropout& dropout,
                 Matrix<T> y);

// dx = dy f'(x) in place of dy or elsewhere. `kept` is the input x of the activation, or for ReLU its output.
template <class T>
void activation_backward(ThreadPool& pool, Activation activation, Matrix<const T> kept, Matrix<const T> dy,
                         Matrix<T> dx);

// y (+)= x
template <class T>
void add(ThreadPool& pool, Matrix<const T> x, Matrix<T> y, Accumulate accumulate);

// sums[c] += the sum of column c: the gradient of a bias. Rows are summed in blocks of a fixed size.
template <class T>
void add_column_sums(ThreadPool& pool, Matrix<const T> x, T* sums);

}  // namespace gloss::kernels
