#include "gloss/lab/feed_forward.h"

#include <gtest/gtest.h>

#include "gloss/base/error.h"

namespace gloss::lab {
namespace {

// Each row of the table but the changed one shows an exact 0.
TEST(LabFeedForward, OnlyTheChangedRowMoves) {
  FeedForward::Options options;
  options.tokens = 4;
  options.changed = 3;
  const Report report = FeedForward::run(options, Ingredient::kept);
  EXPECT_TRUE(report.holds()) << report.text();
  const auto& rows = report.tables.at(0).rows;
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(rows.at(i).at(1) == "0", i != 3) << i;
  for (size_t i = 0; i < 4; ++i) EXPECT_NE(rows.at(i).at(2), "0") << i;
}

TEST(LabFeedForward, ATokenThatIsNotThereIsAnError) {
  FeedForward::Options options;
  options.tokens = 4;
  options.changed = 4;
  EXPECT_THROW(FeedForward::run(options, Ingredient::kept), Error);
}

}  // namespace
}  // namespace gloss::lab
