// From the weights of pieces to links between words.
#include "gloss/decode/word_alignment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "gloss/base/error.h"
#include "io/scratch.h"

namespace gloss::decode {
namespace {

using evaluate::Alignment;
using evaluate::Link;
using io::message_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

PieceWords words(std::vector<int32_t> word, std::vector<bool> punctuation = {}) {
  punctuation.resize(word.size());
  return {std::move(word), std::move(punctuation)};
}

// Source "the house .": the, ho|use, ".", </s>. Rows of three target pieces and one end symbol.
const PieceWords kSource = words({0, 1, 1, 2, -1}, {false, false, false, true, false});

TEST(WordAlignment, AddsUpTheSourcePiecesOfAWord) {
  // No piece of "house" has as much as "the", both together have more.
  const std::vector<float> weights{0.4f, 0.3f, 0.3f, 0, 0};
  EXPECT_EQ(word_alignment(weights, kSource, words({0})), (Alignment{{1, 0}}));
}

TEST(WordAlignment, TakesTheMeanTheFirstOrEachOfTheTargetPieces) {
  const std::vector<float> weights{
      0.6f, 0.2f, 0.2f, 0,    0,     // "Hau" looks at "the"
      0.1f, 0.5f, 0.3f, 0.1f, 0,     // "s" at "house"
      0,    0,    0,    0.9f, 0.1f,  // "." at "."
      0,    0,    0,    0,    1,     // </s>
  };
  const PieceWords target = words({0, 0, 1, -1}, {false, false, true, false});
  WordAlignmentOptions options;
  EXPECT_EQ(word_alignment(weights, kSource, target, options), (Alignment{{1, 0}, {2, 1}}));
  options.target_pieces = TargetPieces::first;
  EXPECT_EQ(word_alignment(weights, kSource, target, options), (Alignment{{0, 0}, {2, 1}}));
  options.target_pieces = TargetPieces::each;
  EXPECT_EQ(word_alignment(weights, kSource, target, options), (Alignment{{0, 0}, {1, 0}, {2, 1}}));
}

TEST(WordAlignment, LeavesTheEndSymbolOut) {
  const std::vector<float> weights{0.1f, 0.1f, 0.1f, 0, 0.7f};
  WordAlignmentOptions options;
  EXPECT_EQ(word_alignment(weights, kSource, words({0}), options), (Alignment{{1, 0}}));
  options.end_symbol = EndSymbol::unlinked;
  EXPECT_TRUE(word_alignment(weights, kSource, words({0}), options).empty());
  // What the word has together is more.
  const std::vector<float> shared{0.1f, 0.2f, 0.3f, 0, 0.4f};
  EXPECT_EQ(word_alignment(shared, kSource, words({0}), options), (Alignment{{1, 0}}));
}

TEST(WordAlignment, LeavesMarksOutForWordsThatAreNone) {
  const std::vector<float> weights{0.2f, 0.1f, 0, 0.6f, 0.1f};
  const PieceWords mark = words({0}, {true});
  WordAlignmentOptions options;
  EXPECT_EQ(word_alignment(weights, kSource, words({0}), options), (Alignment{{0, 0}}));
  EXPECT_EQ(word_alignment(weights, kSource, mark, options), (Alignment{{2, 0}}));
  options.punctuation = PunctuationSink::unlinked;
  EXPECT_TRUE(word_alignment(weights, kSource, words({0}), options).empty());
  EXPECT_EQ(word_alignment(weights, kSource, mark, options), (Alignment{{2, 0}}));
  options.punctuation = PunctuationSink::word;
  EXPECT_EQ(word_alignment(weights, kSource, words({0}), options), (Alignment{{2, 0}}));
}

// "the house." in text that is not tokenised: the full stop is part of the word.
TEST(WordAlignment, TellsMarksInsideAWordApart) {
  const PieceWords source = words({0, 1, 1, -1}, {false, false, true, false});
  const std::vector<float> weights{0.2f, 0.1f, 0.6f, 0.1f};
  WordAlignmentOptions options;
  EXPECT_EQ(word_alignment(weights, source, words({0}), options), (Alignment{{0, 0}}));
  options.punctuation = PunctuationSink::word;
  EXPECT_EQ(word_alignment(weights, source, words({0}), options), (Alignment{{1, 0}}));
  // A target word with a mark at its end is none.
  options.punctuation = PunctuationSink::next_best;
  EXPECT_EQ(word_alignment(std::vector<float>{0.3f, 0.2f, 0.5f, 0, 0.1f, 0, 0.9f, 0}, source,
                           words({0, 0}, {false, true}), options),
            (Alignment{{0, 0}}));
}

TEST(WordAlignment, NeedsTheLeastShare) {
  const std::vector<float> weights{0.3f, 0.1f, 0.1f, 0.25f, 0.25f};
  WordAlignmentOptions options;
  options.minimum = 0.29;
  EXPECT_EQ(word_alignment(weights, kSource, words({0}), options), (Alignment{{0, 0}}));
  options.minimum = 0.31;
  EXPECT_TRUE(word_alignment(weights, kSource, words({0}), options).empty());
}

TEST(WordAlignment, NeverLinksWithoutWeight) {
  EXPECT_TRUE(word_alignment(std::vector<float>{0, 0, 0, 0.5f, 0.5f}, kSource, words({0})).empty());
  EXPECT_TRUE(word_alignment(std::vector<float>{1, 1}, words({-1}), words({0, 1})).empty());
  EXPECT_TRUE(word_alignment({}, words({}), words({0, 1})).empty());
  EXPECT_TRUE(word_alignment({}, kSource, words({})).empty());
  // Word 1 of the target has no piece; equal source words: the first.
  EXPECT_EQ(
      word_alignment(std::vector<float>{0.5f, 0.25f, 0.25f, 0, 0, 0, 0, 1, 0, 0}, kSource, words({0, 2})),
      (Alignment{{0, 0}, {1, 2}}));
}

TEST(WordAlignment, RefusesWhatDoesNotFit) {
  const std::vector<float> row(5, 0.2f);
  EXPECT_THAT(message_of([&] {
                word_alignment(row, kSource, words({0, 1}));
              }),
              HasSubstr("5 weights for 2 target and 5 source pieces"));
  EXPECT_THAT(message_of([&] {
                word_alignment(row, {{0, 0, 0, 0, 0}, {}}, words({0}));
              }),
              HasSubstr("5 source pieces with words, 0 with punctuation"));
  EXPECT_THAT(message_of([&] {
                word_alignment(row, words({0, 1, 2, 3, -2}), words({0}));
              }),
              HasSubstr("a source piece has the word -2"));
  for (const float bad : {-0.1f, 1.1f, std::nanf(""), std::numeric_limits<float>::infinity()}) {
    std::vector<float> weights = row;
    weights[3] = bad;
    EXPECT_THAT(message_of([&] { word_alignment(weights, kSource, words({0})); }), HasSubstr("from 0 to 1"));
  }
  EXPECT_THAT(message_of([&] { word_alignment(row, kSource, words({0}), {.minimum = 2}); }),
              HasSubstr("the least share of attention is 2"));
}

// A piece that is split in two halves with half its weight each changes nothing, on either side.
TEST(WordAlignment, DoesNotDependOnHowWordsAreSplit) {
  std::mt19937 random(3);
  for (int trial = 0; trial < 100; ++trial) {
    const size_t n_s = 1 + random() % 6, n_t = 1 + random() % 6;
    std::vector<int32_t> source(n_s), target(n_t), source_halves, target_halves;
    for (size_t j = 0; j < n_s; ++j) {
      source[j] = static_cast<int32_t>(j);
      source_halves.insert(source_halves.end(), 2, source[j]);
    }
    for (size_t i = 0; i < n_t; ++i) {
      target[i] = static_cast<int32_t>(i);
      target_halves.insert(target_halves.end(), 2, target[i]);
    }
    std::vector<float> whole, halves;
    for (size_t i = 0; i < n_t; ++i) {
      std::vector<float> row;
      float sum = 0;
      for (size_t j = 0; j < n_s; ++j) sum += row.emplace_back(static_cast<float>(1 + random() % 1000));
      for (float& weight : row) weight /= sum;
      whole.insert(whole.end(), row.begin(), row.end());
      for (int twice = 0; twice < 2; ++twice) {
        for (const float weight : row) halves.insert(halves.end(), 2, weight / 2);
      }
    }
    for (const TargetPieces pieces : {TargetPieces::mean, TargetPieces::first, TargetPieces::each}) {
      const WordAlignmentOptions options{.target_pieces = pieces};
      EXPECT_EQ(word_alignment(whole, words(source), words(target), options),
                word_alignment(halves, words(source_halves), words(target_halves), options));
    }
  }
}

TEST(WordsOfPieces, FollowTheBytesOfTheLine) {
  // "A  dog, runs" as ▁A ▁ ▁dog , ▁runs </s>, each span with the space before it.
  const std::string_view line = "A  dog, runs";
  const std::vector<text::EncodedLine::Span> spans{{0, 1}, {1, 2}, {2, 6}, {6, 7}, {7, 12}, {12, 12}};
  const PieceWords pieces = words_of_pieces(line, spans);
  EXPECT_THAT(pieces.word, ElementsAre(0, 1, 1, 1, 2, -1));
  EXPECT_THAT(pieces.punctuation, ElementsAre(false, false, false, true, false, false));
  // A no-break space does not part words; a mark behind a space is a mark; one piece over two words.
  const PieceWords others = words_of_pieces(
      "a\u00A0b ! c d", std::vector<text::EncodedLine::Span>{{0, 1}, {1, 4}, {4, 6}, {6, 10}, {10, 10}});
  EXPECT_THAT(others.word, ElementsAre(0, 0, 1, 2, -1));
  EXPECT_THAT(others.punctuation, ElementsAre(false, false, true, false, false));
  EXPECT_THAT(message_of([] {
                words_of_pieces("abc", std::vector<text::EncodedLine::Span>{{2, 4}});
              }),
              HasSubstr("a piece from byte 2 to 4 is not inside a line of 3 bytes"));
}

}  // namespace
}  // namespace gloss::decode
