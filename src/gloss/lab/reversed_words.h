// Words said backwards, learned by a small Transformer: what becomes of words longer than any of the
// training.
#pragma once

#include <cstdint>
#include <vector>

#include "gloss/attention/relative_bias.h"

namespace gloss::lab {

// What tells a model the order of letters.
enum class Order { sinusoidal, relative, none };

// A word is two letters or more of the alphabet, all different; its translation has the same letters from the
// last to the first. models::TransformerModel, one layer of two heads on each side, trained by Adam on the
// cross-entropy.
struct ReversedWords {
  Order order = Order::sinusoidal;
  attention::RelativeBuckets buckets{4, 3};  // of relative positions
  int64_t longest = 8;                       // letters of a word of the training, at most 13
  int64_t updates = 1500;
  uint64_t seed = 1;
};

inline constexpr int64_t kShortestWord = 2;

// chrF, 0 to 100, of words of kShortestWord, kShortestWord + 1, ... 2 longest letters, decoded greedily by
// decode::Search. None of them is ever in the training.
std::vector<double> chrf_by_length(const ReversedWords& task);

}  // namespace gloss::lab
