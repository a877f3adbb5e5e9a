// The few Unicode operations the metrics need, with the meaning they have in Python's str, since sacreBLEU is
// written in Python.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace gloss::evaluate {

// Code points; throws Error for invalid UTF-8.
std::u32string decode_utf8(std::string_view text);
std::string encode_utf8(std::u32string_view text);

// str.lower(): full case mapping without a language (İ becomes i and a combining dot; a final Σ becomes ς).
// `text` must be valid UTF-8.
std::string lower(std::string_view text);

// Whether str.split() splits here.
bool is_space(char32_t c);
// str.split(): the words between runs of white space. Views into `text`, which must be valid UTF-8.
std::vector<std::string_view> split(std::string_view text);
std::vector<std::u32string_view> split(std::u32string_view text);

}  // namespace gloss::evaluate
