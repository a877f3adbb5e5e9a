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

// Which row of attention speaks for a target token: that of the step that produced it, or that of the next
// one, which reads it (Chen et al. 2020, "Shift-Att").
enum class AlignmentStep { emitting, reading };

// Where in the model to look.
struct AttentionChoice {
  int64_t layer = 0;
  std::optional<int64_t> head;  // none: the mean of all heads
  AlignmentStep step = AlignmentStep::emitting;
};
std::string text_of(const AttentionChoice& choice);  // "layer 2, mean of the heads, reading step"

using SentencePair = std::pair<std::string, std::string>;

class Aligner {
 public:
  // The translator outlives it. `threads` 0: one a core.
  Aligner(const Translator& translator, int threads);

  // The alignment layer of the model, its guided head or the mean of all, at the step the model's kind aligns
  // by.
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
