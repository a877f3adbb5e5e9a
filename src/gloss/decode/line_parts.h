// A line of text as the model can take it: whole, or in parts where it is too long for one go.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "gloss/text/tokenizer.h"

namespace gloss::decode {

struct LinePart {
  std::string text;          // trimmed; with the line's language tag in front, if it has one
  text::EncodedLine source;  // of `text`
  std::string joint;         // what joins its translation to that of the part before
};

struct Splitting {
  bool sentences = false;    // every sentence is a part
  int64_t max_pieces = 512;  // of a part; where possible it ends with a sentence, else a word, else a piece
};

// The parts of a line in order, none without pieces: an empty result means that there is nothing to
// translate. Depends on the line alone. Parts hold all of the line but the white space between them.
std::vector<LinePart> split_line(const text::Tokenizer& tokenizer, std::string_view line,
                                 const Splitting& splitting);

}  // namespace gloss::decode
