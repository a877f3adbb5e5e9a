// Counting n-grams of anything that can be numbered: code points, or words by their ids.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

namespace gloss::evaluate {

// How often each n-gram stands in a sequence. The keys are views into the sequence.
using NgramCounts = std::unordered_map<std::u32string_view, int64_t>;

inline NgramCounts count_ngrams(std::u32string_view sequence, size_t n) {
  NgramCounts counts;
  for (size_t i = 0; i + n <= sequence.size(); ++i) ++counts[sequence.substr(i, n)];
  return counts;
}

// Numbers words in the order they are first seen, so that a sentence becomes a sequence of ids.
template <class Word>
class WordIds {
 public:
  char32_t operator()(const Word& word) {
    return ids_.try_emplace(word, static_cast<char32_t>(ids_.size())).first->second;
  }

 private:
  std::unordered_map<Word, char32_t> ids_;
};

}  // namespace gloss::evaluate
