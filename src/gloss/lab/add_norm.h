// What Add & Norm does to rows and to gradients (Vaswani et al. 2017, 3.1; Ba et al. 2016; Xiong et al.
// 2020).
#pragma once

#include <cstdint>
#include <string>

#include "gloss/base/options.h"
#include "gloss/lab/report.h"

namespace gloss::lab {

class AddNorm {
 public:
  static constexpr const char* kName = "add-norm";
  static constexpr const char* kSummary = "what residual connections and layer norm do";
  static constexpr const char* kRemoves = "the residual connections: f(x) alone instead of x + f(x)";

  struct Options {
    int64_t d_model = 32;
    int64_t tokens = 32;
    int64_t layers = 32;
    double epsilon = 1e-5;
    int64_t seed = 1;

    template <class Self, class Visitor>
    static void fields(Self& self, Visitor&& visit) {
      visit(Field("d-model", "N", "numbers of a row").range(16, 512), self.d_model);
      visit(Field("tokens", "N", "rows").range(16, 512), self.tokens);
      visit(Field("layers", "N", "gradients go through 1 to N layers; N up to d-model").range(8, 128),
            self.layers);
      visit(Field("epsilon", "E", "of the norm").range(1e-12, 0.1), self.epsilon);
      visit(Field("seed", "N", "of rows and weights").at_least(0), self.seed);
    }
  };
  static Report run(const Options& options, Ingredient ingredient);
};

}  // namespace gloss::lab
