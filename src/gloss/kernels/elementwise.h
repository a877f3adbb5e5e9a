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

// dx = dy f'(x) in place of dy or elsewhere. `kept` is the input x of the activation; for tanh its output,
// and for ReLU either.
template <class T>
void activation_backward(ThreadPool& pool, Activation activation, Matrix<const T> kept, Matrix<const T> dy,
                         Matrix<T> dx);

// y [n, l] = the larger of each two neighbours in x [n, 2 l], or NaN if either is.
template <class T>
void maxout(ThreadPool& pool, Matrix<const T> x, Matrix<T> y);
// dx [n, 2 l] (+)= dy [n, l] where x won, the first of two equal ones; 0 elsewhere.
template <class T>
void maxout_backward(ThreadPool& pool, Matrix<const T> x, Matrix<const T> dy, Matrix<T> dx,
                     Accumulate accumulate);

// y (+)= x
template <class T>
void add(ThreadPool& pool, Matrix<const T> x, Matrix<T> y, Accumulate accumulate);

// sums[c] += the sum of column c: the gradient of a bias. Rows are summed in blocks of a fixed size.
template <class T>
void add_column_sums(ThreadPool& pool, Matrix<const T> x, T* sums);

}  // namespace gloss::kernels
