// Judging a model on parallel text it does not learn from.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "gloss/data/batches.h"
#include "gloss/data/corpus.h"
#include "gloss/models/model.h"
#include "gloss/text/tokenizer.h"

namespace gloss::train {

struct ValidationScores {
  double perplexity = 0;  // e^(negative log-likelihood a target piece), without label smoothing
  double bleu = -1;       // of greedy translations, detokenised, 13a; -1: not asked for
};

// "perplexity 8.125, BLEU 31.20"
std::string text_of(const ValidationScores& scores);

class Validation {
 public:
  // The corpus must outlive this object. Throws Error when it holds no pair with text on both sides.
  Validation(const data::ParallelCorpus& corpus, const text::Tokenizer& tokenizer, int64_t batch_tokens,
             bool bleu);
  // Asks before each batch whether to stop, and then gives nothing.
  std::optional<ValidationScores> operator()(Context& context, const models::Model& model,
                                             const std::function<bool()>& stopped) const;

 private:
  const data::ParallelCorpus& corpus_;
  text::Tokenizer tokenizer_;
  data::ValidationBatches batches_;
  bool bleu_;
};

}  // namespace gloss::train
