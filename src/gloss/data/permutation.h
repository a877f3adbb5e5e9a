// A seeded shuffle of 0 .. size - 1 that takes no memory.
#pragma once

#include <bit>
#include <cstdint>

#include "gloss/base/random.h"

namespace gloss::data {

// A Feistel network is a bijection whatever its round function, here on the smallest even number of bits that
// holds `size` numbers; what falls outside is sent through again until it falls inside (cycle walking: Black
// and Rogaway, "Ciphers with arbitrary finite domains", 2002). At most four passes are expected.
class Permutation {
 public:
  Permutation(RandomKey key, uint64_t size)
      : key_(key),
        size_(size),
        half_(size > 1 ? (static_cast<unsigned>(std::bit_width(size - 1)) + 1) / 2 : 1) {}

  // index < size.
  uint64_t operator()(uint64_t index) const {
    do {
      index = pass(index);
    } while (index >= size_);
    return index;
  }

 private:
  static constexpr uint64_t kRounds = 6;

  uint64_t pass(uint64_t x) const {
    const uint64_t mask = (uint64_t{1} << half_) - 1;
    uint64_t left = x >> half_, right = x & mask;
    for (uint64_t round = 0; round < kRounds; ++round) {
      const uint64_t next = left ^ (key_.with(round).bits(right) & mask);
      left = right;
      right = next;
    }
    return left << half_ | right;
  }

  RandomKey key_;
  uint64_t size_;
  unsigned half_;  // bits
};

}  // namespace gloss::data
