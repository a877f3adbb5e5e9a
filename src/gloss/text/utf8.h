// UTF-8 as Unicode defines it (chapter 3.9, table 3-7): no overlong forms, no surrogates, nothing above
// 10FFFF.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace gloss::text {

// The position of the first byte that does not belong to a well-formed character; npos when there is none.
size_t first_invalid_utf8(std::string_view text);

inline bool is_utf8(std::string_view text) {
  return first_invalid_utf8(text) == std::string_view::npos;
}

// Puts U+FFFD in place of each maximal ill-formed part (Unicode's recommendation, and what browsers do).
std::string replace_invalid_utf8(std::string_view text);

// The number of bytes of the well-formed character at the start of `text`, 1 to 4; 0 when there is none.
size_t utf8_length(std::string_view text);

// The largest position <= `position` where a character of well-formed `text` starts (or text ends).
size_t floor_to_character(std::string_view text, size_t position);

}  // namespace gloss::text
