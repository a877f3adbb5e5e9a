// Files of word links, and the error rate over them.
#include "gloss/evaluate/alignment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <random>
#include <set>

#include "gloss/base/error.h"
#include "gloss/text/lines.h"
#include "gloss/text/words.h"
#include "io/scratch.h"

namespace gloss::evaluate {
namespace {

using io::message_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Lines = std::vector<std::string>;

std::vector<std::string> lines_of(const std::filesystem::path& path) {
  Lines lines;
  for (const text::Line& line : text::read_lines(path)) lines.push_back(line.text);
  return lines;
}

std::string moses_error(const Lines& lines, std::span<const WordCounts> words = {}) {
  return message_of([&] { read_alignments(lines, "a.align", words); });
}
std::string gold_error(const Lines& lines, int64_t sentences, const GoldOptions& options = {}) {
  return message_of([&] { read_gold(lines, "a.gold", sentences, options); });
}

TEST(MosesLines, AreReadInOrderWithoutRepetition) {
  const auto read = read_alignments({"1-2 0-0", "", "  \t ", "7-0 7-0 0-11 ", "999999-0"}, "a.align");
  ASSERT_EQ(read.size(), 5u);
  EXPECT_THAT(read[0], ElementsAre(Link{0, 0}, Link{1, 2}));
  EXPECT_THAT(read[1], IsEmpty());
  EXPECT_THAT(read[2], IsEmpty());
  EXPECT_THAT(read[3], ElementsAre(Link{0, 11}, Link{7, 0}));
  EXPECT_THAT(read[4], ElementsAre(Link{999'999, 0}));
  EXPECT_EQ(moses_line(read[0]), "0-0 1-2");
  EXPECT_EQ(moses_line({}), "");
}

TEST(MosesLines, OfEveryKindOfFile) {
  const io::Scratch scratch;
  io::put(scratch / "windows",
          "\xEF\xBB\xBF"
          "0-0 1-1\r\n\r\n2-2");
  EXPECT_EQ(read_alignments(lines_of(scratch / "windows"), "windows"),
            (std::vector<Alignment>{{{0, 0}, {1, 1}}, {}, {{2, 2}}}));
}

TEST(MosesLines, RoundTrip) {
  std::mt19937 random(5);
  for (int trial = 0; trial < 200; ++trial) {
    std::vector<Link> links;
    for (size_t n = random() % 20; n > 0; --n)
      links.push_back({static_cast<int32_t>(random() % 30), static_cast<int32_t>(random() % 1'000'000)});
    const Alignment alignment = in_order(links);
    EXPECT_EQ(read_alignments({moses_line(alignment)}, "a").at(0), alignment);
  }
}

TEST(MosesLines, RefuseWhatIsNone) {
  const std::string expected =
      " is no link: expected are a source word and a target word, counted from 0, as in 0-2";
  for (const char* word :
       {"3", "3-", "-3", "3-4-5", "3--4", "a-1", "1-b", "1:2", "2p1", "+1-2", "0-0,1-1", "1 -2"})
    EXPECT_THAT(moses_error({"0-0", std::string("0-1 ") + word}), HasSubstr(expected)) << word;
  EXPECT_EQ(moses_error({"0-0", "0-1 1:2"}), "line 2 of a.align: '1:2'" + expected);
  EXPECT_EQ(moses_error({"0-1\x1B[2J"}), "line 1 of a.align: '0-1\\x1B[2J'" + expected);
  EXPECT_EQ(moses_error({"0-1000000"}),
            "line 1 of a.align: the link '0-1000000' names a word beyond the 1000000th");
  EXPECT_THAT(moses_error({"99999999999999999999999999-0"}), HasSubstr("names a word beyond the 1000000th"));
}

TEST(MosesLines, StayInsideTheirSentences) {
  const std::vector<WordCounts> words{{3, 2}, {0, 4}};
  EXPECT_EQ(read_alignments({"2-1", ""}, "a", words).at(0), (Alignment{{2, 1}}));
  EXPECT_EQ(
      moses_error({"3-1", ""}, words),
      "line 1 of a.align: the link '3-1' is outside its sentences, which have 3 and 2 words, counted from 0");
  EXPECT_THAT(moses_error({"2-2", ""}, words), HasSubstr("'2-2' is outside"));
  EXPECT_THAT(moses_error({"", "0-0"}, words), HasSubstr("line 2 of a.align: the link '0-0' is outside"));
  EXPECT_EQ(moses_error({""}, words),
            "a.align has 1 lines, but there are 2 sentence pairs: each needs its line");
}

TEST(GoldLines, OfASentenceEach) {
  const auto gold = read_gold({"2-1 1p3 2?2 2-1", "", "1p1 1-1"}, "a.gold", 3);
  EXPECT_THAT(gold[0].sure, ElementsAre(Link{1, 0}));
  EXPECT_THAT(gold[0].possible, ElementsAre(Link{0, 2}, Link{1, 0}, Link{1, 1}));
  EXPECT_THAT(gold[1].possible, IsEmpty());
  EXPECT_THAT(gold[2].sure, ElementsAre(Link{0, 0})) << "once sure is sure";
  EXPECT_THAT(gold[2].possible, ElementsAre(Link{0, 0}));
  EXPECT_THAT(read_gold({"2-0"}, "a.gold", 1, {.base = 0})[0].sure, ElementsAre(Link{2, 0}));
}

TEST(GoldLines, OfALinkEach) {
  const auto gold =
      read_gold({"", "0003 1 2", "3 2 1 P 0.5", "1 4 4 S", "3 2 1 S", "1 1 1 0.25"}, "a.gold", 4);
  EXPECT_THAT(gold[0].sure, ElementsAre(Link{0, 0}, Link{3, 3}));
  EXPECT_THAT(gold[1].possible, IsEmpty());
  EXPECT_THAT(gold[2].sure, ElementsAre(Link{0, 1}, Link{1, 0}));
  EXPECT_THAT(gold[3].possible, IsEmpty());
  EXPECT_THAT(read_gold({"1 2 1 P"}, "a.gold", 1)[0].sure, IsEmpty());
  EXPECT_THAT(read_gold({"1 2 1 P"}, "a.gold", 1)[0].possible, ElementsAre(Link{1, 0}));
}

TEST(GoldLines, RefuseWhatIsNone) {
  EXPECT_EQ(
      gold_error({"1-1", "1-1 1x2"}, 2),
      "line 2 of a.gold: '1x2' is no link: expected are a source word and a target word, 2-1 if sure, 2p1 if "
      "possible");
  EXPECT_EQ(gold_error({"1-1 0p3"}, 1),
            "line 1 of a.gold: the link '0p3' has a word 0, but the first is 1: if the file counts from 0, "
            "give --gold-base 0");
  EXPECT_EQ(gold_error({"1-1"}, 2),
            "a.gold has 1 lines, but there are 2 sentence pairs: each needs its line");
  const std::string expected =
      " is no link: expected are sentence, source word, target word, then S or P if given";
  EXPECT_EQ(gold_error({"1 1 1 S", "1 1-1"}, 1), "line 2 of a.gold: '1 1-1'" + expected);
  for (const char* line : {"1 1", "1 1 1 X", "1 1 1 S 0.5 1", "1 1 1 0.5 S", "1 1 1 S x", "1 -1 1", "x 1 1"})
    EXPECT_THAT(gold_error({"1 1 1", line}, 1), HasSubstr(expected)) << line;
  EXPECT_EQ(gold_error({"1 1 1", "3 1 1"}, 2),
            "line 2 of a.gold: there is no sentence 3: there are 2, counted from 1");
  EXPECT_THAT(gold_error({"0 1 1"}, 2), HasSubstr("there is no sentence 0"));
  EXPECT_THAT(gold_error({"99999999999999999999 1 1"}, 2),
              HasSubstr("there is no sentence 99999999999999999999"));
  EXPECT_THAT(gold_error({"1 0 1 S"}, 2), HasSubstr("the link '1 0 1 S' has a word 0"));
  EXPECT_THAT(gold_error({}, 0, {.base = 2}), HasSubstr("the first word is number 0 or 1, not 2"));
}

TEST(GoldLines, StayInsideTheirSentences) {
  const std::vector<WordCounts> words{{3, 2}, {1, 1}};
  EXPECT_EQ(read_gold({"3p2", "1-1"}, "a", 2, {.words = words})[0].possible, (Alignment{{2, 1}}));
  EXPECT_EQ(
      gold_error({"4p2", ""}, 2, {.words = words}),
      "line 1 of a.gold: the link '4p2' is outside its sentences, which have 3 and 2 words, counted from 1");
  EXPECT_THAT(
      gold_error({"1 3 2", "2 1 2 S"}, 2, {.words = words}),
      HasSubstr("line 2 of a.gold: the link '2 1 2 S' is outside its sentences, which have 1 and 1 words"));
}

// Worked by hand: of 5 links 2 are sure and 3 possible; 4 are sure in the gold.
TEST(Aer, OfACorpusByHand) {
  const std::vector<Alignment> alignments{{{0, 0}, {1, 1}, {2, 2}}, {{0, 1}, {1, 0}}};
  const std::vector<GoldAlignment> gold{{{{0, 0}, {1, 2}}, {{0, 0}, {1, 1}, {1, 2}}},
                                        {{{0, 0}, {1, 0}}, {{0, 0}, {1, 0}}}};
  const AerScore score = aer(alignments, gold);
  EXPECT_EQ(score.sentences, 2);
  EXPECT_EQ(score.links, 5);
  EXPECT_EQ(score.sure, 4);
  EXPECT_EQ(score.possible, 5);
  EXPECT_EQ(score.links_in_sure, 2);
  EXPECT_EQ(score.links_in_possible, 3);
  EXPECT_DOUBLE_EQ(score.precision(), 3.0 / 5);
  EXPECT_DOUBLE_EQ(score.recall(), 2.0 / 4);
  EXPECT_DOUBLE_EQ(score.aer(), 1 - 5.0 / 9);
}

TEST(Aer, AtItsEnds) {
  const std::vector<GoldAlignment> gold{{{{0, 0}}, {{0, 0}, {1, 1}}}};
  EXPECT_EQ(aer({{{0, 0}}}, gold).aer(), 0);
  EXPECT_EQ(aer({{{0, 0}, {1, 1}}}, gold).aer(), 0) << "what is possible costs nothing";
  EXPECT_EQ(aer({{{1, 0}}}, gold).aer(), 1);
  EXPECT_EQ(aer({{}}, gold).aer(), 1);
  EXPECT_EQ(aer({{}}, gold).precision(), 1);
  EXPECT_EQ(aer({{{0, 1}}}, {{{}, {{0, 1}}}}).recall(), 1);
  EXPECT_THAT(message_of([&] { aer({}, gold); }), HasSubstr("there are 0 alignments and 1 gold alignments"));
  EXPECT_THAT(message_of([&] { aer({{}}, {{{}, {{0, 0}}}}); }), HasSubstr("there is nothing to score"));
}

// The numbers of the paper's formula from sets, on random links.
TEST(Aer, IsTheFormulaOverSets) {
  std::mt19937 random(7);
  for (int trial = 0; trial < 100; ++trial) {
    const auto links = [&](size_t most) {
      std::vector<Link> some;
      for (size_t n = random() % most; n > 0; --n)
        some.push_back({static_cast<int32_t>(random() % 6), static_cast<int32_t>(random() % 6)});
      return some;
    };
    std::vector<Alignment> alignments;
    std::vector<GoldAlignment> gold;
    double a_s = 0, a_p = 0, a = 0, s = 0;
    for (int i = 0; i < 4; ++i) {
      const std::vector<Link> made = links(20), sure = links(10), more = links(20);
      std::set<Link> A(made.begin(), made.end()), S(sure.begin(), sure.end()), P = S;
      P.insert(more.begin(), more.end());
      alignments.push_back(in_order(made));
      gold.push_back({{S.begin(), S.end()}, {P.begin(), P.end()}});
      a += static_cast<double>(A.size());
      s += static_cast<double>(S.size());
      for (const Link& link : A) {
        a_s += static_cast<double>(S.count(link));
        a_p += static_cast<double>(P.count(link));
      }
    }
    if (a == 0 || s == 0) continue;
    EXPECT_DOUBLE_EQ(aer(alignments, gold).aer(), 1 - (a_s + a_p) / (a + s));
    EXPECT_DOUBLE_EQ(aer(alignments, gold).precision(), a_p / a);
    EXPECT_DOUBLE_EQ(aer(alignments, gold).recall(), a_s / s);
  }
}

// The diagonal has an error rate of 0.54 on the hand-aligned Hansards; swapped languages or a base of 0 are
// found out by the sentences, or give another number.
TEST(Aer, OfTheDiagonalOnHansards) {
  const std::filesystem::path folder = std::filesystem::path(GLOSS_TEST_SHARED) / "data/alignment";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "the shared alignment data is not here";
  std::vector<WordCounts> words;
  std::vector<Alignment> diagonal;
  for (const std::string& line : lines_of(folder / "hansards-enfr.src-tgt")) {
    const size_t bar = line.find(" ||| ");
    ASSERT_NE(bar, std::string::npos);
    const auto n_s = static_cast<int64_t>(text::words_of(line.substr(0, bar)).size()),
               n_t = static_cast<int64_t>(text::words_of(line.substr(bar + 5)).size());
    words.push_back({n_s, n_t});
    std::vector<Link> links;
    for (int64_t t = 0; t < n_t; ++t)  // the middle of a target word, on the scale of the source
      links.push_back({static_cast<int32_t>((2 * t + 1) * n_s / (2 * n_t)), static_cast<int32_t>(t)});
    diagonal.push_back(in_order(links));
  }
  const Lines lines = lines_of(folder / "hansards-enfr.gold");
  const auto gold = read_gold(lines, "gold", 447, {.words = words});
  const AerScore score = aer(diagonal, gold);
  EXPECT_EQ(score.sentences, 447);
  EXPECT_EQ(score.sure, 4038);
  EXPECT_EQ(score.possible, 17438);
  EXPECT_NEAR(score.aer(), 0.54, 0.005);

  for (WordCounts& each : words) std::swap(each.source, each.target);
  EXPECT_THAT(gold_error(lines, 447, {.words = words}), HasSubstr("is outside its sentences"));
  EXPECT_GT(aer(diagonal, read_gold(lines, "gold", 447, {.base = 0})).aer(), 0.6);
}

}  // namespace
}  // namespace gloss::evaluate
