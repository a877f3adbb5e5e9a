// Multi-head attention (Vaswani et al. 2017, 3.2.2): the shapes of every matrix on the way, and what a second
// head is for.
#pragma once

#include <cstdint>

#include "gloss/base/options.h"
#include "gloss/lab/report.h"

namespace gloss::lab {

class MultiHead {
 public:
  static constexpr const char* kName = "multi-head";
  static constexpr const char* kSummary = "every matrix and its shape; two relations need two heads";
  static constexpr const char* kRemoves = "the second head";

  struct Options {
    int64_t n = 5, batch = 3;
    int64_t d_model = 8, heads = 2;
    int64_t updates = 400;
    int64_t seed = 1;

    template <class Self, class Visitor>
    static void fields(Self& self, Visitor&& visit) {
      visit(Field("n", "N", "tokens of a sentence").range(1, 256), self.n);
      visit(Field("batch", "N", "sentences").range(1, 64), self.batch);
      visit(Field("d-model", "N", "numbers of a token").range(1, 1024), self.d_model);
      visit(Field("heads", "N", "of the matrices that are shown; they divide d-model").range(1, 64),
            self.heads);
      visit(Field("updates", "N", "of the training on the two relations").range(400, 1e5), self.updates);
      visit(Field("seed", "N", "of what is drawn").at_least(0), self.seed);
    }
  };
  static Report run(const Options& options, Ingredient ingredient);
};

}  // namespace gloss::lab
