// Word alignments from what a model's attention looked at while the translation was forced.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "gloss/decode/translator.h"
#include "gloss/decode/word_alignment.h"

namespace gloss::decode {

using models::AlignmentStep;
using models::AttentionChoice;
std::string text_of(const AttentionChoice& choice);  // "layer 2, mean of the heads, reading step"

using SentencePair = std::pair<std::string, std::string>;

class Aligner {
 public:
  // The translator outlives it. `threads` 0: one a core.
  Aligner(const Translator& translator, int threads);

  // Model::alignment.
  AttentionChoice usual() const;
  // Every layer, each head and their mean, at both steps: what tuning tries.
  std::vector<AttentionChoice> all() const;
  // Throws UsageError that says what exists.
  void check(const AttentionChoice& choice) const;

  // Links of each pair, for each choice: [choices][pairs]. A pair with a blank side has none.
  std::vector<std::vector<evaluate::Alignment>> align(std::span<const SentencePair> pairs,
                                                      std::span<const AttentionChoice> choices,
                                                      const WordAlignmentOptions& options = {});

 private:
  const Translator& translator_;
  Context context_;
};

}  // namespace gloss::decode
