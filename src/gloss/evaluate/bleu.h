// BLEU (Papineni et al. 2002), equal to sacreBLEU (Post 2018).
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "gloss/evaluate/corpus.h"
#include "gloss/evaluate/tokenize.h"

namespace gloss::evaluate {

enum class Smoothing {
  exp,  // the k-th n-gram order without a match counts 1 / 2^k matches (NIST, Chen and Cherry 2014, method 3)
  none,  // an order without a match makes the score 0
};

struct BleuOptions {
  Tokenizer tokenizer = Tokenizer::v13a;
  bool lowercase = false;
  Smoothing smoothing = Smoothing::exp;
  // Leave out orders longer than every hypothesis: for scores of single sentences.
  bool effective_order = false;
};

struct BleuScore {
  static constexpr size_t kOrder = 4;

  double score = 0;                       // 0..100
  std::array<int64_t, kOrder> correct{};  // n-grams of the hypotheses found in a reference, clipped
  std::array<int64_t, kOrder> total{};    // n-grams of the hypotheses
  std::array<double, kOrder> precisions{};
  double brevity_penalty = 1;
  int64_t hypothesis_length = 0;  // tokens
  int64_t reference_length = 0;   // tokens; of each line the reference closest in length, the shorter of two
  BleuOptions options;
  int64_t references = 1;  // a line

  double ratio() const;  // hypothesis_length / reference_length, 0 without references
  // "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0"
  std::string signature() const;
  // "BLEU = 41.02 71.0/47.5/34.3/24.5 (BP = 0.999 ratio = 0.999 hyp_len = 12096 ref_len = 12103)"
  std::string text() const;
};

// Corpus BLEU. Throws Error for what check_corpus() refuses.
BleuScore bleu(const std::vector<std::string>& hypotheses, const References& references,
               const BleuOptions& options = {});

}  // namespace gloss::evaluate
