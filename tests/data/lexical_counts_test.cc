#include "gloss/data/lexical_counts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>

#include "gloss/text/training.h"
#include "text/fixture.h"

namespace gloss::data {
namespace {

using ::testing::HasSubstr;
using text::error_of;
using Entries = std::vector<LexicalEntry>;

text::EncodedLine line(std::vector<int32_t> ids) {
  ids.push_back(0);
  return {ids, std::vector<text::EncodedLine::Span>(ids.size())};
}

struct LinkedPair {
  std::vector<int32_t> source, target;
  std::vector<PieceLink> links;
};

LexicalTable counted(const std::vector<LinkedPair>& pairs, int64_t best) {
  LexicalCounts counts;
  for (const LinkedPair& pair : pairs) counts.add(line(pair.source), line(pair.target), pair.links);
  return counts.table(best);
}

// Source 5 is linked with target 7 twice and with 8 once; 9 stands there and is linked with nothing.
TEST(LexicalCounts, AreSharesOfTheLinksOfASourceAndOfTheTargetText) {
  const std::vector<LinkedPair> pairs{{{5, 6}, {7, 8}, {{0, 0}, {1, 1}}}, {{5}, {8, 7, 9}, {{0, 0}, {1, 0}}}};
  EXPECT_EQ(counted(pairs, 10).entries, (Entries{{kNoSource, 7, 0.4f},
                                                 {kNoSource, 8, 0.4f},
                                                 {kNoSource, 9, 0.2f},
                                                 {5, 7, 2 / 3.0f},
                                                 {5, 8, 1 / 3.0f},
                                                 {6, 8, 1}}));
  // Probabilities are of all translations, also of those that are not kept; the row of NULL stays whole.
  EXPECT_EQ(
      counted(pairs, 1).entries,
      (Entries{
          {kNoSource, 7, 0.4f}, {kNoSource, 8, 0.4f}, {kNoSource, 9, 0.2f}, {5, 7, 2 / 3.0f}, {6, 8, 1}}));
}

TEST(LexicalCounts, KnowHowMuchDoubtTheyLeave) {
  const auto entropy = [](const std::vector<LinkedPair>& pairs) {
    LexicalCounts counts;
    for (const LinkedPair& pair : pairs) counts.add(line(pair.source), line(pair.target), pair.links);
    return counts.entropy();
  };
  EXPECT_EQ(entropy({}), 0);
  EXPECT_EQ(entropy({{{5}, {7, 8}, {}}}), 0) << "the row of NULL is no link";
  EXPECT_EQ(entropy({{{5, 6}, {7, 8}, {{0, 0}, {1, 1}}}}), 0);
  // Three links of 5, two with 7 and one with 8, and one of 6.
  const double expected = (2 * std::log(3 / 2.0) + std::log(3.0)) / 4;
  EXPECT_NEAR(entropy({{{5, 6}, {7, 8}, {{0, 0}, {1, 1}}}, {{5}, {8, 7, 9}, {{0, 0}, {1, 0}}}}), expected,
              1e-12);
}

TEST(LexicalCounts, RefuseLinksOutsideTheirSidesAndNoTranslations) {
  EXPECT_THAT(error_of([] { counted({{{5}, {7}, {{2, 0}}}}, 1); }), HasSubstr("piece 2 of 2"));
  EXPECT_THAT(error_of([] { counted({{{5}, {7}, {{0, -1}}}}, 1); }), HasSubstr("piece -1 of 2"));
  EXPECT_THAT(error_of([] { counted({{{5}, {7}, {{0, 0}}}}, 0); }), HasSubstr("too few"));
  EXPECT_TRUE(counted({}, 1).entries.empty());
}

// Against a map, on enough links that they are merged several times, in two orders.
TEST(LexicalCounts, DoNotDependOnTheOrderOfPairs) {
  std::mt19937 random(5);
  std::vector<LinkedPair> pairs;
  std::map<std::pair<int32_t, int32_t>, int64_t> expected;
  std::map<int32_t, int64_t> totals;
  for (int i = 0; i < 30; ++i) {
    LinkedPair pair;
    for (int j = 0; j < 1000; ++j) {
      pair.source.push_back(static_cast<int32_t>(random() % 50));
      pair.target.push_back(static_cast<int32_t>(random() % 70));
    }
    for (int j = 0; j < 300'000; ++j) {
      const PieceLink link{static_cast<int32_t>(random() % 1000), static_cast<int32_t>(random() % 1000)};
      pair.links.push_back(link);
      const int32_t source = pair.source[static_cast<size_t>(link.source)];
      ++expected[{source, pair.target[static_cast<size_t>(link.target)]}];
      ++totals[source];
    }
    for (const int32_t target : pair.target) ++expected[{kNoSource, target}];
    totals[kNoSource] += 1000;
    pairs.push_back(std::move(pair));
  }
  const Entries entries = counted(pairs, 1000).entries;
  ASSERT_EQ(entries.size(), expected.size());
  for (const LexicalEntry& entry : entries)
    EXPECT_EQ(entry.probability,
              static_cast<float>(static_cast<double>(expected.at({entry.source, entry.target})) /
                                 static_cast<double>(totals.at(entry.source))));
  std::ranges::shuffle(pairs, random);
  EXPECT_EQ(counted(pairs, 1000).entries, entries);
}

struct Words {
  text::TemporaryFolder folder;
  text::Tokenizer tokenizer = [this] {
    text::TokenizerOptions options;
    options.vocabulary_size = 200;
    const auto text = folder.write("text", text::joined(text::small_sentences()));
    return text::train_tokenizer(text, text, options).tokenizer;
  }();
  LexicalTable read(const std::string& table, int64_t best = 100) const {
    return pieces_of_words(folder.write("words.lex", table), tokenizer, best);
  }
  std::vector<int32_t> pieces(const std::string& word) const {
    std::vector<int32_t> ids = tokenizer.encode_source_ids(word);
    ids.pop_back();
    return ids;
  }
};

TEST(PiecesOfWords, SumUpTheRowsOfTheWordsThatAPieceIsIn) {
  const Words f;
  const std::vector<std::string> lines{"the zqx 0.25\n", "zzz zqx 0.75\n", "the the 0.5\n",
                                       "zqx the 0.5\n",  "the NULL 1\n",   "NULL the 0.5\n"};
  // By hand: the row of a piece is a sum over words and their translations.
  std::map<int32_t, std::map<int32_t, double>> rows;
  const auto add = [&](const std::string& target, const std::vector<int32_t>& from, double probability) {
    const auto to = f.pieces(target);
    for (const int32_t s : from) {
      for (const int32_t t : to) rows[s][t] += probability / static_cast<double>(from.size() * to.size());
    }
  };
  ASSERT_GT(f.pieces("zqx").size(), 1U);
  add("the", f.pieces("zqx"), 0.25);
  add("zzz", f.pieces("zqx"), 0.75);
  add("the", f.pieces("the"), 0.5);
  add("zqx", f.pieces("the"), 0.5);
  add("the", {kNoSource}, 1);
  std::string table;
  for (const std::string& each : lines) table += each;
  const Entries entries = f.read(table).entries;
  size_t expected = 0;
  for (const auto& [source, row] : rows) {
    double total = 0;
    for (const auto& [target, weight] : row) total += weight;
    for (const auto& [target, weight] : row) {
      const auto found = std::ranges::find_if(entries, [s = source, t = target](const LexicalEntry& each) {
        return each.source == s && each.target == t;
      });
      ASSERT_NE(found, entries.end());
      EXPECT_NEAR(found->probability, weight / total, 1e-6);
    }
    expected += row.size();
  }
  EXPECT_EQ(entries.size(), expected);
  std::string turned;
  for (auto each = lines.rbegin(); each != lines.rend(); ++each) turned += *each;
  EXPECT_EQ(f.read(turned).entries, entries);
  // The best alone, and NULL's row whole.
  std::map<int32_t, int> seen;
  for (const LexicalEntry& each : f.read(table, 1).entries) ++seen[each.source];
  for (const auto& [source, row] : rows)
    EXPECT_EQ(seen[source], source == kNoSource ? static_cast<int>(row.size()) : 1);
}

TEST(PiecesOfWords, RefuseWhatIsNoTable) {
  const Words f;
  EXPECT_THAT(error_of([&] { f.read("the the 1\nthe the\n"); }), HasSubstr("line 2 of "));
  for (const char* none : {"", "NULL the 1\n"})
    EXPECT_THAT(error_of([&] { f.read(none); }), HasSubstr("words.lex has no pair of words"));
}

}  // namespace
}  // namespace gloss::data
