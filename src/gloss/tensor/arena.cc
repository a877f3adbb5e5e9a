#include "gloss/tensor/arena.h"

#include <algorithm>
#include <array>
#include <bit>
#include <mutex>
#include <new>
#include <vector>

#include "gloss/base/error.h"
#include "gloss/base/large_memory.h"

namespace gloss {
namespace {

constexpr size_t kAlignment = 64;
constexpr size_t kSlack = 128;
constexpr size_t kClasses = 4 * 48;

// Class c holds blocks of (4 + c % 4) * 2^(c / 4) * 64 bytes.
size_t class_of(size_t bytes) {
  const size_t units = std::max<size_t>(4, (bytes + 63) / 64);
  const size_t octave = static_cast<size_t>(std::bit_width(units)) - 3;
  const size_t step = size_t{1} << octave;
  const size_t quarter = (units + step - 1) / step;  // 4..8
  return quarter == 8 ? 4 * (octave + 1) : 4 * octave + quarter - 4;
}
size_t class_bytes(size_t c) {
  return ((4 + c % 4) << (c / 4)) * 64;
}

}  // namespace

struct alignas(kAlignment) Arena::Block {
  Block(std::shared_ptr<Core> owner_, size_t size_class_, size_t requested_)
      : owner(std::move(owner_)), size_class(size_class_), requested(requested_) {}
  std::shared_ptr<Core> owner;
  size_t size_class, requested;
  std::atomic<uint32_t> references{1};
};

struct Arena::Core : std::enable_shared_from_this<Arena::Core> {
  std::mutex mutex;  // blocks may die on another thread than the one that asked for them
  std::array<std::vector<void*>, kClasses> spare;
  Counters counters;
  bool closed = false;

  static void release(void* raw, size_t c) { free_large(raw, raw_bytes(c)); }
  static size_t raw_bytes(size_t c) { return sizeof(Block) + class_bytes(c) + kSlack; }

  void trim_locked() {
    for (size_t c = 0; c < kClasses; ++c) {
      for (void* raw : spare[c]) {
        release(raw, c);
        counters.bytes_held -= raw_bytes(c);
      }
      spare[c].clear();
    }
  }
  void put_back(void* raw, size_t c, size_t requested) {
    const std::lock_guard lock(mutex);
    counters.bytes_requested -= requested;
    counters.bytes_live -= class_bytes(c);
    if (closed) {
      release(raw, c);
      counters.bytes_held -= raw_bytes(c);
    } else {
      spare[c].push_back(raw);
    }
  }
};

Arena::Arena() : core_(std::make_shared<Core>()) {}
Arena::~Arena() {
  const std::lock_guard lock(core_->mutex);
  core_->closed = true;
  core_->trim_locked();
}
Arena::Counters Arena::counters() const {
  const std::lock_guard lock(core_->mutex);
  return core_->counters;
}
void Arena::reset_peak() {
  const std::lock_guard lock(core_->mutex);
  core_->counters.bytes_peak = core_->counters.bytes_live;
}
void Arena::trim() {
  const std::lock_guard lock(core_->mutex);
  core_->trim_locked();
}

Arena::Block* Arena::take(Core& core, size_t bytes) {
  require(bytes < (size_t{1} << 46),
          "a tensor of {} bytes is beyond any machine: the sizes asked for are wrong", bytes);
  const size_t c = class_of(bytes);
  const std::lock_guard lock(core.mutex);
  void* raw = nullptr;
  if (!core.spare[c].empty()) {
    raw = core.spare[c].back();
    core.spare[c].pop_back();
  } else {
    raw = allocate_large(Core::raw_bytes(c));
    core.counters.bytes_held += Core::raw_bytes(c);
    ++core.counters.system_allocations;
  }
  core.counters.bytes_requested += bytes;
  core.counters.bytes_live += class_bytes(c);
  core.counters.bytes_peak = std::max(core.counters.bytes_peak, core.counters.bytes_live);
  return new (raw) Block(core.shared_from_this(), c, bytes);
}

Storage::Storage(Arena& arena, size_t bytes) : block_(Arena::take(arena.core(), bytes)) {}
Storage::Storage(const Storage& other) noexcept : block_(other.block_) {
  if (block_) block_->references.fetch_add(1, std::memory_order_relaxed);
}
Storage::~Storage() {
  if (block_ && block_->references.fetch_sub(1, std::memory_order_acq_rel) == 1) {
    const std::shared_ptr<Arena::Core> owner = std::move(block_->owner);
    const size_t c = block_->size_class, requested = block_->requested;
    block_->~Block();
    owner->put_back(block_, c, requested);
  }
}
void* Storage::data() const {
  return block_ ? static_cast<void*>(block_ + 1) : nullptr;
}

}  // namespace gloss
