// White space of Unicode in UTF-8 text: what separates words and what a blank line is made of.
#pragma once

#include <cstddef>
#include <string_view>

namespace gloss::text {

// The bytes of the white space character at the start of `text`; 0 if there is none.
size_t space_length(std::string_view text);
// The first position from `at` on where no white space stands.
size_t skip_spaces(std::string_view text, size_t at);
// Without white space at its ends.
std::string_view trimmed(std::string_view text);

inline bool is_blank(std::string_view text) {
  return skip_spaces(text, 0) == text.size();
}

}  // namespace gloss::text
