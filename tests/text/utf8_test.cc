#include "gloss/text/utf8.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace gloss::text {
namespace {

constexpr size_t kNone = std::string_view::npos;

// Any scalar value, encoded by the definition (Unicode table 3-6); surrogates too, which are not allowed.
std::string encode(uint32_t code) {
  const auto tail = [&](int shift) { return static_cast<char>(0x80 | ((code >> shift) & 0x3F)); };
  if (code < 0x80) return {static_cast<char>(code)};
  if (code < 0x800) return {static_cast<char>(0xC0 | code >> 6), tail(0)};
  if (code < 0x10000) return {static_cast<char>(0xE0 | code >> 12), tail(6), tail(0)};
  return {static_cast<char>(0xF0 | code >> 18), tail(12), tail(6), tail(0)};
}

TEST(Utf8, AcceptsEveryScalarValueAndNoSurrogate) {
  for (uint32_t code = 0; code < 0x110000; ++code) {
    const std::string text = encode(code);
    const bool surrogate = code >= 0xD800 && code <= 0xDFFF;
    ASSERT_EQ(is_utf8(text), !surrogate) << std::hex << code;
    ASSERT_EQ(utf8_length(text), surrogate ? 0 : text.size()) << std::hex << code;
  }
  EXPECT_FALSE(is_utf8(encode(0x110000)));
}

TEST(Utf8, NamesTheFirstBadByte) {
  EXPECT_EQ(first_invalid_utf8(""), kNone);
  EXPECT_EQ(first_invalid_utf8("plain text, long enough for steps of eight"), kNone);
  EXPECT_EQ(first_invalid_utf8("\xC0\x80"), 0u);                  // overlong NUL
  EXPECT_EQ(first_invalid_utf8("ab\xE0\x9F\xBF"), 2u);            // overlong, three bytes
  EXPECT_EQ(first_invalid_utf8("abcdefgh\xF0\x8F\xBF\xBF"), 8u);  // overlong, four bytes
  EXPECT_EQ(first_invalid_utf8("\xED\xA0\x80"), 0u);              // surrogate
  EXPECT_EQ(first_invalid_utf8("\xF4\x90\x80\x80"), 0u);          // above 10FFFF
  EXPECT_EQ(first_invalid_utf8("x\x80"), 1u);                     // nothing to continue
  EXPECT_EQ(first_invalid_utf8("xy\xE4\xB8"), 2u);                // cut short
  EXPECT_EQ(first_invalid_utf8("\xC3\xA9\xFF"), 2u);
  EXPECT_EQ(first_invalid_utf8("caf\xE9"), 3u);  // Latin-1
}

TEST(Utf8, ReplacesMaximalPartsAsUnicodeShows) {
  const std::string r = "\xEF\xBF\xBD";
  // Unicode 15, chapter 3.9, tables 3-8 to 3-11.
  EXPECT_EQ(replace_invalid_utf8("\xC0\xAF\xE0\x80\xBF\xF0\x81\x82\x41"),
            r + r + r + r + r + r + r + r + "A");
  EXPECT_EQ(replace_invalid_utf8("\xED\xA0\x80\xED\xBF\xBF\xED\xAF\x41"),
            r + r + r + r + r + r + r + r + "A");
  EXPECT_EQ(replace_invalid_utf8("\xF4\x91\x92\x93\xFF\x41\x80\xBF\x42"),
            r + r + r + r + r + "A" + r + r + "B");
  EXPECT_EQ(replace_invalid_utf8("\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41"), r + r + r + r + "A");
}

RC_GTEST_PROP(Utf8, ReplacingGivesValidTextAndKeepsValidText, (const std::string& bytes)) {
  const std::string replaced = replace_invalid_utf8(bytes);
  RC_ASSERT(is_utf8(replaced));
  RC_ASSERT(replace_invalid_utf8(replaced) == replaced);
  const size_t bad = first_invalid_utf8(bytes);
  if (bad == kNone) {
    RC_ASSERT(replaced == bytes);
  } else {
    RC_ASSERT(is_utf8(std::string_view(bytes).substr(0, bad)));
    RC_ASSERT(utf8_length(std::string_view(bytes).substr(bad)) == 0u);
  }
}

TEST(Utf8, FloorsToWhereACharacterStarts) {
  const std::string text =
      "a\xE4\xB8\xAD"
      "b";
  EXPECT_EQ(floor_to_character(text, 0), 0u);
  EXPECT_EQ(floor_to_character(text, 1), 1u);
  EXPECT_EQ(floor_to_character(text, 2), 1u);
  EXPECT_EQ(floor_to_character(text, 3), 1u);
  EXPECT_EQ(floor_to_character(text, 4), 4u);
  EXPECT_EQ(floor_to_character(text, 99), 5u);
}

}  // namespace
}  // namespace gloss::text
