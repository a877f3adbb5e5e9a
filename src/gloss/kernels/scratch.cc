#include "gloss/kernels/scratch.h"

#include <memory>
#include <new>
#include <vector>

namespace gloss::kernels::internal {
namespace {

constexpr std::align_val_t kAlignment{64};

struct Free {
  void operator()(void* p) const { ::operator delete(p, kAlignment); }
};
struct Buffer {
  std::unique_ptr<void, Free> memory;
  size_t bytes = 0;
};
// One stack a thread is what makes the buffers safe without a lock; it holds no state that outlives a call.
struct Stack {
  std::vector<Buffer> buffers;
  size_t depth = 0;
};
thread_local Stack stack;

}  // namespace

void* scratch_take(size_t bytes) {
  if (stack.depth == stack.buffers.size()) stack.buffers.emplace_back();
  Buffer& buffer = stack.buffers[stack.depth];
  if (buffer.bytes < bytes || !buffer.memory) {
    const size_t size = bytes + bytes / 4 + 128;
    buffer.memory.reset();
    buffer.memory.reset(::operator new(size, kAlignment));
    buffer.bytes = size - 128;
  }
  ++stack.depth;
  return buffer.memory.get();
}

void scratch_give_back() {
  --stack.depth;
}

}  // namespace gloss::kernels::internal
