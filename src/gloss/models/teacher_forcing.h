// Teacher forcing: the decoder reads the target itself, one token late.
#pragma once

#include <cstdint>

#include "gloss/tensor/ragged.h"

namespace gloss::models {

// start symbol + target without its last token, sequence by sequence.
inline Tokens decoder_input(const Tokens& target, int32_t start) {
  Tokens input = target;
  for (int64_t s = 0; s < target.offsets.count(); ++s) {
    const auto begin = static_cast<size_t>(target.offsets.begin(s)),
               end = static_cast<size_t>(target.offsets.end(s));
    for (size_t i = begin; i < end; ++i) input.rows[i] = i == begin ? start : target.rows[i - 1];
  }
  return input;
}

}  // namespace gloss::models
