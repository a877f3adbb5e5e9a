// A translation as search found it.
#pragma once

#include <cstdint>
#include <vector>

namespace gloss::decode {

struct Hypothesis {
  std::vector<int32_t> tokens;  // with the end symbol where it is finished
  float log_probability = 0;    // sum of token_log_probabilities
  float score = 0;              // log_probability / tokens.size()^alpha
  // log P(token | tokens before, source) under the model, whatever masks and sampling left of it; 0 for an
  // end symbol forced at the length cap.
  std::vector<float> token_log_probabilities;
  bool finished = false;  // ends in the end symbol; if not, the cap or a dead end cut it
};

}  // namespace gloss::decode
