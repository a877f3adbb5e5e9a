// Where the sentences of a line begin.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

namespace gloss::text {

// Byte positions in `line` (valid UTF-8), ascending, the first 0; empty for an empty line. By Unicode's rules
// (UAX #29) as ICU has them, which know no abbreviations: "Dr. Smith" may count as two. White space belongs
// to the sentence before it.
std::vector<size_t> sentence_starts(std::string_view line);

}  // namespace gloss::text
