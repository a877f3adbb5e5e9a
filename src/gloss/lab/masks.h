// Masks: scores + M with M of 0 and -inf (Vaswani et al. 2017, 3.2.3) is what a mask by name does, bit for
// bit.
#pragma once

#include <cstdint>

#include "gloss/base/options.h"
#include "gloss/lab/report.h"

namespace gloss::lab {

class Masks {
 public:
  static constexpr const char* kName = "masks";
  static constexpr const char* kSummary = "padding and causal masks, by name and as a matrix M";
  static constexpr const char* kRemoves = "the masks";

  struct Options {
    int64_t n = 6;
    int64_t padded = 2;
    int64_t d_k = 4;
    int64_t seed = 1;

    template <class Self, class Visitor>
    static void fields(Self& self, Visitor&& visit) {
      visit(Field("n", "N", "tokens").range(3, 64), self.n);
      visit(Field("padded", "N", "of them padding, at the end; below n").range(1, 63), self.padded);
      visit(Field("d-k", "N", "numbers of a query and a key").range(1, 1024), self.d_k);
      visit(Field("seed", "N", "of what is drawn").at_least(0), self.seed);
    }
  };
  static Report run(const Options& options, Ingredient ingredient);
};

}  // namespace gloss::lab
