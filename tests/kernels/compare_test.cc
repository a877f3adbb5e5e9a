// The comparators must turn red.
#include "support/compare.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "support/framed.h"
#include "support/random.h"

namespace gloss::tests {
namespace {

class Compare : public ::testing::Test {
 protected:
  std::vector<double> want_ = random_values<double>(50, 1);
};

TEST_F(Compare, AcceptsRounding) {
  std::vector<float> rounded(want_.begin(), want_.end());
  EXPECT_TRUE(close(rounded, want_, 1e-6));
  EXPECT_TRUE(close(want_, want_, 0));
  // A sum that cancelled is as good as its terms were.
  std::vector<double> got = want_;
  want_[7] = 1e-9;
  got[7] = 2e-9;
  EXPECT_TRUE(close(got, want_, 1e-6));
}
TEST_F(Compare, CatchesZeros) {
  EXPECT_FALSE(close(std::vector<double>(50, 0.0), want_, 0.5));
  EXPECT_FALSE(close(want_, std::vector<double>(50, 0.0), 0.5));
}
TEST_F(Compare, CatchesSwappedNumbers) {
  std::vector<double> got = want_;
  std::swap(got[3], got[31]);
  EXPECT_FALSE(close(got, want_, 1e-4));
}
TEST_F(Compare, CatchesNanAndInfinity) {
  for (const double bad : {std::nan(""), std::numeric_limits<double>::infinity()}) {
    std::vector<double> got = want_;
    got[11] = bad;
    EXPECT_FALSE(close(got, want_, 1e9));
    EXPECT_FALSE(close(want_, got, 1e9));
    EXPECT_TRUE(close(got, got, 0));
  }
}
TEST_F(Compare, CatchesOneWrongNumberAndAMissingOne) {
  std::vector<double> got = want_;
  got[0] += 1e-3;
  EXPECT_FALSE(close(got, want_, 1e-4));
  got = want_;
  got.pop_back();
  EXPECT_FALSE(close(got, want_, 1));
}
// Every mistake that close() catches, and errors that only a small element shows.
TEST_F(Compare, EachOnItsOwn) {
  const auto each = [&](const std::vector<double>& got) { return each_close(got, want_, 1e-6, 1e-12); };
  std::vector<float> rounded(want_.begin(), want_.end());
  EXPECT_TRUE(each_close(rounded, want_, 1e-6, 0));
  EXPECT_TRUE(each(want_));
  EXPECT_FALSE(each(std::vector<double>(50, 0.0)));
  EXPECT_FALSE(each_close(want_, std::vector<double>(50, 0.0), 1e-6, 1e-12));
  for (const double bad : {std::nan(""), std::numeric_limits<double>::infinity()}) {
    for (const size_t at : {size_t{0}, size_t{11}, size_t{49}}) {
      std::vector<double> got = want_;
      got[at] = bad;
      EXPECT_FALSE(each_close(got, want_, 1e9, 1e9));
      EXPECT_FALSE(each_close(want_, got, 1e9, 1e9));
      EXPECT_TRUE(each_close(got, got, 0, 0));
    }
  }
  std::vector<double> got = want_;
  std::swap(got[3], got[31]);
  EXPECT_FALSE(each(got));
  got = want_;
  got.pop_back();
  EXPECT_FALSE(each_close(got, want_, 1, 1));
  got = want_;
  want_[7] = 1e-9;
  got[7] = 1.1e-9;
  EXPECT_TRUE(close(got, want_, 1e-6));
  EXPECT_FALSE(each(got));
  got[7] = want_[7] + 1e-13;
  EXPECT_TRUE(each(got));
}
TEST_F(Compare, BitsDiffer) {
  EXPECT_TRUE(same_bits(want_, want_));
  std::vector<double> got = want_;
  got[5] = std::nextafter(got[5], 10);
  EXPECT_FALSE(same_bits(got, want_));
  EXPECT_FALSE(same_bits(std::vector{0.0}, std::vector{-0.0}));
}

TEST(Framed, SeesWritesAroundItself) {
  Framed<float> framed = Framed<float>::random(3, 5, 2, 4, 1);
  EXPECT_TRUE(framed.frame_intact());
  framed.view().row(1)[5] = 0;  // behind a row
  EXPECT_FALSE(framed.frame_intact());
}

}  // namespace
}  // namespace gloss::tests
