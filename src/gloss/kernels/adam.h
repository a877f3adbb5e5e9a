// Adam (Kingma and Ba 2015, algorithm 1) over one flat block of parameters, in one pass.
#pragma once

#include <cstdint>
#include <span>

#include "gloss/base/thread_pool.h"

namespace gloss::kernels {

struct Adam {
  double learning_rate = 0, beta1 = 0.9, beta2 = 0.98, epsilon = 1e-9;
  int64_t step = 1;           // counts from 1, for the bias corrections
  double gradient_scale = 1;  // clipping and the mean over accumulated batches, applied on the way
};

// value -= rate * m_hat / (sqrt(v_hat) + epsilon). All spans have one length.
template <class T>
void adam(ThreadPool& pool, const Adam& options, std::span<T> value, std::span<const T> gradient,
          std::span<T> first_moment, std::span<T> second_moment);

// average = decay * average + (1 - decay) * value
template <class T>
void moving_average(ThreadPool& pool, double decay, std::span<const T> value, std::span<T> average);

// The sum of squares, each and all in double precision, in blocks of a fixed size.
template <class T>
double sum_of_squares(ThreadPool& pool, std::span<const T> x);

}  // namespace gloss::kernels
