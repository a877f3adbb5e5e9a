// Memory for tensors: blocks that are recycled, so that a warm step asks the system for nothing.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace gloss {

// Blocks come back when their last tensor dies and serve the next request of the same size class (four
// classes an octave: at most 25 % spare). Requests are made by one thread at a time; tensors may be shared
// among threads. A block may outlive its arena.
class Arena {
 public:
  Arena();
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  struct Counters {
    size_t bytes_requested = 0;       // that some tensor holds, as they were asked for
    size_t bytes_live = 0;            // the same blocks, size classes rounded up
    size_t bytes_peak = 0;            // the largest bytes_live so far
    size_t bytes_held = 0;            // taken from the system: live blocks and spare ones
    uint64_t system_allocations = 0;  // how often the system was asked
  };
  Counters counters() const;
  void reset_peak();
  // Gives spare blocks back to the system.
  void trim();

  struct Core;
  struct Block;  // header in front of the payload
  // The payload is aligned to 64 bytes and followed by at least 128 readable bytes of slack.
  static Block* take(Core& core, size_t bytes);
  Core& core() { return *core_; }

 private:
  std::shared_ptr<Core> core_;
};

// A counted handle on a block.
class Storage {
 public:
  Storage() = default;
  Storage(Arena& arena, size_t bytes);
  Storage(const Storage& other) noexcept;
  Storage(Storage&& other) noexcept : block_(other.block_) { other.block_ = nullptr; }
  Storage& operator=(Storage other) noexcept {
    std::swap(block_, other.block_);
    return *this;
  }
  ~Storage();
  void* data() const;

 private:
  Arena::Block* block_ = nullptr;
};

}  // namespace gloss
