// A task of two relations, learned by one layer of attention with one head or more.
#pragma once

#include <cstdint>
#include <vector>

namespace gloss::lab {

// Each place of a circle holds a vector of independent normal numbers. Asked for a place, say what the place
// before it and the place behind it hold. The positions are queries and keys, what places hold are the
// values: attention::MultiHeadAttention, trained by Adam on the squared error.
struct TwoRelations {
  int64_t places = 6;
  int64_t width = 4;  // numbers that a place holds
  int64_t d_k = 6;    // of every head
  int64_t heads = 2;
  int64_t d_v = 4;
  int64_t updates = 400;
  uint64_t seed = 1;
};

struct LearnedRelations {
  double error = 0;             // mean square over numbers of fresh circles; 1 is the error of answering 0
  std::vector<double> weights;  // [heads, places, places]
};

LearnedRelations learn(const TwoRelations& task);

}  // namespace gloss::lab
