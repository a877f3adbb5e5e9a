#include "gloss/text/punctuation.h"

#include <gtest/gtest.h>

namespace gloss::text {
namespace {

TEST(Punctuation, IsMarksAlone) {
  for (const char* text : {".", ",", "...", "?!", "-", "(", "»", "“", "。", "،", "।", "¿", "…", "_", "'"})
    EXPECT_TRUE(is_punctuation(text)) << text;
  for (const char* text : {"", "a", "a.", ".a", " ", ". ", "7", "$", "+", "😀", "漢"})
    EXPECT_FALSE(is_punctuation(text)) << text;
}

TEST(Punctuation, IsNotWhatIsReadAsAWord) {
  for (const char* text : {"%", "&", "#", "@", "§", "‰", "&.", "＆"})
    EXPECT_FALSE(is_punctuation(text)) << text;
}

}  // namespace
}  // namespace gloss::text
