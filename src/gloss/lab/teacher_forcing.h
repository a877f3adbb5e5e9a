// Teacher forcing: the decoder reads the target one token late, all of it in one masked pass (Williams and
// Zipser 1989; Vaswani et al. 2017, 3.1 and 3.2.3).
#pragma once

#include <cstdint>
#include <string>

#include "gloss/base/options.h"
#include "gloss/lab/report.h"

namespace gloss::lab {

class TeacherForcing {
 public:
  static constexpr const char* kName = "teacher-forcing";
  static constexpr const char* kSummary = "one masked pass equals step by step";
  static constexpr const char* kRemoves = "the shift: the decoder reads the very token it must produce";

  struct Options {
    int64_t source = 7;
    int64_t target = 6;
    int64_t d_model = 32;
    int64_t layers = 2;
    int64_t heads = 4;
    int64_t seed = 1;

    template <class Self, class Visitor>
    static void fields(Self& self, Visitor&& visit) {
      visit(Field("source", "N", "tokens of the source").range(2, 32), self.source);
      visit(Field("target", "N", "tokens of the target with its end symbol").range(3, 12), self.target);
      visit(Field("d-model", "N", "an even multiple of the heads").range(4, 256), self.d_model);
      visit(Field("layers", "N", "of encoder and decoder").range(1, 6), self.layers);
      visit(Field("heads", "N", "of each layer").range(1, 16), self.heads);
      visit(Field("seed", "N", "of sentences and weights").at_least(0), self.seed);
    }
  };
  static Report run(const Options& options, Ingredient ingredient);
};

}  // namespace gloss::lab
