#include "gloss/text/utf8.h"

#include <cstdint>
#include <cstring>

namespace gloss::text {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

struct Prefix {
  size_t length = 0;      // bytes at the start that can begin a well-formed character
  bool complete = false;  // they are a whole one
};

// Table 3-7: the lead byte decides the length and the range of the second byte; all later bytes are 80..BF.
Prefix scan(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  if (text.empty()) return {};
  const unsigned char lead = byte(0);
  if (lead < 0x80) return {1, true};
  size_t length = 0;
  unsigned char low = 0x80, high = 0xBF;
  if (lead >= 0xC2 && lead <= 0xDF) {
    length = 2;
  } else if (lead >= 0xE0 && lead <= 0xEF) {
    length = 3;
    if (lead == 0xE0) low = 0xA0;   // below: overlong
    if (lead == 0xED) high = 0x9F;  // above: surrogates
  } else if (lead >= 0xF0 && lead <= 0xF4) {
    length = 4;
    if (lead == 0xF0) low = 0x90;   // below: overlong
    if (lead == 0xF4) high = 0x8F;  // above: beyond 10FFFF
  } else {
    return {};
  }
  for (size_t i = 1; i < length; ++i) {
    if (i >= text.size() || byte(i) < low || byte(i) > high) return {i, false};
    low = 0x80;
    high = 0xBF;
  }
  return {length, true};
}

// How many bytes from the start are ASCII, in steps of eight (the rest is looked at one by one).
size_t ascii_run(std::string_view text) {
  size_t i = 0;
  for (; i + 8 <= text.size(); i += 8) {
    uint64_t word;
    std::memcpy(&word, text.data() + i, 8);
    if (word & 0x8080808080808080u) break;
  }
  return i;
}

}  // namespace

size_t first_invalid_utf8(std::string_view text) {
  size_t i = 0;
  while (i < text.size()) {
    if (static_cast<unsigned char>(text[i]) < 0x80) {
      const size_t run = ascii_run(text.substr(i));
      i += run > 0 ? run : 1;
      continue;
    }
    const Prefix prefix = scan(text.substr(i));
    if (!prefix.complete) return i;
    i += prefix.length;
  }
  return std::string_view::npos;
}

std::string replace_invalid_utf8(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const size_t good = std::min(first_invalid_utf8(text), text.size());
    result.append(text.substr(0, good));
    text.remove_prefix(good);
    if (text.empty()) break;
    result.append(kReplacement);
    const size_t bad = scan(text).length;
    text.remove_prefix(bad > 0 ? bad : 1);
  }
  return result;
}

size_t utf8_length(std::string_view text) {
  const Prefix prefix = scan(text);
  return prefix.complete ? prefix.length : 0;
}

size_t floor_to_character(std::string_view text, size_t position) {
  if (position >= text.size()) return text.size();
  while (position > 0 && (static_cast<unsigned char>(text[position]) & 0xC0) == 0x80) --position;
  return position;
}

}  // namespace gloss::text
