// Maxout (Goodfellow et al. 2013) with two pieces, as in the deep output of Bahdanau et al. 2015, A.2.2.
#pragma once

#include "gloss/autograd/tape.h"

namespace gloss::nn {

// y_j = max(x_2j, x_2j+1), counted from 0: x [n, 2 l] -> [n, l]. The gradient goes to the larger of the two,
// the first where they are equal. An odd width is an error.
template <class T>
autograd::Var<T> maxout(autograd::Tape<T>& tape, const autograd::Var<T>& x);

}  // namespace gloss::nn
