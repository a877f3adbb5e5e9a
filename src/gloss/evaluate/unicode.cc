#include "gloss/evaluate/unicode.h"

#include <unicode/bytestream.h>
#include <unicode/casemap.h>
#include <unicode/utf8.h>

#include <limits>

#include "gloss/base/error.h"

namespace gloss::evaluate {
namespace {

// ICU counts in 32 bits.
int32_t length_of(std::string_view text) {
  require(text.size() <= static_cast<size_t>(std::numeric_limits<int32_t>::max()),
          "a line of {} bytes is too long to score", text.size());
  return static_cast<int32_t>(text.size());
}

}  // namespace

std::u32string decode_utf8(std::string_view text) {
  const int32_t length = length_of(text);
  std::u32string out;
  out.reserve(text.size());
  for (int32_t i = 0; i < length;) {
    UChar32 c = 0;
    const int32_t begin = i;
    U8_NEXT(text.data(), i, length, c);
    require(c >= 0, "invalid UTF-8 at byte {}", begin + 1);
    out.push_back(static_cast<char32_t>(c));
  }
  return out;
}

std::string encode_utf8(std::u32string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char32_t c : text) {
    char bytes[U8_MAX_LENGTH];
    int32_t length = 0;
    U8_APPEND_UNSAFE(bytes, length, static_cast<UChar32>(c));
    out.append(bytes, static_cast<size_t>(length));
  }
  return out;
}

std::string lower(std::string_view text) {
  std::string out;
  icu::StringByteSink<std::string> sink(&out, length_of(text));
  UErrorCode status = U_ZERO_ERROR;
  icu::CaseMap::utf8ToLower("", 0, icu::StringPiece(text.data(), length_of(text)), sink, nullptr, status);
  require(U_SUCCESS(status), "a line cannot be lower-cased: {}", u_errorName(status));
  return out;
}

bool is_space(char32_t c) {
  return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F ||
         c == 0x3000;
}

std::vector<std::string_view> split(std::string_view text) {
  std::vector<std::string_view> words;
  const int32_t length = length_of(text);
  int32_t begin = 0;  // of the word that is being read
  for (int32_t i = 0; i < length;) {
    const int32_t at = i;
    UChar32 c = 0;
    U8_NEXT(text.data(), i, length, c);
    if (c < 0 || !is_space(static_cast<char32_t>(c))) continue;
    if (at > begin) words.push_back(text.substr(static_cast<size_t>(begin), static_cast<size_t>(at - begin)));
    begin = i;
  }
  if (length > begin) words.push_back(text.substr(static_cast<size_t>(begin)));
  return words;
}

std::vector<std::u32string_view> split(std::u32string_view text) {
  std::vector<std::u32string_view> words;
  size_t begin = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    if (i < text.size() && !is_space(text[i])) continue;
    if (i > begin) words.push_back(text.substr(begin, i - begin));
    begin = i + 1;
  }
  return words;
}

}  // namespace gloss::evaluate
