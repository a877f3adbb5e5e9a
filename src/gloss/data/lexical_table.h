// LexicalTable: how probable each target piece is as a translation of a source piece, and the files that say
// so.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "gloss/text/vocabulary.h"

namespace gloss::data {

// The source of what is linked with nothing. Marian passes over its lines.
inline constexpr std::string_view kNullWord = "NULL";

// A line of a lexical table as Moses' extract_lex writes it and Marian's --shortlist reads it: "target source
// probability", parted by spaces or tabs.
struct LexicalLine {
  std::string_view target, source;  // not empty, without spaces and tabs
  float probability = 0;            // p(target | source), 0 to 1
};

// Hands over the lines of a file one after another, with their numbers from 1. Throws Error that names file
// and line for a line of another form, for a probability that is none, and for all that text::LineReader
// refuses.
using LexicalVisitor = std::function<void(const LexicalLine& line, int64_t number)>;
void read_lexical_lines(const std::filesystem::path& path, const LexicalVisitor& visit);

// p(target | source) of two pieces, by their ids in the vocabularies of their languages.
struct LexicalEntry {
  int32_t source = 0;  // kNoSource: the row of NULL
  int32_t target = 0;
  float probability = 0;
  bool operator==(const LexicalEntry&) const = default;
};
inline constexpr int32_t kNoSource = -1;

struct LexicalTable {
  // Row by row of the source pieces, NULL's first; in a row the most probable first, of equals the lower id.
  // No pair occurs twice.
  std::vector<LexicalEntry> entries;
  // Lines that were read and passed over: one of their words is no piece of its vocabulary.
  int64_t unknown_lines = 0;
};

// Puts entries into the order above.
void sort_lexical(std::vector<LexicalEntry>& entries);

// A table of pieces. The order of its lines plays no part; 16 bytes are held a line. What the target NULL
// would translate is passed over: nothing comes of it. Throws Error as read_lexical_lines does, for a pair
// that stands twice, naming both lines, and for a file none of whose lines has pieces of both vocabularies.
LexicalTable read_lexical_table(const std::filesystem::path& path, const text::Vocabulary& source,
                                const text::Vocabulary& target);

// Hands over the table as text, some lines at a time, probabilities with all their digits: read again it is
// the same. Gives the number of entries left out, because no line can hold their pieces: one has white space
// in it, or is called NULL.
int64_t write_lexical_table(const LexicalTable& table, const text::Vocabulary& source,
                            const text::Vocabulary& target,
                            const std::function<void(std::string_view text)>& write);

}  // namespace gloss::data
