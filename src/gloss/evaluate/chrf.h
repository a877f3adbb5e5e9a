// chrF (Popović 2015) and chrF++ (Popović 2017), equal to sacreBLEU (Post 2018).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gloss/evaluate/corpus.h"

namespace gloss::evaluate {

struct ChrfOptions {
  int char_order = 6;  // longest character n-gram
  int word_order = 0;  // longest word n-gram; 2 is chrF++
  int beta = 2;        // how many times recall counts as much as precision
  bool lowercase = false;
  bool whitespace = false;  // count white space as characters
};

struct ChrfScore {
  double score = 0;  // 0..100
  ChrfOptions options;
  int64_t references = 1;  // a line

  // "nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no|version:2.6.0"
  std::string signature() const;
  // "chrF2 = 63.21", "chrF2++ = ..." with word n-grams
  std::string text() const;
};

// Corpus chrF; of several references each line takes the one it agrees with best. Throws Error for what
// check_corpus() refuses.
ChrfScore chrf(const std::vector<std::string>& hypotheses, const References& references,
               const ChrfOptions& options = {});

}  // namespace gloss::evaluate
