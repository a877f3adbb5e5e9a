// Why large scores stop the learning: the Jacobian of the softmax, p_i (delta_ik - p_k), vanishes near a
// one-hot p, and with it the gradient of queries and keys (Vaswani et al. 2017, 3.2.1).
#pragma once

#include <cstdint>

#include "gloss/base/options.h"
#include "gloss/lab/report.h"

namespace gloss::lab {

class Saturation {
 public:
  static constexpr const char* kName = "saturation";
  static constexpr const char* kSummary =
      "the Jacobian of the softmax, and the gradient that reaches q and k";
  static constexpr const char* kRemoves = "the division by sqrt(d_k)";

  struct Options {
    int64_t largest = 1024;  // d_k runs over the powers of four up to it
    int64_t keys = 8;
    int64_t samples = 400;
    int64_t seed = 1;

    template <class Self, class Visitor>
    static void fields(Self& self, Visitor&& visit) {
      visit(Field("largest", "N", "d_k runs from 1 to N in powers of four").range(1024, 1 << 14),
            self.largest);
      visit(Field("keys", "N", "that a query looks at").range(8, 32), self.keys);
      visit(Field("samples", "N", "queries for each d_k").range(400, 1e5), self.samples);
      visit(Field("seed", "N", "of what is drawn").at_least(0), self.seed);
    }
  };
  static Report run(const Options& options, Ingredient ingredient);
};

}  // namespace gloss::lab
