// The feed-forward layer sees one position at a time (Vaswani et al. 2017, 3.3, eq. 2); attention mixes them.
#pragma once

#include <cstdint>
#include <string>

#include "gloss/base/options.h"
#include "gloss/lab/report.h"

namespace gloss::lab {

class FeedForward {
 public:
  static constexpr const char* kName = "feed-forward";
  static constexpr const char* kSummary = "position by position, while attention mixes";
  static constexpr const char* kRemoves = "the position-wise form: one layer over all rows at once";

  struct Options {
    int64_t tokens = 6;
    int64_t d_model = 32;
    int64_t d_ff = 64;
    int64_t heads = 4;
    int64_t layers = 4;
    int64_t changed = 2;
    int64_t seed = 1;

    template <class Self, class Visitor>
    static void fields(Self& self, Visitor&& visit) {
      visit(Field("tokens", "N", "rows").range(2, 64), self.tokens);
      visit(Field("d-model", "N", "numbers of a row, a multiple of the heads").range(2, 512), self.d_model);
      // Of fewer units every one may be silent (ReLU), before a token is changed and after.
      visit(Field("d-ff", "N", "width in between").range(32, 2048), self.d_ff);
      visit(Field("heads", "N", "of attention").range(1, 64), self.heads);
      visit(Field("layers", "N", "of the encoder whose shapes are shown").range(1, 10), self.layers);
      visit(Field("changed", "J", "the token that is changed, from 0").range(0, 63), self.changed);
      visit(Field("seed", "N", "of rows and weights").at_least(0), self.seed);
    }
  };
  static Report run(const Options& options, Ingredient ingredient);
};

}  // namespace gloss::lab
