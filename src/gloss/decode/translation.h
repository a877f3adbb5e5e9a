// What becomes of a line.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace gloss::decode {

struct Candidate {
  std::string text;
  float log_probability = 0;
  float score = 0;              // log_probability / tokens^alpha
  std::vector<int32_t> tokens;  // of the target vocabulary, with the end symbols
  std::vector<float> token_log_probabilities;
  bool finished = true;  // ends in the end symbol
};

struct Translation {
  int64_t line = 0;                    // counted from 0, in the order of input
  std::string source;                  // the line as it came
  bool translated = true;              // false: nothing to translate, the text is the source
  std::vector<int32_t> source_tokens;  // with the end symbols; of all parts, where the line was split
  // The best first, at least one. Where a line was translated in parts, the k-th is made of the k-th of every
  // part (the last, where a part has fewer).
  std::vector<Candidate> candidates;
  int64_t key_value_rows = 0;  // target keys and values projected a layer, by all hypotheses

  const std::string& text() const { return candidates.front().text; }
};

// A pair of lines, scored.
struct ScoredPair {
  std::vector<int32_t> tokens;           // the target's, with the end symbol
  std::vector<float> log_probabilities;  // log P(y_t | y_<t, x), one a token
  double log_probability = 0;            // their sum
};

}  // namespace gloss::decode
