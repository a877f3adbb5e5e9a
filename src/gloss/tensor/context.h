// What every computation needs besides its numbers.
#pragma once

#include "gloss/base/thread_pool.h"
#include "gloss/tensor/arena.h"

namespace gloss {

// Threads to compute with and memory to compute in. One computation uses a context at a time.
struct Context {
  explicit Context(int threads = 1) : pool(threads) {}
  ThreadPool pool;
  Arena arena;
};

}  // namespace gloss
