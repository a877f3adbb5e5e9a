// A table of options with a field of every kind, for the tests of such tables.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gloss/base/options.h"

namespace gloss::tests {

enum class Colour { red, green };

struct Inner {
  int layers = 4;
  template <class Self, class Visitor>
  static void fields(Self& self, Visitor&& visit) {
    visit(Field("layers", "N", "layers of the model").at_least(1), self.layers);
  }
};

struct Sample {
  int64_t batch_tokens = 4096;
  double dropout = 0.1;
  double alpha = 1;
  bool quiet = false;
  bool cache = true;
  std::string preset = "tiny";
  std::string note;
  Colour colour = Colour::green;
  std::vector<std::string> train;
  uint64_t seed = 1;
  int8_t small = 0;
  Inner inner;

  template <class Self, class Visitor>
  static void fields(Self& self, Visitor&& visit) {
    visit(Field("batch-tokens", "N", "target tokens an update").range(1, 1e9).group("Batches"),
          self.batch_tokens);
    visit(Field("dropout", "P", "probability of dropping").range_below(0, 1), self.dropout);
    visit(Field("alpha", "A", "any number"), self.alpha);
    visit(Field("quiet", "", "say nothing"), self.quiet);
    visit(Field("cache", "", "keep keys and values"), self.cache);
    visit(Field("preset", "NAME", "size of the model").one_of({"tiny", "small", "base"}), self.preset);
    visit(Field("note", "TEXT", "anything"), self.note);
    visit(Field("colour", "C", "paint").choices<Colour>({{Colour::red, "red"}, {Colour::green, "green"}}),
          self.colour);
    visit(Field("train", "SRC TGT", "training files").count(2), self.train);
    visit(Field("seed", "N", "of every random number"), self.seed);
    visit(Field("small", "N", "a narrow type"), self.small);
    Inner::fields(self.inner, visit);
  }
};

}  // namespace gloss::tests
