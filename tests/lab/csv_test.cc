// A user's own table: what is read of it, and what each mistake is called.
#include "gloss/lab/csv.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "gloss/base/error.h"
#include "gloss/lab/kernel_regression.h"
#include "io/scratch.h"

namespace gloss::lab {
namespace {

using testing::ElementsAre;

class Csv : public testing::Test {
 protected:
  std::string file(const std::string& text) const {
    const std::string path = scratch_.path() / "own.csv";
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }
  NumberColumns read(const std::string& text, const std::vector<std::string>& wanted = {"1", "2"}) const {
    return read_csv(file(text), wanted);
  }
  // Without the folder, which differs from run to run.
  std::string complaint(const std::string& text, const std::vector<std::string>& wanted = {"1", "2"}) const {
    try {
      read(text, wanted);
    } catch (const Error& error) {
      const std::string message = error.what(), folder = scratch_.path().string() + "/";
      const size_t at = message.find(folder);
      return at == std::string::npos ? message : message.substr(0, at) + message.substr(at + folder.size());
    }
    return "";
  }

  io::Scratch scratch_;
};

TEST_F(Csv, ColumnsByNumberAndByName) {
  const NumberColumns plain = read("1,2\n3,4.5\n");
  EXPECT_THAT(plain.names, ElementsAre("column 1", "column 2"));
  EXPECT_THAT(plain.columns, ElementsAre(ElementsAre(1, 3), ElementsAre(2, 4.5)));
  // A number is a place, never a name.
  EXPECT_THAT(read("7,1\n8,2\n").columns, ElementsAre(ElementsAre(7, 8), ElementsAre(1, 2)));
  const NumberColumns named =
      read("who,height,\"weight, kg\"\nAda,1.7,60\nBob,1.8,+7e1\n", {"weight, kg", "height"});
  EXPECT_THAT(named.names, ElementsAre("weight, kg", "height"));
  EXPECT_THAT(named.columns, ElementsAre(ElementsAre(60, 70), ElementsAre(1.7, 1.8)));
}

TEST_F(Csv, SeparatorsQuotesEndingsAndEmptyLines) {
  for (const char* text :
       {"x;y\n1;2\n", "x\ty\n1\t2\n", "x,y\r\n\"1\", 2 \r\n\r\n", "\xEF\xBB\xBFx,y\n1,2"}) {
    const NumberColumns table = read(text, {"x", "y"});
    EXPECT_THAT(table.columns, ElementsAre(ElementsAre(1), ElementsAre(2))) << text;
  }
  EXPECT_THAT(read("\"say \"\"x\"\"\",y\n1,2\n", {"say \"x\"", "y"}).columns,
              ElementsAre(ElementsAre(1), ElementsAre(2)));
}

TEST_F(Csv, EachMistakeIsOneSentence) {
  EXPECT_EQ(complaint("x,y\n1,2\n3,tall\n"),
            "own.csv, line 3, column 2 (y): a number was expected, not 'tall'");
  EXPECT_EQ(complaint("x,y\n1,\n"), "own.csv, line 2, column 2 (y): a number was expected, not ''");
  EXPECT_EQ(complaint("x,y\nnan,1\n"), "own.csv, line 2, column 1 (x): a number was expected, not 'nan'");
  EXPECT_EQ(complaint("x,y\n1,1e999\n"), "own.csv, line 2, column 2 (y): a number was expected, not '1e999'");
  EXPECT_EQ(complaint("x;y\n1,5;2\n"), "own.csv, line 2, column 1 (x): a number was expected, not '1,5'");
  EXPECT_EQ(complaint("1,2\n3,tall\n"), "own.csv, line 2, column 2: a number was expected, not 'tall'");
  EXPECT_EQ(complaint("x,y\n1\n"), "own.csv, line 2: column 2 was expected, but the line has 1 cell");
  EXPECT_EQ(complaint("x,y\n1,\"2\n"), "own.csv, line 2: a quote opens and does not close in its line");
  EXPECT_EQ(complaint("x,y\n1,2\n", {"x", "z"}), "own.csv has no column 'z': its first line has x, y");
  EXPECT_EQ(complaint("x,y\n1,2\n", {"0", "y"}), "own.csv has no column '0': its first line has x, y");
  // A first row with a number is no header: its other cell would be lost in silence.
  EXPECT_EQ(complaint("\u22121,2\n3,4\n"), "own.csv, line 1, column 1: a number was expected, not '\u22121'");
  EXPECT_EQ(complaint("0x10,1\n3,4\n"), "own.csv, line 1, column 1: a number was expected, not '0x10'");
  EXPECT_EQ(complaint("1,\n3,4\n"), "own.csv, line 1, column 2: a number was expected, not ''");
  EXPECT_EQ(complaint("a,b,a\n1,2,3\n", {"a", "b"}),
            "own.csv has several columns 'a': say which by its number, from 1");
  EXPECT_EQ(complaint("x,y\n\n"), "own.csv holds no row of numbers");
  EXPECT_EQ(complaint(""), "own.csv holds no row of numbers");
  // Numbers so far apart have no distance; the message names those.
  for (const auto& [text, said] :
       {std::pair("1,-1e308\n2,1e308\n", "column 2 runs from -1e+308 to 1e+308"),
        std::pair("-1e308,1\n1e308,2\n", "column 1 runs from -1e+308 to 1e+308")}) {
    KernelRegression::Options options;
    options.data = file(text);
    options.x = "1";
    options.y = "2";
    EXPECT_THAT(io::message_of([&] { KernelRegression::run(options, Ingredient::kept); }),
                ::testing::HasSubstr(said));
  }
  std::string long_one;
  for (int64_t i = 0; i <= kMostRows; ++i) long_one += "1,2\n";
  EXPECT_EQ(complaint(long_one), "own.csv has more than 10000 rows of numbers: give a part of it");
}

// Claims hold for data of any scale, with ties, of one point, and for one value alone.
TEST_F(Csv, ClaimsHoldForAnyData) {
  for (const char* text : {"0,1\n1,2\n2,4\n3,8\n", "5,1\n5,3\n7,0\n", "2,2\n", "1,5\n2,5\n",
                           "1e-6,3\n2e-6,-3\n3e-6,4\n", "-1000000,1\n0,2\n1000000,5\n1000001,6\n"}) {
    KernelRegression::Options options;
    options.data = file(text);
    const double width = text[0] == '-' ? 1e6 : text[1] == 'e' ? 1e-6 : 1;
    options.bandwidth = width;
    const Report kept = KernelRegression::run(options, Ingredient::kept);
    EXPECT_TRUE(kept.holds()) << text << kept.text();
    EXPECT_FALSE(KernelRegression::run(options, Ingredient::removed).holds()) << text;
  }
}

TEST_F(Csv, OptionsThatDoNothingAreUsageErrors) {
  const std::string own = file("1,2\n3,4\n");
  for (const KernelRegression::Options& options : {KernelRegression::Options{.bandwidth = 1e8},
                                                   {.x = "height"},
                                                   {.data = own, .n = 7},
                                                   {.data = own, .seed = 7}})
    EXPECT_THROW(KernelRegression::run(options, Ingredient::kept), UsageError);
}

}  // namespace
}  // namespace gloss::lab
