#include "gloss/decode/words.h"

#include <algorithm>

#include "gloss/base/error.h"
#include "gloss/evaluate/alignment.h"
#include "gloss/text/segmenter.h"

namespace gloss::decode {

Words words_of(std::string_view line, std::span<const text::EncodedLine::Span> spans) {
  const auto texts = evaluate::words_of(line);
  Words words{{texts.begin(), texts.end()}, {}};
  for (const text::EncodedLine::Span& span : spans) {
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

Words words_of(const text::Vocabulary& vocabulary, std::span<const int32_t> ids) {
  Words words;
  bool begins = true;  // the next text begins a word
  for (const int32_t id : ids) {
    if (id == vocabulary.end_id()) {
      words.word_of.push_back(kNoWord);
      continue;
    }
    std::string_view piece = vocabulary.piece(id);
    if (piece.starts_with(text::kSpaceMark)) {
      piece.remove_prefix(text::kSpaceMark.size());
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

}  // namespace gloss::decode
