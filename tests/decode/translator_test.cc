// The whole way from lines to lines.
#include "gloss/decode/translator.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>
#include <tuple>

#include "gloss/models/transformer_model.h"
#include "golden_translator.h"
#include "small_translator.h"
#include "support/isas.h"

namespace gloss::decode {
namespace {

// Golden numbers: expected.json is what transformers makes of the lines.
class Transformers : public GoldenTranslator {
 protected:
  // Every hypothesis of every line has the text and the score of transformers.
  void expect_golden(const char* name, int beam, int n_best) {
    std::ifstream file(kGolden / "expected.json");
    const auto golden = nlohmann::json::parse(file).at(name);
    TranslateOptions options;
    options.plain = true;
    options.search.beam = beam;
    options.search.n_best = n_best;
    const auto got = translator_->translate(lines_, options);
    ASSERT_EQ(got.size(), golden.size());
    for (size_t line = 0; line < got.size(); ++line) {
      ASSERT_EQ(got[line].candidates.size(), golden[line].size());
      for (size_t i = 0; i < golden[line].size(); ++i) {
        const auto& want = golden[line][i];
        EXPECT_EQ(got[line].candidates[i].text, want["text"].get<std::string>()) << "line " << line + 1;
        if (want["score"].is_null()) continue;
        const auto score = want["score"].get<double>();
        EXPECT_NEAR(got[line].candidates[i].score, score, 1e-4 * std::abs(score)) << "line " << line + 1;
      }
    }
  }
};

TEST_F(Transformers, AgreeInGreedySearch) {
  expect_golden("beam1_n1", 1, 1);
}
TEST_F(Transformers, AgreeInBeamSearch) {
  expect_golden("beam5_n1", 5, 1);
}
TEST_F(Transformers, AgreeInNBestLists) {
  expect_golden("beam4_n4", 4, 4);
}

TEST_F(GoldenTranslator, CompanyThreadsAndWorkersChangeNothing) {
  expect_no_company(*translator_);
}

TEST_F(GoldenTranslator, EveryInstructionSetGivesTheSameTextAndWideOnesTheSameBits) {
  lines_.resize(60);
  const auto want = translator_->translate(lines_);
  std::vector<Translation> avx2;
  tests::on_every_isa([&](kernels::Isa isa) {
    const auto got = Translator(kGolden).translate(lines_);
    EXPECT_EQ(texts_of(got), texts_of(want));
    if (isa == kernels::Isa::avx2) avx2 = got;
    if (isa == kernels::Isa::avx512) expect_same(got, avx2);
  });
}

TEST_F(GoldenTranslator, TheCacheChangesNoTextAndHardlyAScore) {
  lines_.resize(60);
  TranslateOptions options;
  const auto cached = translator_->translate(lines_, options);
  options.cache = false;
  const auto uncached = translator_->translate(lines_, options);
  EXPECT_EQ(texts_of(uncached), texts_of(cached));
  for (size_t i = 0; i < cached.size(); ++i)
    EXPECT_NEAR(uncached[i].candidates[0].score, cached[i].candidates[0].score, 1e-5);
  EXPECT_GT(uncached[0].key_value_rows, 2 * cached[0].key_value_rows);
}

TEST_F(GoldenTranslator, ForcedScoringGivesWhatTheSearchGave) {
  lines_.resize(40);
  const auto translations = translator_->translate(lines_);
  size_t next = 0, scored = 0, same_pieces = 0;
  translator_->score({[&](std::string& source, std::string& target) {
                       if (next == lines_.size()) return false;
                       source = lines_[next];
                       target = translations[next++].text();
                       return true;
                     }},
                     2, [&](const ScoredPair& pair) {
                       const Candidate& best = translations[scored++].candidates.front();
                       if (pair.tokens != best.tokens) return;  // a text has several segmentations
                       ++same_pieces;
                       EXPECT_NEAR(pair.log_probability, best.log_probability, 1e-4);
                     });
  EXPECT_EQ(scored, lines_.size());
  EXPECT_GT(same_pieces, lines_.size() / 2);
}

TEST_F(GoldenTranslator, WhatHasNoPiecesSurvives) {
  const Lines lines = {"A man 😀 is smiling.", "A dog runs through 漢字 water.", "A dog in Łódź runs."};
  const auto copied = texts_of(translator_->translate(lines));
  EXPECT_NE(copied[0].find(" 😀"), std::string::npos) << copied[0];
  EXPECT_NE(copied[1].find("漢字"), std::string::npos) << copied[1];
  EXPECT_NE(copied[2].find("Łódź"), std::string::npos) << copied[2];
  for (const bool plain : {false, true}) {
    TranslateOptions options;
    options.copy_unknown = false;
    options.plain = plain;
    EXPECT_EQ(texts_of(translator_->translate(lines, options))[0].find("😀"), std::string::npos);
  }
}

TEST_F(SmallTranslator, BlankLinesStayAndNeverReachTheModel) {
  const Lines lines = {"", "The cat.", "   ", "\t\u00A0\u3000", "A dog.", ""};
  const auto got = translator_->translate(lines, short_options());
  ASSERT_EQ(got.size(), lines.size());
  for (size_t i = 0; i < lines.size(); ++i) {
    EXPECT_EQ(got[i].line, static_cast<int64_t>(i));
    EXPECT_EQ(got[i].source, lines[i]);
    EXPECT_EQ(got[i].translated, i == 1 || i == 4);
    if (!got[i].translated) {
      EXPECT_EQ(got[i].text(), lines[i]);
      EXPECT_TRUE(got[i].source_tokens.empty());
      EXPECT_EQ(got[i].key_value_rows, 0);
    } else {
      EXPECT_GT(got[i].key_value_rows, 0);
    }
  }
  EXPECT_TRUE(translator_->translate(Lines{}).empty());
}

TEST_F(SmallTranslator, PairsWithABlankSourceAreNotScored) {
  const std::vector<std::pair<std::string, std::string>> pairs = {
      {"", "A dog."},   {"The cat.", "A dog."}, {" \t", ""},
      {"The cat.", ""}, {"The cat.", "A dog."}, {"", ""}};
  size_t next = 0;
  std::vector<ScoredPair> scored;
  translator_->score({[&](std::string& source, std::string& target) {
                       if (next == pairs.size()) return false;
                       std::tie(source, target) = pairs[next++];
                       return true;
                     }},
                     1, [&](ScoredPair pair) { scored.push_back(std::move(pair)); });
  ASSERT_EQ(scored.size(), pairs.size());
  for (const size_t blank : {0, 2, 5}) {
    EXPECT_TRUE(scored[blank].tokens.empty());
    EXPECT_EQ(scored[blank].log_probability, 0);
  }
  EXPECT_EQ(scored[3].tokens.size(), 1u);  // </s>: how likely it is to say nothing
  EXPECT_EQ(scored[1].log_probabilities, scored[4].log_probabilities);
  EXPECT_LT(scored[1].log_probability, 0);
}

TEST_F(SmallTranslator, AnyLinesInAnyCompanyGiveTheSame) {
  EXPECT_TRUE(rc::check([&] {
    const Lines words = {"cat", "the", " ", "dog.", "Seven?", "x", "\u00A0", "漢", "six,", "."};
    const auto lines = *rc::gen::container<Lines>(
        rc::gen::map(rc::gen::container<std::vector<size_t>>(rc::gen::inRange<size_t>(0, words.size())),
                     [&](const auto& picks) {
                       std::string line;
                       for (const size_t pick : picks) line += words[pick] + (pick % 2 == 0 ? " " : "");
                       return line;
                     }));
    TranslateOptions options = short_options();
    const auto all = translator_->translate(lines, options);
    RC_ASSERT(all.size() == lines.size());
    options.search.batch = *rc::gen::inRange(1, 6);
    options.workers = *rc::gen::inRange(1, 4);
    for (size_t i = 0; i < lines.size(); ++i) {
      const auto alone = translator_->translate(std::span(lines).subspan(i, 1), options);
      RC_ASSERT(alone.at(0).text() == all[i].text());
      RC_ASSERT(scores_of(alone) == scores_of({all[i]}));
    }
  }));
}

TEST_F(SmallTranslator, CountsTheRowsOfTheCache) {
  TranslateOptions options = short_options();
  options.search.beam = 1;
  const Lines lines = {"The cat sat on the mat.", "A dog ran.", "It was a black cat."};
  const auto cached = translator_->translate(lines, options);
  options.cache = false;
  const auto uncached = translator_->translate(lines, options);
  for (size_t i = 0; i < lines.size(); ++i) {
    const int64_t n = cached[i].key_value_rows;
    EXPECT_GE(n, 1);
    EXPECT_LE(n, static_cast<int64_t>(cached[i].candidates[0].tokens.size()));
    EXPECT_EQ(uncached[i].key_value_rows, n * (n + 1) / 2);
  }
}

TEST_F(SmallTranslator, SamplesAreKeyedBySeedAndText) {
  TranslateOptions options = short_options();
  options.sample = true;
  options.search.n_best = 3;
  const Lines lines = {"The cat.", "A dog.", "The cat."};
  const auto first = translator_->translate(lines, options);
  EXPECT_EQ(first[0].candidates[1].text, first[2].candidates[1].text);
  options.search.batch = 1;
  expect_same(translator_->translate(lines, options), first);
  options.sampling.seed = 2;
  EXPECT_NE(texts_of(translator_->translate(lines, options)), texts_of(first));
}

// A line is answered before the next one is asked for.
TEST_F(SmallTranslator, AnswersALineWhileItWaitsForTheNext) {
  std::atomic<int> delivered = 0;
  int asked = 0;
  const LineSource source{[&](std::string& line) {
                            while (delivered < asked) std::this_thread::yield();
                            line = "The dog.";
                            return asked++ < 5;
                          },
                          [] { return false; }};
  translator_->translate(source, short_options(), [&](const Translation&) { ++delivered; });
  EXPECT_EQ(delivered, 5);
}

TEST_F(SmallTranslator, KeepsFewLinesInMemory) {
  std::atomic<int64_t> read = 0, delivered = 0, most = 0;
  const LineSource source{[&](std::string& line) {
    line = "cat";
    most = std::max<int64_t>(most, ++read - delivered);
    return read <= 3000;
  }};
  translator_->translate(source, short_options(), [&](const Translation& translation) {
    EXPECT_EQ(translation.line, delivered);
    ++delivered;
  });
  EXPECT_EQ(delivered, 3000);
  EXPECT_LT(most, 200);
}

TEST_F(SmallTranslator, DeliversWhatStandsBeforeABadLine) {
  int read = 0, delivered = 0;
  const LineSource source{[&](std::string& line) {
    if (read == 10) fail("line 11 is bad");
    ++read;
    line = "The cat.";
    return true;
  }};
  EXPECT_THROW(translator_->translate(source, short_options(), [&](const Translation&) { ++delivered; }),
               Error);
  EXPECT_EQ(delivered, 10);
}

TEST_F(SmallTranslator, EndsWhenNobodyTakesTheResults) {
  int64_t read = 0;
  const LineSource source{[&](std::string& line) {
    line = "The cat.";
    return ++read < 1'000'000;
  }};
  int delivered = 0;
  EXPECT_THROW(translator_->translate(source, short_options(),
                                      [&](const Translation&) {
                                        if (++delivered == 3) fail("the disk is full");
                                      }),
               Error);
  EXPECT_EQ(delivered, 3);
  EXPECT_LT(read, 1'000'000);
}

TEST_F(SmallTranslator, RefusesOptionsThatMakeNoSense) {
  const auto refused = [&](auto change) {
    TranslateOptions options;
    change(options);
    EXPECT_THROW(translator_->translate(Lines{"a"}, options), UsageError);
  };
  refused([](TranslateOptions& o) { o.search.beam = 0; });
  refused([](TranslateOptions& o) { o.search.n_best = 6; });
  refused([](TranslateOptions& o) { o.plain = true, o.search.no_repeat_ngram = 2; });
  refused([](TranslateOptions& o) { o.max_source_length = 1; });
  refused([](TranslateOptions& o) { o.sample = true, o.sampling.temperature = 0; });
}

TEST_F(SmallTranslator, AVeryLongLineIsTranslatedInPartsAndItsNeighboursAreNot) {
  std::string line;
  while (line.size() < 100'000) line += "The cat sat on the mat. ";
  TranslateOptions options = short_options();
  options.max_source_length = 64;
  const auto got = translator_->translate(Lines{"A dog.", line, "A cat."}, options);
  ASSERT_EQ(got.size(), 3u);
  EXPECT_EQ(got[0].text(), translator_->translate(Lines{"A dog."}, options)[0].text());
  EXPECT_EQ(got[2].text(), translator_->translate(Lines{"A cat."}, options)[0].text());
  const Candidate& best = got[1].candidates.front();
  EXPECT_EQ(best.tokens.size(), best.token_log_probabilities.size());
  EXPECT_GT(best.tokens.size(), 1000u);
  double sum = 0;
  for (const float p : best.token_log_probabilities) sum += static_cast<double>(p);
  EXPECT_NEAR(best.log_probability, sum, 1e-4 * std::abs(sum));
}

}  // namespace
}  // namespace gloss::decode
