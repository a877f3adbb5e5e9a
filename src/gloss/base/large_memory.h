// Memory for arrays that are streamed through: weights, activations.
#pragma once

#include <cstddef>

namespace gloss {

// `bytes` bytes aligned to 64. From 2 MB on they begin at a huge page and the system is asked to use such
// pages, of which each spares 511 faults when it is touched first. Throws std::bad_alloc.
void* allocate_large(size_t bytes);
void free_large(void* memory, size_t bytes) noexcept;

struct FreeLarge {
  size_t bytes = 0;
  void operator()(void* memory) const noexcept { free_large(memory, bytes); }
};

}  // namespace gloss
