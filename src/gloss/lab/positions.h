// What sinusoidal positions are and what they give to attention (Vaswani et al. 2017, 3.5).
#pragma once

#include <cstdint>
#include <string>

#include "gloss/base/options.h"
#include "gloss/lab/report.h"

namespace gloss::lab {

class Positions {
 public:
  static constexpr const char* kName = "positions";
  static constexpr const char* kSummary = "what sinusoidal positions are, and order without them";
  static constexpr const char* kRemoves = "the positions: nothing is added to the embeddings";

  struct Options {
    int64_t d_model = 48;
    int64_t positions = 96;
    int64_t shift = 5;
    int64_t seed = 1;

    template <class Self, class Visitor>
    static void fields(Self& self, Visitor&& visit) {
      visit(Field("d-model", "N", "numbers of a position, an even number").range(2, 1024), self.d_model);
      visit(Field("positions", "N", "positions 0 to N - 1").range(8, 1024), self.positions);
      visit(Field("shift", "K", "PE(p + K) as a rotation of PE(p)").range(1, 10000), self.shift);
      visit(Field("seed", "N", "of embeddings and weights of attention").at_least(0), self.seed);
    }
  };
  static Report run(const Options& options, Ingredient ingredient);
};

}  // namespace gloss::lab
