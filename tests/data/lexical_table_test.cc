#include "gloss/data/lexical_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <set>

#include "text/fixture.h"

namespace gloss::data {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using text::error_of;

text::Vocabulary vocabulary(std::vector<std::string> more) {
  more.insert(more.begin(), {"</s>", "<unk>", "<pad>"});
  return text::Vocabulary(std::move(more));
}
// Ids from 3 on.
const text::Vocabulary kSource = vocabulary({"▁the", "▁house", "s"}),
                       kTarget = vocabulary({"▁das", "▁Haus", "er"});

LexicalTable read(const std::string& text) {
  const text::TemporaryFolder folder;
  return read_lexical_table(folder.write("t.lex", text), kSource, kTarget);
}
std::string written(const LexicalTable& table, int64_t* left_out = nullptr,
                    const text::Vocabulary& source = kSource) {
  std::string text;
  const int64_t out =
      write_lexical_table(table, source, kTarget, [&](std::string_view part) { text += part; });
  if (left_out) *left_out = out;
  return text;
}

TEST(LexicalTable, ReadsTargetSourceProbabilityInAnyOrderOfLines) {
  const std::vector<LexicalEntry> expected{
      {kNoSource, 4, 0.5f}, {kNoSource, 3, 0.25f}, {3, 3, 0.75f}, {3, 4, 0.25f}, {4, 4, 1},
      {5, 4, 0.125f},       {5, 5, 0.125f}};
  const LexicalTable table = read(
      "er s 0.125\n▁Haus ▁house 1\n▁Haus\t▁the 0.25\r\n ▁das  ▁the  0.75 \n▁Haus s 1.25e-1\n▁das NULL .25\n"
      "▁Haus NULL 0.5");
  EXPECT_EQ(table.entries, expected);
  EXPECT_EQ(table.unknown_lines, 0);
  EXPECT_EQ(written(table),
            "▁Haus NULL 0.5\n▁das NULL 0.25\n▁das ▁the 0.75\n▁Haus ▁the 0.25\n▁Haus ▁house 1\n▁Haus s 0.125\n"
            "er s 0.125\n");
}

TEST(LexicalTable, PassesOverWhatTheVocabulariesLack) {
  const LexicalTable table =
      read("▁das ▁the 0.5\n▁den ▁the 0.5\n▁das ▁a 0.5\nNULL ▁the 0.1\n▁the ▁das 0.5\nNULL NULL 1\n");
  EXPECT_EQ(table.entries, (std::vector<LexicalEntry>{{3, 3, 0.5f}}));
  EXPECT_EQ(table.unknown_lines, 3) << "the target NULL stands for nothing, which is known";
}

TEST(LexicalTable, TakesProbabilitiesFrom0To1) {
  EXPECT_EQ(read("▁das ▁the 0\n").entries[0].probability, 0);
  EXPECT_EQ(read("▁das ▁the 1.0000000\n").entries[0].probability, 1);
  EXPECT_EQ(read("▁das ▁the 1e-45\n").entries[0].probability, std::numeric_limits<float>::denorm_min());
  EXPECT_EQ(read("▁das ▁the 1e-60\n").entries[0].probability, 0) << "too small for a float";
  EXPECT_FALSE(std::signbit(read("▁das ▁the -0\n").entries[0].probability));
  for (const char* bad :
       {"1.0001", "-1e-9", "nan", "inf", "1e60", "1e999", "-1e-60", "-1e-999", "0,5", "0.5x", "x", "0x1p-1"})
    EXPECT_THAT(error_of([&] { read(std::string("▁Haus ▁the 1\n▁das ▁the ") + bad + "\n"); }),
                AllOf(HasSubstr("line 2 of "), HasSubstr("t.lex has the probability '"), HasSubstr(bad)))
        << bad;
}

TEST(LexicalTable, RefusesOtherFilesInOneSentence) {
  for (const char* bad : {"▁das ▁the", "▁das ▁the 0.5 0.5", "", " \t ", "▁das", "▁das ▁the 0.5 #"})
    EXPECT_THAT(error_of([&] { read(std::string("▁Haus ▁the 1\n") + bad + "\n▁Haus ▁house 1\n"); }),
                AllOf(HasSubstr("line 2 of "), HasSubstr("t.lex is '"), HasSubstr("are expected")))
        << bad;
  EXPECT_THAT(error_of([] { read(std::string(100'000, 'x')); }).size(), ::testing::Lt(400U));
  EXPECT_THAT(error_of([] { read("▁Haus ▁the 1\n▁das \xFF 1\n"); }), HasSubstr("line 2 of "));
  EXPECT_THAT(error_of([] { read(std::string("▁das ▁the 1\n\0\0\0", 18)); }), HasSubstr("t.lex"));
  EXPECT_THAT(error_of([] { read("\x1F\x8B\x08 packed"); }), HasSubstr("t.lex"));
  for (const char* none : {"", "den the 0.5\n", "NULL NULL 1\n"})
    EXPECT_THAT(error_of([&] { read(none); }), HasSubstr("has no line with a piece of both vocabularies"));
  EXPECT_THAT(error_of([] { read_lexical_table("nowhere", kSource, kTarget); }), HasSubstr("nowhere"));
}

TEST(LexicalTable, RefusesAPairThatStandsTwice) {
  EXPECT_THAT(error_of([] { read("▁das ▁the 0.5\n▁Haus ▁the 0.5\n▁das ▁the 0.4\n"); }),
              HasSubstr("has the target '▁das' of the source '▁the' twice, in the lines 1 and 3"));
  EXPECT_THAT(error_of([] { read("▁das NULL 0.5\n▁das NULL 0.5\n"); }), HasSubstr("the source 'NULL' twice"));
}

TEST(LexicalTable, LeavesOutPiecesThatFitNoLine) {
  const text::Vocabulary source = vocabulary({"a b", "NULL", "c\n"});
  int64_t left_out = 0;
  EXPECT_EQ(written({{{kNoSource, 3, 1}, {0, 3, 1}, {3, 3, 1}, {4, 3, 1}, {5, 3, 1}}, 0}, &left_out, source),
            "▁das NULL 1\n▁das </s> 1\n");
  EXPECT_EQ(left_out, 3);
}

// Every float is written with all its digits, and the order of lines plays no part.
RC_GTEST_PROP(LexicalTable, ReadsWhatItWroteWhateverTheOrderOfLines, ()) {
  LexicalTable table;
  for (const auto& [source, target] :
       *rc::gen::nonEmpty(rc::gen::container<std::set<std::pair<int32_t, int32_t>>>(
           rc::gen::pair(rc::gen::inRange(kNoSource, kSource.size()), rc::gen::inRange(0, kTarget.size())))))
    table.entries.push_back(
        {source, target,
         static_cast<float>(*rc::gen::inRange<uint32_t>(0, UINT32_MAX)) / static_cast<float>(UINT32_MAX)});
  sort_lexical(table.entries);
  const std::string text = written(table);
  RC_ASSERT(read(text).entries == table.entries);
  std::vector<std::string> lines;
  for (size_t begin = 0, end = 0; begin < text.size(); begin = end) {
    end = text.find('\n', begin) + 1;
    lines.push_back(text.substr(begin, end - begin));
  }
  std::string turned;
  for (auto line = lines.rbegin(); line != lines.rend(); ++line) turned += *line;
  RC_ASSERT(read(turned).entries == table.entries);
}

}  // namespace
}  // namespace gloss::data
