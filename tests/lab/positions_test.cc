#include "gloss/lab/positions.h"

#include <gtest/gtest.h>

#include "gloss/base/error.h"

namespace gloss::lab {
namespace {

// With two numbers a position is a point on the circle, and a shift by k turns it by k radians.
TEST(LabPositions, OnePairIsAPlainRotation) {
  Positions::Options options;
  options.d_model = 2;
  options.shift = 1;
  const Report report = Positions::run(options, Ingredient::kept);
  EXPECT_TRUE(report.holds()) << report.text();
  const std::vector<std::vector<std::string>> R{{"0", "0.5403", "0.8415"}, {"1", "-0.8415", "0.5403"}};
  EXPECT_EQ(report.tables.at(1).rows, R);
}

TEST(LabPositions, AnOddWidthIsAnError) {
  Positions::Options options;
  options.d_model = 5;
  try {
    Positions::run(options, Ingredient::kept);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("must be even, not 5"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace gloss::lab
