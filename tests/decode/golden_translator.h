// The golden model, a Marian folder that transformers trained on Multi30k, and the first 200 lines of
// test2016; and how translations are compared.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gloss/decode/translator.h"
#include "support/compare.h"

namespace gloss::decode {

namespace fs = std::filesystem;
using Lines = std::vector<std::string>;

inline const fs::path kGolden = GLOSS_TEST_SHARED "/golden/hf-marian-multi30k-en-de";
inline const fs::path kTestSet = GLOSS_TEST_SHARED "/data/multi30k/test_2016_flickr.en.gz";

// The first lines of a gzip file; none when it is not there.
inline Lines first_lines(const fs::path& file, size_t count) {
  Lines lines;
  if (!fs::exists(file)) return lines;
  const std::string command = "gzip -dc '" + file.string() + "' 2>/dev/null";
  FILE* pipe = ::popen(command.c_str(), "r");
  std::string line;
  for (int c; lines.size() < count && (c = std::fgetc(pipe)) != EOF;) {
    if (c != '\n') {
      line += static_cast<char>(c);
    } else {
      lines.push_back(std::exchange(line, {}));
    }
  }
  ::pclose(pipe);
  return lines;
}

inline Lines texts_of(const std::vector<Translation>& translations) {
  Lines texts;
  for (const Translation& one : translations) texts.push_back(one.text());
  return texts;
}

inline std::vector<float> scores_of(const std::vector<Translation>& translations) {
  std::vector<float> scores;
  for (const Translation& one : translations) {
    for (const Candidate& candidate : one.candidates) {
      scores.push_back(candidate.score);
      scores.push_back(candidate.log_probability);
      for (const float p : candidate.token_log_probabilities) scores.push_back(p);
    }
  }
  return scores;
}

inline void expect_same(const std::vector<Translation>& got, const std::vector<Translation>& want) {
  EXPECT_EQ(texts_of(got), texts_of(want));
  EXPECT_TRUE(tests::same_bits(scores_of(got), scores_of(want)));
}

class GoldenTranslator : public ::testing::Test {
 protected:
  void SetUp() override {
    lines_ = first_lines(kTestSet, 200);
    if (!fs::exists(kGolden) || lines_.size() != 200)
      GTEST_SKIP() << "needs " << kGolden << " and " << kTestSet;
    translator_.emplace(kGolden);
  }
  // A batch of its own, threads, workers and order change not a bit of what `translator` says.
  void expect_no_company(const Translator& translator, TranslateOptions options = {}) const;

  Lines lines_;
  std::optional<Translator> translator_;
};

inline void GoldenTranslator::expect_no_company(const Translator& translator,
                                                TranslateOptions options) const {
  const TranslateOptions given = options;
  const auto want = translator.translate(lines_, options);
  struct Setting {
    int batch, threads, workers;
  };
  for (const Setting& s : {Setting{1, 1, 1}, {7, 2, 2}, {64, 2, 1}, {64, 1, 3}}) {
    options.search.batch = s.batch;
    options.threads = s.threads;
    options.workers = s.workers;
    SCOPED_TRACE(fmt::format("batch {}, {} threads, {} workers", s.batch, s.threads, s.workers));
    expect_same(translator.translate(lines_, options), want);
  }
  const Lines reversed(lines_.rbegin(), lines_.rend());
  auto got = translator.translate(reversed, given);
  std::reverse(got.begin(), got.end());
  expect_same(got, want);
  // The comparison can fail.
  const auto other = translator.translate(Lines{lines_[0] + " today"}, given);
  EXPECT_NE(texts_of(other)[0], texts_of(want)[0]);
  EXPECT_FALSE(tests::same_bits(scores_of(other), scores_of({want[0]})));
}

}  // namespace gloss::decode
