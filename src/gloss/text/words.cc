#include "gloss/text/words.h"

#include <algorithm>

#include "gloss/text/segmenter.h"
#include "gloss/text/space.h"

namespace gloss::text {

Words words_of(std::string_view line, const EncodedLine& encoded) {
  Words words;
  std::vector<size_t> ends;  // of the words, in bytes
  for (size_t at = skip_spaces(line, 0); at < line.size(); at = skip_spaces(line, at)) {
    size_t end = at;
    while (end < line.size() && space_length(line.substr(end)) == 0) ++end;
    words.texts.emplace_back(line.substr(at, end - at));
    ends.push_back(end);
    at = end;
  }
  for (size_t i = 0; i + 1 < encoded.spans.size(); ++i) {
    // A piece begins with the space before its word.
    const auto [begin, end, starts] = encoded.spans[i];
    const size_t first = std::min(skip_spaces(line, static_cast<size_t>(begin)), line.size());
    const auto word = std::ranges::upper_bound(ends, first) - ends.begin();
    words.word_of.push_back(
        static_cast<int32_t>(std::min(word, static_cast<std::ptrdiff_t>(ends.size()) - 1)));
  }
  words.word_of.push_back(-1);
  return words;
}

Words words_of(const Vocabulary& vocabulary, std::span<const int32_t> ids) {
  Words words;
  bool begins = true;  // the next text begins a word
  for (const int32_t id : ids) {
    if (id == vocabulary.end_id()) {
      words.word_of.push_back(-1);
      continue;
    }
    std::string_view piece = vocabulary.piece(id);
    if (piece.starts_with(kSpaceMark)) {
      piece.remove_prefix(kSpaceMark.size());
      begins = true;
    }
    // A mark alone stands with the word behind it.
    if (begins && (words.texts.empty() || !words.texts.back().empty())) words.texts.emplace_back();
    begins = false;
    words.texts.back().append(piece);
    words.word_of.push_back(static_cast<int32_t>(words.texts.size()) - 1);
  }
  return words;
}

}  // namespace gloss::text
