// BLEU and chrF against what sacreBLEU says (tests/golden/make_sacrebleu.py).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <random>

#include "gloss/base/error.h"
#include "gloss/evaluate/bleu.h"
#include "gloss/evaluate/chrf.h"
#include "gloss/evaluate/unicode.h"

namespace gloss::evaluate {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;
using Lines = std::vector<std::string>;

const Json& golden() {
  static const Json json = Json::parse(std::ifstream(GLOSS_TEST_GOLDEN "/sacrebleu.json"));
  return json;
}

Tokenizer tokenizer_of(const std::string& name) {
  for (const Tokenizer tokenizer : {Tokenizer::v13a, Tokenizer::intl, Tokenizer::none}) {
    if (tokenizer_name(tokenizer) == name) return tokenizer;
  }
  ADD_FAILURE() << "no tokenizer " << name;
  return Tokenizer::none;
}

std::string message_of(const std::function<void()>& run) {
  try {
    run();
  } catch (const Error& error) {
    return error.what();
  }
  ADD_FAILURE() << "an Error was expected";
  return {};
}

TEST(SacreBleu, IsTheVersionWeSign) {
  EXPECT_EQ(golden()["version"], kSacreBleuVersion);
}

TEST(SacreBleu, TokensAreEqual) {
  ASSERT_GT(golden()["tokens"].size(), 100u);
  for (const Json& row : golden()["tokens"]) {
    std::string line = row["line"];
    // As both metrics do: white space at the end goes first.
    const auto words = split(line);
    const std::string kept =
        words.empty()
            ? ""
            : line.substr(0, static_cast<size_t>(words.back().data() + words.back().size() - line.data()));
    for (const char* name : {"13a", "intl", "none"}) {
      const std::string tokenized = tokenize(tokenizer_of(name), kept);
      Lines tokens;
      for (const std::string_view token : split(tokenized)) tokens.emplace_back(token);
      EXPECT_EQ(tokens, row[name].get<Lines>()) << name << ": " << line;
    }
  }
}

TEST(SacreBleu, BleuIsEqual) {
  int compared = 0;
  for (const Json& corpus : golden()["corpora"]) {
    const Lines hypotheses = corpus["hypotheses"];
    const References references = corpus["references"];
    for (const Json& expected : corpus["bleu"]) {
      SCOPED_TRACE(corpus["name"].get<std::string>() + ": " + expected["signature"].get<std::string>());
      BleuOptions options;
      options.tokenizer = tokenizer_of(expected["tokenize"]);
      options.lowercase = expected["lowercase"];
      options.smoothing = expected["smooth"] == "exp" ? Smoothing::exp : Smoothing::none;
      options.effective_order = expected["effective_order"];
      const BleuScore score = bleu(hypotheses, references, options);
      EXPECT_NEAR(score.score, expected["score"].get<double>(), 1e-9);
      EXPECT_NEAR(score.brevity_penalty, expected["bp"].get<double>(), 1e-12);
      EXPECT_EQ(score.hypothesis_length, expected["hyp_len"]);
      EXPECT_EQ(score.reference_length, expected["ref_len"]);
      EXPECT_EQ(score.text(), expected["text"]);
      EXPECT_EQ(score.signature(), expected["signature"]);
      for (size_t n = 0; n < BleuScore::kOrder; ++n) {
        EXPECT_EQ(score.correct[n], expected["correct"][n]) << n;
        EXPECT_EQ(score.total[n], expected["total"][n]) << n;
        EXPECT_NEAR(score.precisions[n], expected["precisions"][n].get<double>(), 1e-9) << n;
      }
      ++compared;
    }
  }
  EXPECT_GT(compared, 400);
}

TEST(SacreBleu, ChrfIsEqual) {
  int compared = 0;
  for (const Json& corpus : golden()["corpora"]) {
    for (const Json& expected : corpus["chrf"]) {
      SCOPED_TRACE(corpus["name"].get<std::string>() + ": " + expected["signature"].get<std::string>());
      ChrfOptions options;
      options.char_order = expected["char_order"];
      options.word_order = expected["word_order"];
      options.beta = expected["beta"];
      options.lowercase = expected["lowercase"];
      options.whitespace = expected["whitespace"];
      const ChrfScore score = chrf(corpus["hypotheses"], corpus["references"], options);
      EXPECT_NEAR(score.score, expected["score"].get<double>(), 1e-9);
      EXPECT_EQ(score.text(), expected["text"]);
      EXPECT_EQ(score.signature(), expected["signature"]);
      ++compared;
    }
  }
  EXPECT_GT(compared, 200);
}

Lines lines_of(const std::filesystem::path& path) {
  std::ifstream in(path);
  Lines lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

// What sacreBLEU 2.6.0 prints about the FLORES files (its `.bleu` beside them was computed by its makers).
TEST(SacreBleu, FloresIsEqual) {
  const std::filesystem::path folder = std::filesystem::path(GLOSS_TEST_SHARED) / "data/bleu";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "the shared BLEU data is not here";
  const Lines hypotheses = lines_of(folder / "flores-test.bergamot-tiny.de");
  const References references{lines_of(folder / "flores-test.de")};
  EXPECT_EQ(bleu(hypotheses, references).text(),
            "BLEU = 38.94 68.7/45.6/32.6/24.0 (BP = 0.983 ratio = 0.984 hyp_len = 24681 ref_len = 25094)");
  EXPECT_NEAR(bleu(hypotheses, references).score, 38.937821, 1e-6);
  EXPECT_NEAR(bleu(hypotheses, references, {.lowercase = true}).score, 39.399052, 1e-6);
  EXPECT_NEAR(bleu(hypotheses, references, {.tokenizer = Tokenizer::intl}).score, 39.185602, 1e-6);
  EXPECT_NEAR(bleu(hypotheses, references, {.tokenizer = Tokenizer::none}).score, 34.170077, 1e-6);
  EXPECT_NEAR(chrf(hypotheses, references).score, 65.452758, 1e-6);
  EXPECT_NEAR(chrf(hypotheses, references, {.word_order = 2}).score, 63.080517, 1e-6);
}

TEST(Metrics, RefuseWhatCannotBeScored) {
  EXPECT_THAT(message_of([] { bleu({}, {{}}); }), HasSubstr("the hypotheses have no lines"));
  EXPECT_THAT(message_of([] { bleu({"a"}, {}); }), HasSubstr("no references were given"));
  EXPECT_EQ(message_of([] {
              bleu({"a", "b"}, {{"a"}});
            }),
            "the hypotheses have 2 lines and the reference has 1: they must correspond line for line");
  EXPECT_EQ(message_of([] {
              chrf({"a"}, {{"a"}, {"b", "c"}});
            }),
            "the hypotheses have 1 lines and the reference 2 has 2: they must correspond line for line");
  EXPECT_EQ(message_of([] {
              bleu({"a", "b\xFF"}, {{"a", "b"}});
            }),
            "hypotheses, line 2: invalid UTF-8 at byte 2");
  EXPECT_EQ(message_of([] { chrf({"a"}, {{"\xED\xA0\x80"}}); }),
            "reference, line 1: invalid UTF-8 at byte 1");
  EXPECT_THAT(message_of([] { chrf({"a"}, {{"a"}}, {.char_order = 0}); }), HasSubstr("character order"));
}

TEST(Metrics, ScoreTheIdenticalAsHundredAndTheForeignAsZero) {
  const Lines lines{"one two three four five", "Sechs sieben acht neun zehn."};
  EXPECT_NEAR(bleu(lines, {lines}).score, 100, 1e-9);
  EXPECT_NEAR(chrf(lines, {lines}).score, 100, 1e-9);
  EXPECT_EQ(bleu(lines, {{"x", "y"}}).score, 0);
  EXPECT_EQ(chrf({"abc"}, {{"xyz"}}).score, 0);
  EXPECT_NE(bleu({"one two three four"}, {{"one two three for"}}).score, 100);
}

TEST(Metrics, HoldAnyBytesAndLongLines) {
  const std::string nul("a\0b c", 5);
  EXPECT_NEAR(bleu({nul}, {{nul}}, {.effective_order = true}).score, 100, 1e-9);
  std::string line;
  for (int i = 0; i < 60'000; ++i) line += "word" + std::to_string(i % 97) + ", ";
  EXPECT_NEAR(bleu({line}, {{line}}).score, 100, 1e-9);
  EXPECT_NEAR(chrf({line}, {{line}}).score, 100, 1e-9);
}

// A further reference can only help the clipped matches, and the order of lines never matters.
TEST(Metrics, KeepTheirInvariances) {
  std::mt19937 random(3);
  const auto line = [&] {
    std::string text;
    for (size_t n = random() % 12; n > 0; --n)
      text += std::string(1, static_cast<char>('a' + random() % 5)) + " ";
    return text;
  };
  for (int trial = 0; trial < 200; ++trial) {
    Lines hypotheses, first, second;
    for (int i = 0; i < 5; ++i) {
      hypotheses.push_back(line());
      first.push_back(line());
      second.push_back(line());
    }
    const BleuScore one = bleu(hypotheses, {first}), two = bleu(hypotheses, {first, second});
    for (size_t n = 0; n < BleuScore::kOrder; ++n) EXPECT_GE(two.correct[n], one.correct[n]);
    EXPECT_EQ(two.text(), bleu(hypotheses, {second, first}).text());
    Lines reversed(hypotheses.rbegin(), hypotheses.rend()), other(first.rbegin(), first.rend());
    EXPECT_EQ(one.text(), bleu(reversed, {other}).text());
    EXPECT_EQ(chrf(hypotheses, {first}).text(), chrf(reversed, {other}).text());
  }
}

TEST(Unicode, LowersAndSplitsLikePython) {
  EXPECT_EQ(lower("\u0130\u039F\u03A3 \u1E9E"), "i\u0307\u03BF\u03C2 \u00DF");
  EXPECT_EQ(split("\u00A0a\u3000b\u2028\x1C"
                  "c\u200Bd\u0085 ")
                .size(),
            3u);
  EXPECT_TRUE(split("").empty());
  EXPECT_EQ(encode_utf8(decode_utf8("a\u00E4\u4ECA\U0001F600")), "a\u00E4\u4ECA\U0001F600");
  int spaces = 0;
  for (char32_t c = 0; c <= 0x10FFFF; ++c) spaces += is_space(c);
  EXPECT_EQ(spaces, 29);  // as many as Python's str.isspace() accepts
}

}  // namespace
}  // namespace gloss::evaluate
