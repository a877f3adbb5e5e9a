// What one core could do at most: the yardstick beside every GFLOP/s.
#pragma once

#include "gloss/kernels/precision.h"

namespace gloss::bench {

// Operations a second of processor time (a multiplication and an addition are two), in the instructions that
// products of `precision` are made of, on registers only and on the instruction set the kernels run on. Best
// of several runs; 0 where the precision is not served.
double peak_operations(kernels::Precision precision);

}  // namespace gloss::bench
