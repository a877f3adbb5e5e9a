// From the decoder's states to the probability of a translation (Vaswani et al. 2017, 3.4; Press and Wolf
// 2017).
#pragma once

#include <cstdint>
#include <string>

#include "gloss/base/options.h"
#include "gloss/lab/report.h"

namespace gloss::lab {

class OutputLayer {
 public:
  static constexpr const char* kName = "output-layer";
  static constexpr const char* kSummary = "logits, softmax and P(y | x); tied and untied";
  static constexpr const char* kRemoves = "the softmax over words: it runs over the positions instead";

  struct Options {
    int64_t target = 5;
    int64_t vocabulary = 12;
    int64_t d_model = 32;
    int64_t seed = 1;

    template <class Self, class Visitor>
    static void fields(Self& self, Visitor&& visit) {
      visit(Field("target", "N", "tokens of the target with its end symbol").range(2, 12), self.target);
      visit(Field("vocabulary", "N", "words with </s> and the start symbol").range(6, 1000), self.vocabulary);
      visit(Field("d-model", "N", "a multiple of 4").range(4, 512), self.d_model);
      visit(Field("seed", "N", "of sentences and weights").at_least(0), self.seed);
    }
  };
  static Report run(const Options& options, Ingredient ingredient);
};

}  // namespace gloss::lab
