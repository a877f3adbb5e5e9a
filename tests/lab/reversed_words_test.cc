#include "gloss/lab/reversed_words.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "gloss/base/error.h"
#include "gloss/inspect/picture.h"
#include "gloss/lab/positions.h"

namespace gloss::lab {
namespace {

TEST(ReversedWords, AreLearnedFromPositionsOfEitherKindAndNotWithout) {
  const auto score = [](Order order, int64_t updates) {
    const std::vector<double> scores =
        chrf_by_length({.order = order, .longest = 4, .updates = updates, .seed = 3});
    EXPECT_EQ(scores.size(), 7u);  // of 2 to 8 letters
    for (const double s : scores) EXPECT_TRUE(s >= 0 && s <= 100) << s;
    return scores.at(4 - kShortestWord);
  };
  for (const Order order : {Order::sinusoidal, Order::relative}) {
    EXPECT_LT(score(order, 1), 30);
    EXPECT_GT(score(order, 600), 90);
  }
  EXPECT_LT(score(Order::none, 600), 50);
}

// Where distances beyond the training have buckets of their own, these stay as they were drawn: relative
// positions alone do not carry on.
TEST(ReversedWords, LongerOnesNeedBucketsThatWereLearned) {
  double worst = 100;
  for (uint64_t seed = 1; seed <= 3; ++seed)
    worst = std::min(worst, chrf_by_length({.order = Order::relative, .buckets = {}, .seed = seed}).back());
  EXPECT_LT(worst, 50);
}

TEST(ReversedWords, HaveLettersForWordsTwiceAsLong) {
  EXPECT_THROW(chrf_by_length({.longest = 14}), Error);
  EXPECT_THROW(chrf_by_length({.longest = 1}), Error);
}

TEST(LabPositions, DrawLengthsWhereAskedTo) {
  if (!inspect::pictures_available()) GTEST_SKIP() << "this build draws no pictures";
  Positions::Options options;
  options.figure = Positions::Figure::lengths;
  const inspect::Picture picture =
      Positions::run(options, Ingredient::kept).figure(inspect::PictureFormat::svg, inspect::Theme::light);
  EXPECT_NE(picture.bytes.find("<title>Words said backwards"), std::string::npos);
}

}  // namespace
}  // namespace gloss::lab
