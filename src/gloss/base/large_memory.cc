#include "gloss/base/large_memory.h"

#include <sys/mman.h>

#include <cstdint>
#include <new>

namespace gloss {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;

// operator new, as everything else, so that whoever counts memory sees it.
std::align_val_t alignment(size_t bytes) {
  return std::align_val_t{bytes >= kHugePage ? kHugePage : 64};
}

}  // namespace

void* allocate_large(size_t bytes) {
  if (bytes > SIZE_MAX / 2) throw std::bad_alloc();
  void* const memory = ::operator new(bytes, alignment(bytes));
  // Whole huge pages only: what is behind them would be resident without being used. Advice may be refused.
  if (bytes >= kHugePage) ::madvise(memory, bytes / kHugePage * kHugePage, MADV_HUGEPAGE);
  return memory;
}

void free_large(void* memory, size_t bytes) noexcept {
  ::operator delete(memory, alignment(bytes));
}

}  // namespace gloss
