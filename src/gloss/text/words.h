// The words of a line, and which of them each piece of the segmented line belongs to.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gloss/text/tokenizer.h"

namespace gloss::text {

// What stands between spaces and tabs: the words that word links count. Other white space (a no-break space)
// parts none, as in Moses.
std::vector<std::string_view> words_of(std::string_view line);

inline constexpr int32_t kNoWord = -1;

struct Words {
  std::vector<std::string> texts;
  std::vector<int32_t> word_of;  // one a piece: an index into texts; kNoWord for the end symbol
};

// Of a line and where its pieces stand in it: words as they stand in the line, those of words_of(line). A
// piece over several belongs to the first, one on the space before a word to that word. Throws Error for
// spans that are not inside the line.
Words words_of(std::string_view line, std::span<const EncodedLine::Span> spans);
// Of ids without a line: a word begins where a piece does that carries the mark of a space.
Words words_of(const Vocabulary& vocabulary, std::span<const int32_t> ids);

}  // namespace gloss::text
