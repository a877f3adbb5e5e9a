#include "gloss/base/large_memory.h"

#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>
#include <new>

namespace gloss {
namespace {

constexpr size_t kAlignment = 64, kHugePage = size_t{2} << 20;

size_t multiple(size_t bytes, size_t step) {
  return (bytes + step - 1) / step * step;
}

}  // namespace

void* allocate_large(size_t bytes) {
  if (bytes > SIZE_MAX - kHugePage) throw std::bad_alloc();
  const bool huge = bytes >= kHugePage;
  void* memory = nullptr;
  if (::posix_memalign(&memory, huge ? kHugePage : kAlignment, multiple(bytes + (bytes == 0), kAlignment)) !=
      0)
    throw std::bad_alloc();
  // Whole huge pages only: what is behind them would be resident without being used. Advice may be refused.
  if (huge) ::madvise(memory, bytes / kHugePage * kHugePage, MADV_HUGEPAGE);
  return memory;
}

void free_large(void* memory) noexcept {
  std::free(memory);
}

}  // namespace gloss
