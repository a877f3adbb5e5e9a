// From additive attention (Bahdanau et al. 2015, A.1.2) to scaled dot products (Vaswani et al. 2017, eq. 1):
// the same queries and keys, another score, and values that are projected.
#pragma once

#include <cstdint>

#include "gloss/base/options.h"
#include "gloss/lab/report.h"

namespace gloss::lab {

class AdditiveToDot {
 public:
  static constexpr const char* kName = "additive-to-dot";
  static constexpr const char* kSummary = "the same queries and keys, scored by a tanh or by a product";
  static constexpr const char* kRemoves = "the projection of the values, W_v";

  struct Options {
    int64_t queries = 4, n = 6;
    int64_t d = 8;  // d_a = d_k
    int64_t d_s = 5, d_h = 7, d_v = 7;
    int64_t seed = 1;

    template <class Self, class Visitor>
    static void fields(Self& self, Visitor&& visit) {
      visit(Field("queries", "N", "states s_i that look").range(1, 64), self.queries);
      visit(Field("n", "N", "annotations h_j that they look at").range(2, 64), self.n);
      visit(Field("d", "N", "width of queries and keys, d_a and d_k").range(1, 1024), self.d);
      visit(Field("d-s", "N", "width of a state").range(1, 1024), self.d_s);
      visit(Field("d-h", "N", "width of an annotation").range(1, 1024), self.d_h);
      visit(Field("d-v", "N", "width of a value").range(1, 1024), self.d_v);
      visit(Field("seed", "N", "of what is drawn").at_least(0), self.seed);
    }
  };
  static Report run(const Options& options, Ingredient ingredient);
};

}  // namespace gloss::lab
