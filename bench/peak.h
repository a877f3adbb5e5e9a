// What one core could do at most: the yardstick beside every GFLOP/s.
#pragma once

namespace gloss::bench {

// Floating-point operations a second of processor time, in fused multiply-adds that touch registers only, on
// the instruction set the kernels run on. Best of several runs.
double peak_flops();

}  // namespace gloss::bench
