// Which target pieces a sentence may become.
#include "gloss/decode/shortlist.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include "decode/small_translator.h"
#include "text/fixture.h"

namespace gloss::decode {
namespace {

using data::kNoSource;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using text::error_of;
using Ids = std::vector<int32_t>;

text::Vocabulary vocabulary(const std::string& letter, int32_t more) {
  std::vector<std::string> pieces{"</s>", "<pad>", "same", "<unk>"};
  for (int32_t i = 4; i < 4 + more; ++i) pieces.push_back(letter + std::to_string(i));
  return text::Vocabulary(std::move(pieces));
}
const text::Vocabulary kSource = vocabulary("s", 6), kTarget = vocabulary("t", 196);

// NULL: 150, 9, 8. Source 4: 199, 20, 10, 11. Source 5: 20, 63, 64.
const data::LexicalTable kTable{{{kNoSource, 150, 0.5f},
                                 {kNoSource, 9, 0.25f},
                                 {kNoSource, 8, 0.25f},
                                 {4, 199, 0.5f},
                                 {4, 20, 0.25f},
                                 {4, 10, 0.125f},
                                 {4, 11, 0.125f},
                                 {5, 20, 0.5f},
                                 {5, 63, 0.25f},
                                 {5, 64, 0.25f}},
                                0};

Ids tokens(const ShortlistOptions& options, const Ids& source, const data::LexicalTable& table = kTable) {
  return Shortlist(table, kSource, kTarget, options).tokens(source);
}

TEST(Shortlist, HoldsTheFirstTheBestAndTheSpecialPieces) {
  EXPECT_THAT(tokens({1, 2, 0}, {4, 0}), ElementsAre(0, 3, 20, 150, 199));
  EXPECT_THAT(tokens({2, 4, 0}, {4, 5, 4, 0}), ElementsAre(0, 3, 9, 10, 11, 20, 63, 64, 150, 199));
  EXPECT_THAT(tokens({0, 0, 0}, {4, 5}), ElementsAre(0, 3));
  EXPECT_THAT(tokens({1, 2, 0}, {}), ElementsAre(0, 3, 150));
  EXPECT_THAT(tokens({1, 2, 0}, {8, 0}), ElementsAre(0, 3, 150)) << "a piece without translations";
}

TEST(Shortlist, TakesTranslationsAboveTheThreshold) {
  EXPECT_THAT(tokens({0, 100, 0.125f}, {4}), ElementsAre(0, 3, 20, 199));
  EXPECT_THAT(tokens({0, 100, 1}, {4}), ElementsAre(0, 3));
  data::LexicalTable table = kTable;
  table.entries.push_back({6, 30, 0});
  EXPECT_THAT(tokens({0, 100, 0}, {6}, table), ElementsAre(0, 3)) << "none is more probable than 0";
}

TEST(Shortlist, FillsTheFirstUpWithTheLowestIdsButPad) {
  EXPECT_THAT(tokens({5, 0, 0}, {}), ElementsAre(0, 2, 3, 8, 9, 150));
  EXPECT_THAT(tokens({7, 0, 0}, {}), ElementsAre(0, 2, 3, 4, 8, 9, 150));
  const data::LexicalTable plain{{{4, 199, 1}}, 0};
  EXPECT_THAT(tokens({4, 0, 0}, {}, plain), ElementsAre(0, 2, 3, 4));
  const Ids all = tokens({100'000, 100, 0}, {4}, plain);
  EXPECT_EQ(std::ssize(all), kTarget.size() - 1);
  EXPECT_FALSE(std::ranges::binary_search(all, kTarget.pad_id()));
}

TEST(Shortlist, HoldsPiecesOfTheSourceThatTheTargetHasToo) {
  EXPECT_THAT(tokens({0, 0, 0}, {2, 0}), ElementsAre(0, 2, 3));
  EXPECT_THAT(tokens({0, 0, 0}, {1}), ElementsAre(0, 3)) << "<pad> is never produced";
}

// Against a set, on random tables with every option; a sentence's set is the union of its pieces'.
TEST(Shortlist, EqualsASlowOne) {
  std::mt19937 random(11);
  for (int trial = 0; trial < 50; ++trial) {
    data::LexicalTable table;
    for (int32_t source = kNoSource; source < kSource.size(); ++source) {
      for (int32_t target = 0; target < kTarget.size(); ++target) {
        if (target != kTarget.pad_id() && random() % 3 == 0)
          table.entries.push_back({source, target, static_cast<float>(random() % 8) / 8});
      }
    }
    data::sort_lexical(table.entries);
    const ShortlistOptions options{static_cast<int32_t>(random() % 90), static_cast<int32_t>(random() % 40),
                                   static_cast<float>(random() % 3) / 8};
    Ids source;
    for (size_t i = random() % 5; i > 0; --i)
      source.push_back(static_cast<int32_t>(random() % static_cast<uint32_t>(kSource.size())));
    std::set<int32_t> expected{kTarget.end_id(), kTarget.unknown_id()};
    std::set<int32_t> first;
    for (const auto& each : table.entries) {
      if (each.source == kNoSource && std::ssize(first) < options.first) first.insert(each.target);
    }
    for (int32_t id = 0; std::ssize(first) < options.first; ++id) {
      if (id != kTarget.pad_id()) first.insert(id);
    }
    expected.insert(first.begin(), first.end());
    for (const int32_t id : source) {
      int32_t rank = 0;
      for (const auto& each : table.entries) {
        if (each.source == id && rank++ < options.best && each.probability > options.threshold)
          expected.insert(each.target);
      }
      if (id < 4 && id != kSource.pad_id()) expected.insert(id);  // the pieces both have
    }
    EXPECT_EQ(tokens(options, source, table), Ids(expected.begin(), expected.end()));
    std::ranges::reverse(source);
    EXPECT_EQ(tokens(options, source, table), Ids(expected.begin(), expected.end()));
  }
}

TEST(Shortlist, RefusesWhatMakesNoSense) {
  EXPECT_THAT(error_of([] { tokens({1, 1, 0}, {4, 10}); }), HasSubstr("no source piece 10"));
  EXPECT_THAT(error_of([] { tokens({1, 1, 0}, {-1}); }), HasSubstr("no source piece -1"));
  EXPECT_THROW(tokens({-1, 1, 0}, {}), UsageError);
  EXPECT_THROW(tokens({1, -1, 0}, {}), UsageError);
  for (const float threshold : {-0.1f, 1.1f, std::numeric_limits<float>::quiet_NaN()})
    EXPECT_THROW(tokens({1, 1, threshold}, {}), UsageError);
  EXPECT_THAT(error_of([] { tokens({}, {}, {{{4, 200, 1}}, 0}); }), HasSubstr("the target 200 of 200"));
  EXPECT_THAT(error_of([] { tokens({}, {}, {{{5, 20, 1}, {4, 20, 1}}, 0}); }), HasSubstr("the source 4"));
  EXPECT_THAT(error_of([] { tokens({}, {}, {{{10, 20, 1}}, 0}); }), HasSubstr("the source 10"));
}

class ShortlistOfAModel : public SmallTranslator {};

// With one vocabulary for both languages a sentence may always become itself.
TEST_F(ShortlistOfAModel, IsReadFromAFile) {
  const text::Tokenizer& tokenizer = translator_->tokenizer();
  const text::Vocabulary& pieces = tokenizer.target_vocabulary();
  const text::TemporaryFolder folder;
  const auto file = folder.write("t.lex", fmt::format("{} {} 0.5\n{} NULL 1\nno-piece NULL 1\n",
                                                      pieces.piece(9), pieces.piece(8), pieces.piece(7)));
  const Shortlist shortlist = Shortlist::load(file, tokenizer, {1, 1, 0});
  EXPECT_EQ(shortlist.unknown_lines(), 1);
  EXPECT_EQ(shortlist.target_size(), pieces.size());
  std::set<int32_t> expected{pieces.end_id(), pieces.unknown_id(), 7, 8, 9};
  EXPECT_EQ(shortlist.tokens(Ids{8}), Ids(expected.begin(), expected.end()));
  const Ids source = tokenizer.encode_source_ids("Nobody knows the black dog.");
  const Ids own = shortlist.tokens(source);
  for (const int32_t id : source) EXPECT_TRUE(std::ranges::binary_search(own, id));
  EXPECT_THROW(Shortlist::load("nowhere", tokenizer, {1, -1, 0}), UsageError)
      << "before the file is looked for";
}

}  // namespace
}  // namespace gloss::decode
