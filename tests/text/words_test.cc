#include "gloss/text/words.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gloss::text {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Texts = std::vector<std::string>;
using Numbers = std::vector<int32_t>;

TEST(Words, StandBetweenSpacesAndTabs) {
  EXPECT_THAT(words_of(" a\u00A0b  c\td "), ElementsAre("a\u00A0b", "c", "d"));
  EXPECT_THAT(words_of(" \t"), IsEmpty());
  EXPECT_THAT(words_of(""), IsEmpty());
}

TEST(Words, OfALineStandAsTheyAreInIt) {
  // "  ab cd " as pieces [  a][b][ cd][ ].
  const std::vector<EncodedLine::Span> spans{{0, 3}, {3, 4}, {4, 7}, {7, 8}, {8, 8}};
  const Words words = words_of("  ab cd ", spans);
  EXPECT_EQ(words.texts, (Texts{"ab", "cd"}));
  EXPECT_EQ(words.word_of, (Numbers{0, 0, 1, kNoWord, kNoWord}));
}

TEST(Words, OfIdsBeginAtMarks) {
  const Vocabulary vocabulary(Texts{"</s>", "<unk>", "▁ein", "▁Hund", "e", "▁", ".", "<pad>"});
  const Words words = words_of(vocabulary, Numbers{2, 3, 4, 5, 6, 0});
  EXPECT_EQ(words.texts, (Texts{"ein", "Hunde", "."}));
  EXPECT_EQ(words.word_of, (Numbers{0, 1, 1, 2, 2, -1}));
  EXPECT_EQ(words_of(vocabulary, Numbers{4, 0}).texts, Texts{"e"});  // the first needs no mark
  EXPECT_EQ(words_of(vocabulary, Numbers{5, 3, 0}).texts, Texts{"Hund"});
}

}  // namespace
}  // namespace gloss::text
