// Claims hold, and fail without their ingredient, over seeds and at the ends of the sizes that are allowed.
#include <gtest/gtest.h>

#include <limits>

#include "gloss/base/error.h"
#include "gloss/lab/add_norm.h"
#include "gloss/lab/complexity.h"
#include "gloss/lab/feed_forward.h"
#include "gloss/lab/self_cross.h"
#include "gloss/lab/teacher_forcing.h"

namespace gloss::lab {
namespace {

template <class Experiment>
void expect_proof(const typename Experiment::Options& options) {
  check_options(options);
  const Report kept = Experiment::run(options, Ingredient::kept);
  EXPECT_TRUE(kept.holds()) << kept.text();
  EXPECT_FALSE(Experiment::run(options, Ingredient::removed).holds());
}

// The n^2 weights are small beside rows of many numbers, and show even so.
TEST(LabSizes, StoredWeightsShowBesideAnyRow) {
  for (const int64_t longest : {128, 143}) {
    for (const int64_t d : {8, 64, 128}) {
      SCOPED_TRACE(fmt::format("longest {}, d {}", longest, d));
      Complexity::Options options;
      options.longest = longest;
      options.d_model = d;
      expect_proof<Complexity>(options);
    }
  }
}

TEST(LabSizes, NoResidualConnectionsShowInNarrowRows) {
  for (const int64_t d : {16, 32}) {
    for (const int64_t seed : {5, 6, 7, 14}) {
      SCOPED_TRACE(fmt::format("d {}, seed {}", d, seed));
      AddNorm::Options options;
      options.d_model = d;
      options.tokens = 16;
      options.layers = d;
      options.seed = seed;
      expect_proof<AddNorm>(options);
      options.layers = 8;
      expect_proof<AddNorm>(options);
    }
  }
  AddNorm::Options options;
  options.d_model = options.layers = options.tokens = 16;
  options.seed = std::numeric_limits<int64_t>::max();
  expect_proof<AddNorm>(options);
  options.layers = 17;
  EXPECT_THROW(AddNorm::run(options, Ingredient::kept), UsageError);
}

// Every option at the low end of its range, and one beyond is refused.
TEST(LabSizes, SmallestModelsHold) {
  for (int64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(seed);
    TeacherForcing::Options forcing;
    forcing.d_model = 4;
    forcing.layers = forcing.heads = 1;
    forcing.source = 2;
    forcing.target = 3;
    forcing.seed = seed;
    expect_proof<TeacherForcing>(forcing);
    forcing.d_model = 2;
    EXPECT_THROW(check_options(forcing), UsageError);
    SelfCross::Options cross;
    cross.d_model = 4;
    cross.layers = 2;
    cross.heads = 1;
    cross.source = cross.target = 2;
    cross.seed = seed;
    expect_proof<SelfCross>(cross);
    cross.d_model = 2;
    EXPECT_THROW(check_options(cross), UsageError);
    FeedForward::Options forward;
    forward.d_model = 2;
    forward.d_ff = 32;
    forward.heads = forward.layers = 1;
    forward.seed = seed;
    expect_proof<FeedForward>(forward);
    forward.d_ff = 4;
    EXPECT_THROW(check_options(forward), UsageError);
  }
}

}  // namespace
}  // namespace gloss::lab
