// Keys and values are made once and remembered: the same text, far less work, some memory.
#pragma once

#include <cstdint>
#include <string>

#include "gloss/base/options.h"
#include "gloss/lab/report.h"

namespace gloss::lab {

class KvCache {
 public:
  static constexpr const char* kName = "kv-cache";
  static constexpr const char* kSummary = "the same text with the cache and without; rows and bytes";
  static constexpr const char* kRemoves = "the cache: each step projects its whole prefix again";
  static constexpr bool kTimed = true;

  struct Options {
    int64_t source = 9;
    int64_t target = 16;
    int64_t beam = 3;
    int64_t d_model = 32;
    int64_t layers = 2;
    int64_t heads = 4;
    int64_t seed = 1;

    template <class Self, class Visitor>
    static void fields(Self& self, Visitor&& visit) {
      visit(Field("source", "M", "tokens of the source, m").range(2, 512), self.source);
      visit(Field("target", "N", "tokens that are translated, n").range(2, 256), self.target);
      visit(Field("beam", "N", "hypotheses").range(1, 12), self.beam);
      visit(Field("d-model", "N", "an even multiple of the heads").range(2, 512), self.d_model);
      visit(Field("layers", "N", "of encoder and decoder").range(1, 6), self.layers);
      visit(Field("heads", "N", "of each layer").range(1, 16), self.heads);
      visit(Field("seed", "N", "of the sentence and the weights").at_least(0), self.seed);
    }
  };
  static Report run(const Options& options, Ingredient ingredient);
};

}  // namespace gloss::lab
