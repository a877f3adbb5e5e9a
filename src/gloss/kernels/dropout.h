// Dropout whose mask is a function of a key and the element's index: nothing is stored for backward, and the
// mask does not depend on threads.
#pragma once

#include <cstdint>

#include "gloss/base/error.h"
#include "gloss/base/random.h"

namespace gloss::kernels {

struct Dropout {
  Dropout() = default;  // keeps everything
  // Drops with probability p in [0, 1); what is kept is scaled by 1 / (1 - p).
  Dropout(double p, RandomKey key)
      : key_low(static_cast<uint32_t>(key.state())),
        key_high(static_cast<uint32_t>(key.state() >> 32)),
        threshold(static_cast<int32_t>(checked(p) * 0x1p31)),
        scale(1.0 / (1.0 - p)) {}
  bool active() const { return threshold > 0; }

  // The factor of element `index`: 0 or `scale`. The vector form in dropout-inl.h gives the same.
  double factor(uint64_t index) const {
    uint32_t x = (static_cast<uint32_t>(index) ^ key_low) + spread(index);
    x = (x ^ (x >> 16)) * 0x7FEB352Du;  // the mixing steps of lowbias32 (C. Wellons), keyed in between
    x = ((x ^ (x >> 15)) + key_high) * 0x846CA68Bu;
    x ^= x >> 16;
    return static_cast<int32_t>(x >> 1) >= threshold ? scale : 0.0;
  }

  // What the high half of an index adds: far apart for neighbours, and in front of all mixing.
  static uint32_t spread(uint64_t index) { return static_cast<uint32_t>(index >> 32) * 0x9E3779B1u; }
  // Before the conversion: that of a number which does not fit is undefined.
  static double checked(double p) {
    require(p >= 0 && p < 1, "dropout is a probability from 0 to below 1, not {}", p);
    return p;
  }

  uint32_t key_low = 0, key_high = 0;
  int32_t threshold = 0;  // of 31 random bits
  double scale = 1;
};

}  // namespace gloss::kernels
