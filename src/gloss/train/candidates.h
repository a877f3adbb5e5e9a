// Which of the models that were validated is the one to leave.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "gloss/train/options.h"
#include "gloss/train/validation.h"

namespace gloss::train {

struct Candidate {
  int64_t update = -1;  // -1: nothing was validated yet
  ValidationScores scores;
};

// NaN and infinity are never better, not even than nothing.
inline bool better(const ValidationScores& scores, const Candidate& than, ValidMetric metric) {
  if (!std::isfinite(scores.perplexity)) return false;
  if (than.update < 0) return true;
  return metric == ValidMetric::bleu ? scores.bleu > than.scores.bleu
                                     : scores.perplexity < than.scores.perplexity;
}

// Adds an update to those whose parameters are averaged: the last `average` ones, each once, oldest first.
inline void note_validated(std::vector<int64_t>& validated, int64_t update, const ValidationScores& scores,
                           int64_t average) {
  if (average == 1 || !std::isfinite(scores.perplexity)) return;
  if (!validated.empty() && validated.back() == update) return;  // every step since was skipped
  validated.push_back(update);
  if (static_cast<int64_t>(validated.size()) > average) validated.erase(validated.begin());
}

}  // namespace gloss::train
