// Self-attention and cross-attention: the same function over one sequence or two (Vaswani et al.
// 2017, 3.2.3).
#pragma once

#include <cstdint>
#include <string>

#include "gloss/base/options.h"
#include "gloss/lab/report.h"

namespace gloss::lab {

class SelfCross {
 public:
  static constexpr const char* kName = "self-cross";
  static constexpr const char* kSummary = "queries, keys and values from one sequence or from two";
  static constexpr const char* kRemoves = "the second sequence: keys and values come from the target as well";

  struct Options {
    int64_t source = 6;
    int64_t target = 4;
    int64_t d_model = 16;
    int64_t layers = 2;
    int64_t heads = 2;
    int64_t seed = 1;

    template <class Self, class Visitor>
    static void fields(Self& self, Visitor&& visit) {
      visit(Field("source", "N", "tokens of the source, n_k").range(2, 64), self.source);
      visit(Field("target", "N", "tokens of the target, n_q").range(2, 64), self.target);
      visit(Field("d-model", "N", "an even multiple of the heads").range(4, 256), self.d_model);
      visit(Field("layers", "N", "of encoder and decoder").range(2, 6), self.layers);
      visit(Field("heads", "N", "of each layer").range(1, 16), self.heads);
      visit(Field("seed", "N", "of sentences and weights").at_least(0), self.seed);
    }
  };
  static Report run(const Options& options, Ingredient ingredient);
};

}  // namespace gloss::lab
