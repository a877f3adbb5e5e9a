// What the toy task of multi-head attention teaches, for many seeds.
#include "gloss/lab/two_relations.h"

#include <gtest/gtest.h>

#include <cmath>

#include "gloss/base/error.h"
#include "gloss/lab/masks.h"
#include "gloss/lab/multi_head.h"

namespace gloss::lab {
namespace {

TEST(TwoRelations, TwoHeadsLearnBoth) {
  for (uint64_t seed = 0; seed < 6; ++seed) {
    const LearnedRelations learned = learn({.seed = seed});
    EXPECT_LT(learned.error, 0.01) << seed;
    // The heads look at the two neighbours and nowhere else, in mixtures that can be told apart: often, but
    // not always, one neighbour each.
    for (size_t i = 0; i < 6; ++i) {
      const size_t before = (i + 5) % 6, behind = (i + 1) % 6;
      const double* first = learned.weights.data() + 6 * i;
      const double* second = first + 36;
      EXPECT_GT(first[before] + first[behind], 0.95) << "seed " << seed << ", place " << i;
      EXPECT_GT(second[before] + second[behind], 0.95) << "seed " << seed << ", place " << i;
      EXPECT_GT(std::abs(first[before] * second[behind] - first[behind] * second[before]), 0.2)
          << "seed " << seed << ", place " << i;
    }
  }
}

// The bound is reached: a half, not more.
TEST(TwoRelations, OneHeadLosesHalf) {
  for (uint64_t seed = 0; seed < 4; ++seed) {
    for (const int64_t d_v : {4, 8}) {
      const double error = learn({.heads = 1, .d_v = d_v, .seed = seed}).error;
      EXPECT_GT(error, 0.47) << seed;
      EXPECT_LT(error, 0.6) << seed;
    }
  }
}

TEST(LabOptions, ThatDoNotFitEachOtherAreUsageErrors) {
  EXPECT_THROW(MultiHead::run({.d_model = 8, .heads = 3}, Ingredient::kept), UsageError);
  EXPECT_THROW(Masks::run({.n = 4, .padded = 4}, Ingredient::kept), UsageError);
  EXPECT_TRUE(Masks::run({.n = 4, .padded = 3}, Ingredient::kept).holds());
  EXPECT_TRUE(MultiHead::run({.n = 1, .batch = 1, .d_model = 9, .heads = 3}, Ingredient::kept).holds());
}

}  // namespace
}  // namespace gloss::lab
