#include "gloss/inspect/axis.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "gloss/base/error.h"

namespace gloss::inspect {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> labels(const Axis& axis, int most) {
  std::vector<std::string> out;
  for (const Tick& tick : axis.ticks(most)) out.push_back(tick.label);
  return out;
}

TEST(Axis, HasRoundNumbersInLinearForm) {
  EXPECT_THAT(labels({0, 10, Scaling::linear}, 6), ElementsAre("0", "2", "4", "6", "8", "10"));
  EXPECT_THAT(labels({0, 10, Scaling::linear}, 5), ElementsAre("0", "5", "10"));
  EXPECT_THAT(labels({1.9, 2.35, Scaling::linear}, 5), ElementsAre("1.9", "2.0", "2.1", "2.2", "2.3"));
  EXPECT_THAT(labels({0, 0.0035, Scaling::linear}, 5), ElementsAre("0", "0.001", "0.002", "0.003"));
  EXPECT_THAT(labels({0, 8200, Scaling::linear}, 5), ElementsAre("0", "2,000", "4,000", "6,000", "8,000"));
  EXPECT_THAT(labels({0, 260000, Scaling::linear}, 6),
              ElementsAre("0", "50k", "100k", "150k", "200k", "250k"));
  EXPECT_THAT(labels({0, 2.2e6, Scaling::linear}, 5), ElementsAre("0", "0.5M", "1.0M", "1.5M", "2.0M"));
  EXPECT_THAT(labels({-1500, 1500, Scaling::linear}, 4), ElementsAre("-1,000", "0", "1,000"));
  EXPECT_THAT(labels({0, 4e-7, Scaling::linear}, 5), ElementsAre("0", "1e-07", "2e-07", "3e-07", "4e-07"));
}

TEST(Axis, HasPowersOfTenInLogarithmicForm) {
  EXPECT_THAT(labels({5, 18000, Scaling::logarithmic}, 6), ElementsAre("10", "100", "1,000", "10,000"));
  EXPECT_THAT(labels({3, 150, Scaling::logarithmic}, 6), ElementsAre("5", "10", "20", "50", "100"));
  EXPECT_THAT(labels({5.1, 7.3, Scaling::logarithmic}, 6), ElementsAre("5.5", "6.0", "6.5", "7.0"));
  EXPECT_THAT(labels({1e-6, 1, Scaling::logarithmic}, 4), ElementsAre("1e-06", "0.0001", "0.01", "1"));
  EXPECT_THAT(labels({1e5, 1e7, Scaling::logarithmic}, 4), ElementsAre("100,000", "1M", "10M"));
}

TEST(Axis, PlacesValuesBetweenItsEnds) {
  const Axis linear(2, 6, Scaling::linear), logarithmic(1, 100, Scaling::logarithmic);
  EXPECT_DOUBLE_EQ(linear.place(2), 0);
  EXPECT_DOUBLE_EQ(linear.place(3), 0.25);
  EXPECT_DOUBLE_EQ(linear.place(6), 1);
  EXPECT_NEAR(logarithmic.place(10), 0.5, 1e-12);
}

TEST(Axis, MakesRoomForASingleValue) {
  for (const double value : {0.0, 3.0, -2.0, 1e-5, 12345.678}) {
    const Axis axis(value, value, Scaling::linear);
    EXPECT_LT(axis.low(), value);
    EXPECT_GT(axis.high(), value);
    EXPECT_NEAR(axis.place(value), 0.5, 1e-9);
    EXPECT_FALSE(axis.ticks(5).empty());
  }
  EXPECT_NEAR(Axis(5, 5, Scaling::logarithmic).place(5), 0.5, 1e-9);
}

// Whatever the interval: not too many, in order, inside, and all different as they are read.
TEST(Axis, KeepsItsPromisesForManyIntervals) {
  for (const double low : {-3e4, -1.0, 0.0, 1e-9, 0.37, 5.0, 99.0, 1e6, 3e99}) {
    for (const double span : {1e-6, 0.1, 1.0, 7.3, 1000.0, 1e9, 1e50}) {
      for (const Scaling scaling : {Scaling::linear, Scaling::logarithmic}) {
        if (scaling == Scaling::logarithmic && low <= 0) continue;
        const Axis axis(low, low + span, scaling);
        for (const int most : {2, 5, 9}) {
          const std::vector<Tick> ticks = axis.ticks(most);
          EXPECT_LE(ticks.size(), static_cast<size_t>(most));
          for (size_t i = 0; i < ticks.size(); ++i) {
            const double place = axis.place(ticks[i].value);
            EXPECT_GE(place, -1e-6) << low << " + " << span;
            EXPECT_LE(place, 1 + 1e-6) << low << " + " << span;
            EXPECT_TRUE(i == 0 || ticks[i].value > ticks[i - 1].value);
          }
        }
      }
    }
  }
}

TEST(Axis, RefusesWhatIsNoInterval) {
  EXPECT_THROW(Axis(2, 1, Scaling::linear), Error);
  EXPECT_THROW(Axis(0, 1, Scaling::logarithmic), Error);
  EXPECT_THROW(Axis(0, std::nan(""), Scaling::linear), Error);
  EXPECT_THROW(Axis(0, std::numeric_limits<double>::infinity(), Scaling::linear), Error);
}

}  // namespace
}  // namespace gloss::inspect
