#include "gloss/decode/words.h"

#include <gtest/gtest.h>

namespace gloss::decode {
namespace {

using Texts = std::vector<std::string>;
using Numbers = std::vector<int32_t>;

TEST(Words, OfALineStandAsTheyAreInIt) {
  // "  ab cd " as pieces [  a][b][ cd][ ].
  const std::vector<text::EncodedLine::Span> spans{{0, 3}, {3, 4}, {4, 7}, {7, 8}, {8, 8}};
  const Words words = words_of("  ab cd ", spans);
  EXPECT_EQ(words.texts, (Texts{"ab", "cd"}));
  EXPECT_EQ(words.word_of, (Numbers{0, 0, 1, kNoWord, kNoWord}));
}

TEST(Words, OfIdsBeginAtMarks) {
  const text::Vocabulary vocabulary(Texts{"</s>", "<unk>", "▁ein", "▁Hund", "e", "▁", ".", "<pad>"});
  const Words words = words_of(vocabulary, Numbers{2, 3, 4, 5, 6, 0});
  EXPECT_EQ(words.texts, (Texts{"ein", "Hunde", "."}));
  EXPECT_EQ(words.word_of, (Numbers{0, 1, 1, 2, 2, -1}));
  EXPECT_EQ(words_of(vocabulary, Numbers{4, 0}).texts, Texts{"e"});  // the first needs no mark
  EXPECT_EQ(words_of(vocabulary, Numbers{5, 3, 0}).texts, Texts{"Hund"});
}

}  // namespace
}  // namespace gloss::decode
