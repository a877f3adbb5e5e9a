// Words between white space, and which word each piece of a segmented line belongs to.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gloss/text/tokenizer.h"

namespace gloss::text {

struct Words {
  std::vector<std::string> texts;
  std::vector<int32_t> word_of;  // one a piece: an index into texts; -1 for </s>
};

// Of a line and what it was encoded to: words as they stand in the line, so that their numbers are those of
// any tool that splits at white space.
Words words_of(std::string_view line, const EncodedLine& encoded);
// Of ids without a line: a word begins where a piece does that carries the mark of a space.
Words words_of(const Vocabulary& vocabulary, std::span<const int32_t> ids);

}  // namespace gloss::text
