// Why scores are divided by sqrt(d_k): the variance of a sum of d_k products grows with d_k (Vaswani et al.
// 2017, 3.2.1, footnote 4).
#pragma once

#include <cstdint>
#include <string>

#include "gloss/base/options.h"
#include "gloss/lab/report.h"

namespace gloss::lab {

class Scaling {
 public:
  static constexpr const char* kName = "scaling";
  static constexpr const char* kSummary = "why scores are divided by sqrt(d_k)";
  static constexpr const char* kRemoves = "the division by sqrt(d_k)";

  // What the numbers of q and k are drawn from; each has mean 0 and variance 1.
  enum class Distribution { normal, uniform, sign };

  struct Options {
    int64_t largest = 1024;  // d_k runs over the powers of two up to it
    int64_t samples = 6000;
    Distribution distribution = Distribution::normal;
    int64_t seed = 1;

    template <class Self, class Visitor>
    static void fields(Self& self, Visitor&& visit) {
      visit(Field("largest", "N", "d_k runs from 1 to N in powers of two").range(2, 1 << 16), self.largest);
      visit(Field("samples", "N", "pairs of q and k for each d_k").range(1000, 1e7), self.samples);
      visit(Field("distribution", "D", "of each number, with mean 0 and variance 1")
                .template choices<Distribution>({{Distribution::normal, "normal"},
                                                 {Distribution::uniform, "uniform"},
                                                 {Distribution::sign, "sign"}}),
            self.distribution);
      visit(Field("seed", "N", "of what is drawn").at_least(0), self.seed);
    }
  };
  static Report run(const Options& options, Ingredient ingredient);
};

}  // namespace gloss::lab
