#include "gloss/text/words.h"

#include <gtest/gtest.h>

namespace gloss::text {
namespace {

using Texts = std::vector<std::string>;
using Numbers = std::vector<int32_t>;

TEST(Words, OfALineStandAsTheyAreInIt) {
  // "  ab cd" as pieces [  a][b][ cd], with white space of two kinds.
  const std::string line = "  ab\u3000cd";
  EncodedLine encoded;
  encoded.ids = {5, 6, 7, 0};
  encoded.spans = {{0, 3, true}, {3, 4, false}, {4, 9, true}, {9, 9, false}};
  const Words words = words_of(line, encoded);
  EXPECT_EQ(words.texts, (Texts{"ab", "cd"}));
  EXPECT_EQ(words.word_of, (Numbers{0, 0, 1, -1}));
}

// A piece may stand for white space alone: before a word it is the word's, behind the last one the last
// one's.
TEST(Words, OfALineOwnTheSpaceBeforeThem) {
  EncodedLine encoded;
  encoded.ids = {5, 6, 5, 0};
  encoded.spans = {{0, 1, false}, {1, 2, true}, {2, 3, false}, {3, 3, false}};
  const Words words = words_of(" a ", encoded);
  EXPECT_EQ(words.texts, Texts{"a"});
  EXPECT_EQ(words.word_of, (Numbers{0, 0, 0, -1}));
}

TEST(Words, OfABlankLineAreNone) {
  EncodedLine encoded;
  encoded.ids = {5, 0};
  encoded.spans = {{0, 1, false}, {1, 1, false}};
  EXPECT_EQ(words_of(" ", encoded).texts, Texts{});
  EXPECT_EQ(words_of(" ", encoded).word_of, (Numbers{-1, -1}));
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
