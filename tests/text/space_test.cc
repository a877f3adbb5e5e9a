#include "gloss/text/space.h"

#include <gtest/gtest.h>

#include <string>

namespace gloss::text {
namespace {

TEST(Space, IsWhatUnicodeSays) {
  for (const std::string_view space : {" ", "\t", "\r", "\v", "\f", "\u0085", "\u00A0", "\u1680", "\u2003",
                                       "\u2028", "\u202F", "\u205F", "\u3000"}) {
    EXPECT_EQ(space_length(space), space.size());
    EXPECT_EQ(space_length(std::string(space) + "a"), space.size());
    EXPECT_TRUE(is_blank(std::string(space) + " " + std::string(space)));
  }
  // A zero-width space and joiner are no white space, nor is the beginning of a longer character.
  for (const std::string_view other : {"", "a", "\u200B", "\u200D", "\uFEFF", "\xC2", "\xE2\x80", "\u6F22"}) {
    EXPECT_EQ(space_length(other), 0u);
  }
}

TEST(Space, IsTrimmedAtBothEndsAndNowhereElse) {
  EXPECT_EQ(trimmed(" \u3000a \u00A0b\t\u2003"), "a \u00A0b");
  EXPECT_EQ(trimmed("\u6F22\u5B57"), "\u6F22\u5B57");
  EXPECT_EQ(trimmed("\u00A0 \t"), "");
  EXPECT_EQ(trimmed(""), "");
  EXPECT_EQ(skip_spaces("ab  c", 2), 4u);
  EXPECT_EQ(skip_spaces("ab", 2), 2u);
}

}  // namespace
}  // namespace gloss::text
