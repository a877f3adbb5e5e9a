#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "corpus.h"
#include "gloss/base/error.h"
#include "gloss/base/random.h"

namespace gloss::dates {
namespace {

int count_ways(Language language, bool held_out) {
  return static_cast<int>(std::ranges::count_if(
      ways(), [&](const Way& way) { return way.language == language && way.held_out == held_out; }));
}

std::string write(std::string_view pattern, Language language, std::string_view date) {
  return write(Way{language, pattern}, from_iso(date));
}
std::string en(std::string_view pattern, std::string_view date) {
  return write(pattern, Language::kEnglish, date);
}
std::string de(std::string_view pattern, std::string_view date) {
  return write(pattern, Language::kGerman, date);
}

TEST(Ways, AreSixtyALanguageBesidesFiveHeldOut) {
  for (const Language language : {Language::kEnglish, Language::kGerman}) {
    EXPECT_GE(count_ways(language, false), 60);
    EXPECT_EQ(count_ways(language, true), 5);
  }
}

TEST(Ways, DifferByMoreThanUpperCaseAndFromEachOther) {
  std::set<std::string> texts;
  for (const Way& way : ways()) {
    std::string text = write(way, from_iso("2021-09-08"));
    std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::tolower(c); });
    EXPECT_TRUE(texts.insert(text).second) << text;
  }
}

// Two ways may write a day alike, but one text never means two days.
TEST(Ways, NeverWriteTwoDaysAlike) {
  std::vector<std::pair<uint64_t, int>> seen;  // a 64-bit hash stands for the text: ten million of them
  for (Day day = from_iso("1900-01-01"); day <= from_iso("2099-12-31"); day += std::chrono::days(1)) {
    for (const Way& way : ways()) {
      seen.emplace_back(RandomKey(0).with(write(way, day)).state(), day.time_since_epoch().count());
    }
  }
  std::ranges::sort(seen);
  for (size_t i = 1; i < seen.size(); ++i) {
    ASSERT_TRUE(seen[i].first != seen[i - 1].first || seen[i].second == seen[i - 1].second)
        << iso(Day(std::chrono::days(seen[i].second))) << " and "
        << iso(Day(std::chrono::days(seen[i - 1].second)));
  }
}

TEST(Words, KnowTheWeekdaysOfHistory) {
  const std::map<std::string, std::string> known = {
      {"1900-01-01", "Monday"},    // the calendar's first day here
      {"1912-04-15", "Monday"},    // the Titanic sinks
      {"1945-05-08", "Tuesday"},   // the war in Europe ends
      {"1969-07-20", "Sunday"},    // Apollo 11 lands
      {"1989-11-09", "Thursday"},  // the Berlin Wall opens
      {"2000-02-29", "Tuesday"},   // a leap day of a century that has one
      {"2021-03-03", "Wednesday"}, {"2024-02-29", "Thursday"}, {"2099-12-31", "Thursday"}};
  for (const auto& [date, weekday] : known) EXPECT_EQ(en("{weekday}", date), weekday) << date;
  EXPECT_EQ(de("{weekday} {wd}", "1989-11-09"), "Donnerstag Do");
  EXPECT_EQ(de("{weekday} {wd}", "2021-03-03"), "Mittwoch Mi");
}

TEST(Words, SayEnglishNumbers) {
  EXPECT_EQ(en("the {day} of {month}, {year}", "2021-03-03"), "the third of March, twenty twenty-one");
  EXPECT_EQ(en("{dth} {mth} {month#} {mon.}", "2021-09-22"), "22nd 9th ninth Sept.");
  EXPECT_EQ(en("{dth} {day}", "2021-09-11"), "11th eleventh");
  EXPECT_EQ(en("{dth} {day}", "2021-09-12"), "12th twelfth");
  EXPECT_EQ(en("{dth} {day}", "2021-09-13"), "13th thirteenth");
  EXPECT_EQ(en("{dth} {day}", "2021-10-31"), "31st thirty-first");
  EXPECT_EQ(en("{day} {quarter} {q} {roman}", "2021-12-30"), "thirtieth fourth 4 XII");
  EXPECT_EQ(en("{year}|{year-and}|{year-us}", "1984-01-01"),
            "nineteen eighty-four|nineteen hundred and eighty-four|nineteen hundred eighty-four");
  EXPECT_EQ(en("{year}|{year-and}|{year-us}", "2005-01-01"),
            "twenty oh five|two thousand and five|two thousand five");
  EXPECT_EQ(en("{year}", "1900-01-01"), "nineteen hundred");
  EXPECT_EQ(en("{year}", "2000-01-01"), "two thousand");
  EXPECT_EQ(en("{year}", "2010-01-01"), "twenty ten");
}

TEST(Words, SayGermanNumbers) {
  EXPECT_EQ(de("am {day-en} {month} {year}", "2021-03-03"), "am dritten März zweitausendeinundzwanzig");
  EXPECT_EQ(de("der {day-e} {Month-e} {y}", "1984-05-07"), "der siebte Fünfte 1984");
  EXPECT_EQ(de("{year}", "1984-01-01"), "neunzehnhundertvierundachtzig");
  EXPECT_EQ(de("{year}", "1901-01-01"), "neunzehnhunderteins");
  EXPECT_EQ(de("{year}", "2000-01-01"), "zweitausend");
  EXPECT_EQ(de("{year}", "2016-01-01"), "zweitausendsechzehn");
  EXPECT_EQ(de("{day-er}|{day-en}", "2021-01-01"), "erster|ersten");
  EXPECT_EQ(de("{day-e}", "2021-01-08"), "achte");
  EXPECT_EQ(de("{day-e}", "2021-01-16"), "sechzehnte");
  EXPECT_EQ(de("{day-e}", "2021-01-20"), "zwanzigste");
  EXPECT_EQ(de("{day-e}", "2021-01-31"), "einunddreißigste");
  EXPECT_EQ(de("{mon} {mon.} {quarter-en}", "2021-02-01"), "Feb Febr. ersten");
}

TEST(Words, RefuseWhatIsNoDateAndNoPart) {
  for (const char* text : {"2021-02-29", "1899-12-31", "2100-01-01", "2021-3-3", "2021-00-10", "2021-01-00",
                           "2021/01/01", "", "2021-01-+1", "gestern"}) {
    EXPECT_THROW(from_iso(text), Error) << text;
  }
  EXPECT_EQ(iso(from_iso("2024-02-29")), "2024-02-29");
  EXPECT_THROW(en("{day-en}", "2021-03-03"), Error);
  EXPECT_THROW(de("{day-um}", "2021-03-03"), Error);
  EXPECT_THROW(en("{d", "2021-03-03"), Error);
}

std::set<std::string> days_of(const std::vector<Pair>& pairs) {
  std::set<std::string> days;
  for (const Pair& pair : pairs) days.insert(pair.iso);
  return days;
}

bool disjoint(const std::set<std::string>& a, const std::set<std::string>& b) {
  return std::ranges::none_of(a, [&](const std::string& day) { return b.contains(day); });
}

TEST(Corpus, HasTheSizesAndNoTextTwice) {
  const Corpus corpus = make_corpus(1, {});
  EXPECT_EQ(corpus.train.size(), 30000u);
  EXPECT_EQ(corpus.test.size(), 2000u);
  for (const auto* pairs : {&corpus.train, &corpus.valid, &corpus.test, &corpus.heldout}) {
    std::set<std::string> texts;
    for (const Pair& pair : *pairs) EXPECT_TRUE(texts.insert(pair.text).second) << pair.text;
    EXPECT_FALSE(texts.empty());
  }
}

TEST(Corpus, TestsOnDaysThatTrainingNeverSaw) {
  for (const uint64_t seed : {1u, 2u}) {
    const Corpus corpus = make_corpus(seed, {});
    const auto train = days_of(corpus.train), valid = days_of(corpus.valid), test = days_of(corpus.test);
    EXPECT_TRUE(disjoint(train, test));
    EXPECT_TRUE(disjoint(train, valid));
    EXPECT_TRUE(disjoint(valid, test));
    EXPECT_TRUE(disjoint(train, days_of(corpus.heldout)));
    EXPECT_FALSE(disjoint(train, train));
  }
}

// Which way a line was written in is told by its text: the day is known from the other side.
TEST(Corpus, KeepsHeldOutWaysOutOfTraining) {
  const Corpus corpus = make_corpus(1, {});
  const auto written_in = [](const Pair& pair, bool held_out) {
    return std::ranges::any_of(ways(), [&](const Way& way) {
      return way.held_out == held_out && write(way, from_iso(pair.iso)) == pair.text;
    });
  };
  for (const auto* pairs : {&corpus.train, &corpus.valid, &corpus.test}) {
    for (const Pair& pair : *pairs) EXPECT_TRUE(written_in(pair, false)) << pair.text;
  }
  int in_training = 0;
  for (const Pair& pair : corpus.train) in_training += written_in(pair, true);
  for (const Pair& pair : corpus.heldout) EXPECT_TRUE(written_in(pair, true)) << pair.text;
  EXPECT_EQ(in_training, 0);
}

TEST(Corpus, DependsOnTheSeedAlone) {
  const CorpusSizes sizes{500, 50, 50, 50};
  const Corpus first = make_corpus(7, sizes), again = make_corpus(7, sizes), other = make_corpus(8, sizes);
  EXPECT_EQ(first.train, again.train);
  EXPECT_EQ(first.heldout, again.heldout);
  EXPECT_NE(first.train, other.train);
  EXPECT_THROW(make_corpus(7, {.train = 1'000'000'000}), Error);
  EXPECT_THROW(make_corpus(7, {.train = -1}), Error);
}

TEST(Corpus, WritesPairsOfFilesLineForLine) {
  const auto folder = std::filesystem::path(testing::TempDir()) / "gloss-dates-test" / "deeper";
  const Corpus corpus = make_corpus(3, {20, 5, 5, 5});
  write_corpus(corpus, folder);
  std::ifstream texts(folder / "train.src"), isos(folder / "train.iso");
  std::string text, iso_form;
  size_t line = 0;
  for (; std::getline(texts, text) && std::getline(isos, iso_form); ++line) {
    ASSERT_LT(line, corpus.train.size());
    EXPECT_EQ(text, corpus.train[line].text);
    EXPECT_EQ(iso_form, corpus.train[line].iso);
  }
  EXPECT_EQ(line, corpus.train.size());
  std::filesystem::remove_all(folder.parent_path());
  EXPECT_THROW(write_corpus(corpus, "/dev/null/dates"), Error);
}

}  // namespace
}  // namespace gloss::dates
