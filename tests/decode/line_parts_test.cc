// How lines are cut, and what becomes of text without pieces.
#include "gloss/decode/line_parts.h"

#include <fmt/core.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>

#include "gloss/text/sentences.h"
#include "gloss/text/training.h"
#include "gloss/text/unknown.h"

namespace gloss::decode {
namespace {

namespace fs = std::filesystem;
using Lines = std::vector<std::string>;

// A vocabulary of a few sentences, made once.
class LineParts : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    const fs::path text = fs::temp_directory_path() / fmt::format("gloss-line-parts-{}.txt", ::getpid());
    std::ofstream(text)
        << "The cat sat on the mat. It was a black cat.\nA dog ran over the hill and far away.\n"
           "Who let the dogs out? Nobody knows.\nOne, two, three, four, five, six, seven.\n";
    text::TokenizerOptions options;
    options.vocabulary_size = 60;
    tokenizer_ = std::make_unique<text::Tokenizer>(text::train_tokenizer(text, text, options).tokenizer);
    fs::remove(text);
  }
  static void TearDownTestSuite() { tokenizer_.reset(); }
  static inline std::unique_ptr<text::Tokenizer> tokenizer_;
};

TEST_F(LineParts, LongLinesAreSplitWhereItHurtsLeast) {
  const auto parts_of = [&](const std::string& line, Splitting splitting) {
    Lines parts;
    for (const LinePart& part : split_line(*tokenizer_, line, splitting)) {
      parts.push_back(part.text);
      EXPECT_LE(static_cast<int64_t>(part.source.ids.size()), splitting.max_pieces + 3);
    }
    return parts;
  };
  const std::string two = "The cat sat on the mat. A dog ran over the hill.";
  EXPECT_EQ(parts_of(two, {}), Lines{two});
  EXPECT_EQ(parts_of(two, {.sentences = true}),
            (Lines{"The cat sat on the mat.", "A dog ran over the hill."}));
  const auto whole = tokenizer_->encode_source_ids(two).size();
  const auto halves = parts_of(two, {.max_pieces = static_cast<int64_t>(whole) - 5});
  EXPECT_EQ(halves, (Lines{"The cat sat on the mat.", "A dog ran over the hill."}));
  for (const std::string& part :
       parts_of("one two three four five six seven one two three", {.max_pieces = 8}))
    EXPECT_EQ(part.find_first_of(' '), part.find(' ')) << part;
  // Words whole, and every one of them there.
  std::string joined;
  for (const auto& part : split_line(*tokenizer_, "one  two three four five six", {.max_pieces = 8}))
    joined += part.joint + part.text;
  EXPECT_EQ(joined, "one  two three four five six");
  // Without any space, between pieces.
  const std::string endless(1000, 'a');
  joined.clear();
  for (const auto& part : split_line(*tokenizer_, endless, {.max_pieces = 50})) {
    EXPECT_EQ(part.joint, "");
    joined += part.text;
  }
  EXPECT_EQ(joined, endless);
}

TEST_F(LineParts, PartsHoldTheWholeLine) {
  EXPECT_TRUE(rc::check([&] {
    const auto characters = *rc::gen::container<std::vector<std::string>>(
        rc::gen::elementOf(Lines{"a", "t", "he", ". A", " ", "cat", "漢", "😀", "! ", "é", "\u00A0"}));
    std::string line;
    for (const auto& c : characters) line += c;
    const Splitting splitting{.sentences = *rc::gen::arbitrary<bool>(),
                              .max_pieces = *rc::gen::inRange(8, 40)};
    std::string joined;
    for (const LinePart& part : split_line(*tokenizer_, line, splitting)) joined += part.joint + part.text;
    const auto solid = [](const std::string& text) {
      std::string out;
      for (size_t i = 0; i < text.size(); ++i) {
        if (text[i] == ' ') continue;
        if (text.compare(i, 2, "\u00A0") == 0) {
          ++i;
        } else {
          out += text[i];
        }
      }
      return out;
    };
    RC_ASSERT(solid(joined) == solid(line));
  }));
}

TEST_F(LineParts, UnknownTextGoesWhereAttentionPassedIt) {
  const text::Tokenizer& tokenizer = *tokenizer_;
  const auto decode = [&](const std::string& line, const std::string& target, std::vector<int32_t> aligned) {
    const auto source = tokenizer.encode_source(line);
    const auto ids = tokenizer.encode_target_ids(target);
    aligned.resize(ids.size(), -1);
    return text::decode_with_unknowns(tokenizer, line, source, ids, aligned);
  };
  // No alignment at all: in front. Looked at by the second word's pieces: before that word.
  EXPECT_EQ(decode("the 😀", "dog", {}), "😀 dog");
  EXPECT_EQ(decode("the dog", "cat", {}), "cat");
  const auto source = tokenizer.encode_source("the 漢字");
  const auto unknown =
      std::find(source.ids.begin(), source.ids.end(), tokenizer.source_vocabulary().unknown_id());
  ASSERT_NE(unknown, source.ids.end());
  const auto at = static_cast<int32_t>(unknown - source.ids.begin());
  std::vector<int32_t> all(tokenizer.encode_target_ids("the cat").size(), at - 1);
  EXPECT_EQ(decode("the 漢字", "the cat", all), "the cat 漢字");
  // A word of known and unknown letters comes whole and once.
  EXPECT_EQ(decode("cŁaŁt the", "dog", {}), "cŁaŁt dog");
  // An emoji does not take the word it touches with it.
  EXPECT_EQ(decode("cat😀", "dog", {}), "😀 dog");
}

TEST(Sentences, BeginWhereUnicodeSaysSo) {
  EXPECT_TRUE(text::sentence_starts("").empty());
  EXPECT_EQ(text::sentence_starts("One. Two? Three"), (std::vector<size_t>{0, 5, 10}));
  EXPECT_EQ(text::sentence_starts("4.5 is a number"), std::vector<size_t>{0});
  EXPECT_EQ(text::sentence_starts("你好。再见。"), (std::vector<size_t>{0, 9}));
}

}  // namespace
}  // namespace gloss::decode
