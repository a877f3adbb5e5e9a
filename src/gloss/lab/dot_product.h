// The dot product as a score: |q| |k| cos; all queries in one product; which axis is normalised (Vaswani et
// al. 2017, 3.2.1).
#pragma once

#include <cstdint>

#include "gloss/base/options.h"
#include "gloss/lab/report.h"

namespace gloss::lab {

class DotProduct {
 public:
  static constexpr const char* kName = "dot-product";
  static constexpr const char* kSummary = "q.k is |q| |k| cos; rows are queries, and rows are normalised";
  static constexpr const char* kRemoves = "the softmax over keys: it runs over the queries instead";

  struct Options {
    int64_t queries = 5, keys = 7;
    int64_t d_k = 8;
    int64_t d_model = 12;
    int64_t seed = 1;

    template <class Self, class Visitor>
    static void fields(Self& self, Visitor&& visit) {
      visit(Field("queries", "N", "rows of Q").range(2, 256), self.queries);
      visit(Field("keys", "N", "rows of K and V").range(2, 256), self.keys);
      visit(Field("d-k", "N", "numbers of a query and a key").range(2, 1024), self.d_k);
      visit(Field("d-model", "N", "numbers of a token").range(1, 1024), self.d_model);
      visit(Field("seed", "N", "of what is drawn").at_least(0), self.seed);
    }
  };
  static Report run(const Options& options, Ingredient ingredient);
};

}  // namespace gloss::lab
