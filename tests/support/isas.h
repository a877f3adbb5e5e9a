// Runs a piece of a test on every instruction set of this machine, and proves which one ran.
#pragma once

#include <gtest/gtest.h>

#include <vector>

#include "gloss/base/thread_pool.h"
#include "gloss/kernels/isa.h"
#include "support/compare.h"

namespace gloss::tests {

// Calls body(isa); afterwards the kernels run on what they ran on before.
template <class Body>
void on_every_isa(Body body) {
  const kernels::Isa before = kernels::current_isa();
  for (const kernels::Isa isa : kernels::supported_isas()) {
    SCOPED_TRACE(kernels::isa_name(isa));
    kernels::limit_isa(isa);
    EXPECT_EQ(kernels::current_isa(), isa);
    body(isa);
  }
  kernels::limit_isa(before);
}

// Calls run(pool) -> std::vector<T> on every instruction set with one, two and three threads. Threads must
// not change a bit, nor may AVX-512 where AVX2 runs; each result goes to check(result).
template <class T, class Run, class Check>
void same_everywhere(Run run, Check check) {
  ThreadPool one(1), two(2), three(3);
  std::vector<T> avx2;
  on_every_isa([&](kernels::Isa isa) {
    const std::vector<T> result = run(one);
    check(result);
    EXPECT_TRUE(same_bits<T>(result, run(two))) << "two threads";
    EXPECT_TRUE(same_bits<T>(result, run(three))) << "three threads";
    if (isa == kernels::Isa::avx2) avx2 = result;
    if (isa == kernels::Isa::avx512) {
      EXPECT_TRUE(same_bits<T>(result, avx2)) << "AVX-512 against AVX2";
    }
  });
}

}  // namespace gloss::tests
