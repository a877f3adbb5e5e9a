// How to search: width, lengths, what may not be said, sampling.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace gloss::decode {

// Drawing tokens instead of searching for the best: softmax(logits / temperature), cut to the top_k likeliest
// tokens, then to the fewest of those that hold top_p of the remaining probability (Holtzman et al. 2020).
struct Sampling {
  double temperature = 1;
  int64_t top_k = 0;  // 0: all
  double top_p = 1;   // 1: all
  uint64_t seed = 1;  // with the source's ids, the number of the sample and the step, keys every draw
};

// What becomes of a hypothesis that reaches the length cap.
enum class AtCap : uint8_t {
  force_end,   // its last token is the end symbol at no cost (`forced_eos_token_id` in model folders)
  leave_open,  // it is taken as it stands, without an end symbol
};

// Lengths count target tokens with the end symbol.
struct SearchOptions {
  int beam = 5;               // 1 is greedy: the first end symbol ends the sentence
  double length_penalty = 1;  // alpha: score = log-probability / length^alpha
  // Of beam search: a sentence ends once patience x beam hypotheses have ended (Kasai et al. 2022; with 1 as
  // CTranslate2, and transformers with early_stopping=True). 0: when no other can win any more, which costs
  // about two thirds more rows.
  double patience = 0;
  int64_t min_length = 0;
  int64_t max_length = 0;  // 0: length_factor x source length + length_extra
  double length_factor = 3;
  int64_t length_extra = 10;
  AtCap at_cap = AtCap::force_end;
  int n_best = 1;           // hypotheses wanted, at most `beam`; when sampling, independent samples
  int batch = 64;           // sentences at a time
  int no_repeat_ngram = 0;  // no hypothesis holds the same n tokens twice; 0: off
  std::vector<int32_t> forbidden_tokens;  // besides those the model forbids
  std::optional<Sampling> sampling;       // `beam` plays no part then
};

// Throws UsageError naming the first option that makes no sense and what it may be.
void validate(const SearchOptions& options);

// The greatest length of a translation of a source of `source_length` tokens (with its end symbol). A cap
// that comes from the source gives way to min_length.
int64_t length_cap(const SearchOptions& options, int64_t source_length);

}  // namespace gloss::decode
