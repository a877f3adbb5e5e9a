// What sinusoidal positions are, what they give to attention (Vaswani et al. 2017, 3.5), and how they and
// relative ones (Raffel et al. 2020, 2.1) carry on beyond the lengths of the training.
#pragma once

#include <cstdint>
#include <string>

#include "gloss/base/options.h"
#include "gloss/lab/report.h"

namespace gloss::lab {

class Positions {
 public:
  static constexpr const char* kName = "positions";
  static constexpr const char* kSummary =
      "what positions are, order without them, and longer words than trained";
  static constexpr const char* kRemoves = "the positions: nothing is added to embeddings or scores";

  enum class Figure { sinusoids, lengths };

  struct Options {
    int64_t d_model = 48;
    int64_t positions = 96;
    int64_t shift = 5;
    int64_t updates = 1500;
    int64_t longest = 8;
    int64_t buckets = 4, max_distance = 3;
    int64_t seed = 1;
    Figure figure = Figure::sinusoids;

    template <class Self, class Visitor>
    static void fields(Self& self, Visitor&& visit) {
      visit(Field("d-model", "N", "numbers of a position, an even number").range(2, 1024), self.d_model);
      visit(Field("positions", "N", "positions 0 to N - 1").range(8, 1024), self.positions);
      visit(Field("shift", "K", "PE(p + K) as a rotation of PE(p)").range(1, 10000), self.shift);
      visit(Field("updates", "N", "of each of two trainings on words said backwards").range(1500, 1e5),
            self.updates);
      visit(Field("longest", "N", "letters of a word of the training").range(6, 12), self.longest);
      visit(Field("buckets", "N", "for distances, of relative positions").range(4, 1024), self.buckets);
      visit(Field("max-distance", "N", "from here on distances share a bucket").range(1, 1e6),
            self.max_distance);
      visit(Field("seed", "N", "of words, embeddings and weights").at_least(0), self.seed);
      visit(Field("figure", "F", "that --output draws")
                .choices<Figure>({{Figure::sinusoids, "sinusoids"}, {Figure::lengths, "lengths"}}),
            self.figure);
    }
  };
  static Report run(const Options& options, Ingredient ingredient);
};

}  // namespace gloss::lab
