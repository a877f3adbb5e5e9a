// What a layer costs against the length of a sequence (Vaswani et al. 2017, table 1).
#pragma once

#include <cstdint>
#include <string>

#include "gloss/base/options.h"
#include "gloss/lab/report.h"

namespace gloss::lab {

class Complexity {
 public:
  static constexpr const char* kName = "complexity";
  static constexpr const char* kSummary = "time and memory against the length of a sequence";
  static constexpr const char* kRemoves = "the fusing: attention stores its n x n weights";
  static constexpr bool kTimed = true;

  struct Options {
    int64_t longest = 256;
    int64_t d_model = 32;
    int64_t seed = 1;

    template <class Self, class Visitor>
    static void fields(Self& self, Visitor&& visit) {
      visit(Field("longest", "N", "n runs from N / 16 to N in powers of two").range(128, 4096), self.longest);
      visit(Field("d-model", "N", "numbers of a row: d_k, d_v, d_a and d_h").range(8, 512), self.d_model);
      visit(Field("seed", "N", "of rows and weights").at_least(0), self.seed);
    }
  };
  static Report run(const Options& options, Ingredient ingredient);
};

}  // namespace gloss::lab
