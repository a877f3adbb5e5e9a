#include "gloss/text/training.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "text/fixture.h"

namespace gloss::text {
namespace {

using testing::AllOf;
using testing::HasSubstr;

SegmenterOptions small(int32_t pieces, SegmentationKind kind = SegmentationKind::bpe) {
  SegmenterOptions options;
  options.pieces = pieces;
  options.kind = kind;
  return options;
}

TrainedSegmenter train(std::string_view text, const SegmenterOptions& options) {
  const TemporaryFolder folder;
  const std::filesystem::path file = folder.write("corpus.txt", text);
  testing::internal::CaptureStderr();
  struct Silence {
    ~Silence() { EXPECT_EQ(testing::internal::GetCapturedStderr(), ""); }  // a library does not print
  } silence;
  return train_segmenter({&file, 1}, options);
}

constexpr SegmentationKind kKinds[] = {SegmentationKind::bpe, SegmentationKind::unigram};

TEST(Training, GivesTheNumberOfPiecesAskedFor) {
  for (const auto kind : kKinds) {
    const auto trained = train(joined(small_sentences()), small(90, kind));
    EXPECT_EQ(trained.actual, 90);
    EXPECT_EQ(trained.segmenter.size(), 90);
    EXPECT_EQ(trained.message, "");
    EXPECT_EQ(trained.lines, 1728);
    EXPECT_EQ(trained.lines_used, 1728);
    EXPECT_EQ(trained.segmenter.piece(0), "</s>");
    EXPECT_EQ(trained.segmenter.unknown_id(), 1);
  }
}

TEST(Training, IsDeterministic) {
  for (const auto kind : kKinds) {
    auto options = small(150, kind);
    options.max_lines = 300;
    const auto text = joined(small_sentences());
    const auto first = train(text, options);
    EXPECT_EQ(first.segmenter.bytes(), train(text, options).segmenter.bytes());
    options.seed = 2;  // another sample
    EXPECT_NE(first.segmenter.bytes(), train(text, options).segmenter.bytes());
  }
}

TEST(Training, ReducesAVocabularyThatTheCorpusCannotGive) {
  for (const auto kind : kKinds) {
    const auto trained = train("The quick brown fox jumps over the lazy dog\n", small(8000, kind));
    EXPECT_EQ(trained.requested, 8000);
    EXPECT_LT(trained.actual, 200);
    EXPECT_EQ(trained.actual, trained.segmenter.size());
    EXPECT_THAT(trained.message, AllOf(HasSubstr("8000"), HasSubstr(std::to_string(trained.actual))));
    EXPECT_FALSE(trained.segmenter.encode("the dog").empty());
    EXPECT_EQ(train("a", small(8000, kind)).segmenter.encode("a").back().id != 1,
              true);  // one letter, one line
  }
}

TEST(Training, RefusesAVocabularyBelowTheAlphabet) {
  for (const auto kind : kKinds)
    EXPECT_THAT(
        error_of([&] { train("The quick brown fox jumps over the lazy dog\n", small(10, kind)); }),
        AllOf(HasSubstr("10 pieces"), HasSubstr("need 30"), HasSubstr("coverage"), HasSubstr("corpus.txt")));
  std::string rare = "0123456789";  // ten of 1,010 characters
  for (int i = 0; i < 500; ++i) rare += "ab";
  auto options = small(10);
  EXPECT_THAT(error_of([&] { train(rare, options); }), HasSubstr("10 pieces"));
  options.character_coverage = 0.98;
  EXPECT_EQ(train(rare, options).actual, 10);
}

TEST(Training, RefusesWhatHoldsNoText) {
  for (const auto kind : kKinds)
    for (const char* text : {"", "\n\n", "  \n\t\n", "\x01\x02\n\x03\n", "\xE2\x80\x8B\n"})
      EXPECT_THAT(error_of([&] { train(text, small(100, kind)); }), HasSubstr("no text")) << text;
}

TEST(Training, RefusesOptionsOutOfRange) {
  EXPECT_THAT(error_of([] { train("a", small(3)); }), HasSubstr("3"));
  EXPECT_THAT(error_of([] { train("a", small(-5)); }), HasSubstr("-5"));
  auto options = small(100);
  options.character_coverage = 0.5;
  EXPECT_THAT(error_of([&] { train("a", options); }), HasSubstr("0.5"));
  options = small(100);
  options.normalisation = "nonsense";
  EXPECT_THAT(error_of([&] { train("a b c", options); }), HasSubstr("nonsense"));
}

TEST(Training, NamesBadLines) {
  EXPECT_THAT(error_of([] { train("fine\nbad \xFF\n", small(100)); }),
              AllOf(HasSubstr("corpus.txt"), HasSubstr("line 2")));
  auto options = small(100);
  options.invalid = InvalidUtf8::replace;
  EXPECT_GT(train("fine\nbad \xFF\n", options).actual, 5);
}

TEST(Training, SamplesEvenlyAndWithinItsLimits) {
  // Every line its own letter: the letters that got a piece tell which lines were used.
  std::string text;
  for (char c = 'a'; c <= 'z'; ++c) text += std::string(1, c) + "\n\n";  // blank lines do not count
  std::multiset<char> used;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    auto options = small(100);
    options.max_lines = 5;
    options.seed = seed;
    const auto trained = train(text, options);
    EXPECT_EQ(trained.lines, 26);
    EXPECT_EQ(trained.lines_used, 5);
    size_t letters = 0;
    for (char c = 'a'; c <= 'z'; ++c)
      if (trained.segmenter.encode(std::string(1, c)).back().id != trained.segmenter.unknown_id()) {
        used.insert(c);
        ++letters;
      }
    ASSERT_EQ(letters, 5u);
  }
  for (char c = 'a'; c <= 'z'; ++c) {  // 60 * 5 / 26 is 11.5 expected
    EXPECT_GE(used.count(c), 2u) << c;
    EXPECT_LE(used.count(c), 26u) << c;
  }
  auto options = small(100);
  options.max_bytes = 10;  // of 26
  EXPECT_EQ(train(text, options).lines_used, 10);
}

TEST(Training, TakesLinesOfAnyLength) {
  std::string spaced, solid;
  while (spaced.size() < (size_t{1} << 20)) spaced += "in the park near the river ";
  for (size_t i = 0; i < (size_t{1} << 19); ++i) solid += static_cast<char>('a' + i * i % 7 + i % 3);
  const auto trained = train("short\n" + spaced + "\n" + solid + "\n" + "中文日本" + "\n", small(100));
  EXPECT_EQ(trained.lines_used, 4);
  const auto pieces = trained.segmenter.encode("near the river");
  EXPECT_LE(pieces.size(), 5u);
}

TEST(Training, JointGivesOneModelAndOneVocabulary) {
  const TemporaryFolder folder;
  const auto source = folder.write("a.en", joined(small_sentences(2)));
  const auto target = folder.write("a.de", joined({"ein Mann geht im Park", "die Frau schläft zu Hause"}));
  TokenizerOptions options;
  options.vocabulary_size = 150;
  const auto [joint, messages] = train_tokenizer(source, target, options);
  EXPECT_TRUE(messages.empty());
  EXPECT_TRUE(joint.shares_vocabulary());
  EXPECT_EQ(joint.source_vocabulary().size(), 150);
  EXPECT_EQ(joint.source_vocabulary().end_id(), 0);
  EXPECT_EQ(joint.source_vocabulary().unknown_id(), 1);
  EXPECT_EQ(joint.source_vocabulary().pad_id(), 149);
  EXPECT_EQ(joint.encode_source_ids("ä"), joint.encode_target_ids("ä"));

  options.joint = false;
  const auto separate = train_tokenizer(source, target, options);
  EXPECT_FALSE(separate.tokenizer.shares_vocabulary());
  EXPECT_EQ(separate.tokenizer.source_vocabulary().size(), 150);
  EXPECT_LT(separate.tokenizer.target_vocabulary().size(), 150);
  ASSERT_EQ(separate.messages.size(), 1u);
  EXPECT_THAT(separate.messages[0], HasSubstr("a.de"));
}

TEST(Training, DigitsCanBeSplit) {
  std::string text;
  for (int year = 1900; year < 2030; ++year) text += "in " + std::to_string(year) + " and in 1984 again\n";
  auto options = small(60);
  EXPECT_LT(train(text, options).segmenter.encode("1984").size(), 4u);
  options.split_digits = true;
  EXPECT_GE(train(text, options).segmenter.encode("1984").size(), 4u);
}

}  // namespace
}  // namespace gloss::text
