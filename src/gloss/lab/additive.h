// Additive attention (Bahdanau, Cho and Bengio 2015, A.1.2): score, normalise, aggregate; beside a recurrent
// step, whose sum and tanh it shares and whose recurrence it lacks.
#pragma once

#include <cstdint>

#include "gloss/base/options.h"
#include "gloss/lab/report.h"

namespace gloss::lab {

class Additive {
 public:
  static constexpr const char* kName = "additive";
  static constexpr const char* kSummary = "score, normalise, aggregate, beside a step of a recurrent network";
  static constexpr const char* kRemoves = "the softmax over j: it runs over the queries i instead";

  struct Options {
    int64_t queries = 4, n = 6;
    int64_t d_a = 4, d_s = 5, d_h = 7;
    int64_t seed = 1;

    template <class Self, class Visitor>
    static void fields(Self& self, Visitor&& visit) {
      visit(Field("queries", "N", "states s_i that look").range(2, 64), self.queries);
      visit(Field("n", "N", "annotations h_j that they look at").range(2, 64), self.n);
      visit(Field("d-a", "N", "width in which they meet").range(1, 1024), self.d_a);
      visit(Field("d-s", "N", "width of a state").range(1, 1024), self.d_s);
      visit(Field("d-h", "N", "width of an annotation").range(1, 1024), self.d_h);
      visit(Field("seed", "N", "of what is drawn").at_least(0), self.seed);
    }
  };
  static Report run(const Options& options, Ingredient ingredient);
};

}  // namespace gloss::lab
