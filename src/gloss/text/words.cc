#include "gloss/text/words.h"

#include <algorithm>

#include "gloss/base/error.h"
#include "gloss/text/segmenter.h"

namespace gloss::text {

std::vector<std::string_view> words_of(std::string_view line) {
  constexpr std::string_view kBlanks = " \t";
  std::vector<std::string_view> words;
  size_t begin = line.find_first_not_of(kBlanks);
  while (begin != std::string_view::npos) {
    const size_t end = std::min(line.find_first_of(kBlanks, begin), line.size());
    words.push_back(line.substr(begin, end - begin));
    begin = line.find_first_not_of(kBlanks, end);
  }
  return words;
}

Words words_of(std::string_view line, std::span<const EncodedLine::Span> spans) {
  const auto texts = words_of(line);
  Words words{{texts.begin(), texts.end()}, {}};
  for (const EncodedLine::Span& span : spans) {
    require(0 <= span.begin && span.begin <= span.end && span.end <= static_cast<int64_t>(line.size()),
            "a piece from byte {} to {} is not inside a line of {} bytes", span.begin, span.end, line.size());
    // The first word that is not wholly before the piece.
    const auto word = std::ranges::partition_point(texts, [&](std::string_view each) {
      return each.data() - line.data() + std::ssize(each) <= span.begin;
    });
    words.word_of.push_back(word == texts.end() ? kNoWord : static_cast<int32_t>(word - texts.begin()));
  }
  return words;
}

Words words_of(const Vocabulary& vocabulary, std::span<const int32_t> ids) {
  Words words;
  bool begins = true;  // the next text begins a word
  for (const int32_t id : ids) {
    if (id == vocabulary.end_id()) {
      words.word_of.push_back(kNoWord);
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
