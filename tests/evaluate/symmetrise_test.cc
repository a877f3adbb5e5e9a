// Symmetrisation against the published procedure, written out as slowly as it is published, and by hand.
#include "gloss/evaluate/symmetrise.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "gloss/base/error.h"
#include "io/scratch.h"

namespace gloss::evaluate {
namespace {

using ::testing::HasSubstr;
using enum Symmetrisation;

constexpr Symmetrisation kMethods[] = {intersection, union_, grow_diag, grow_diag_final, grow_diag_final_and};

Alignment links(const std::string& line) {
  return read_alignments({line}, "test").at(0);
}

// The pseudo-code of the phrase-based system's manual over whole matrices, rows are target words.
class Published {
 public:
  Published(const Alignment& forward, const Alignment& backward, int sources, int targets)
      : sources_(sources), targets_(targets), forward_(matrix(forward)), backward_(matrix(backward)) {}

  Alignment run(Symmetrisation method) {
    aligned_ = matrix({});
    for (int e = 0; e < targets_; ++e) {
      for (int f = 0; f < sources_; ++f) {
        const bool one = forward_[e][f], other = backward_[e][f];
        aligned_[e][f] = method == union_ ? one || other : one && other;
      }
    }
    if (method == grow_diag || method == grow_diag_final || method == grow_diag_final_and) grow_diagonally();
    if (method == grow_diag_final || method == grow_diag_final_and) {
      finish(forward_, method == grow_diag_final_and);
      finish(backward_, method == grow_diag_final_and);
    }
    Alignment result;
    for (int f = 0; f < sources_; ++f) {
      for (int e = 0; e < targets_; ++e) {
        if (aligned_[e][f]) result.push_back({f, e});
      }
    }
    return result;
  }

 private:
  using Matrix = std::vector<std::vector<bool>>;
  Matrix matrix(const Alignment& alignment) const {
    Matrix m(static_cast<size_t>(targets_), std::vector<bool>(static_cast<size_t>(sources_)));
    for (const Link& link : alignment) m[link.target][link.source] = true;
    return m;
  }
  bool target_aligned(int e) const { return std::ranges::count(aligned_[e], true) > 0; }
  bool source_aligned(int f) const {
    return std::ranges::any_of(aligned_, [f](const auto& row) { return row[f]; });
  }
  void grow_diagonally() {
    const int around[8][2] = {{-1, 0}, {0, -1}, {1, 0}, {0, 1}, {-1, -1}, {-1, 1}, {1, -1}, {1, 1}};
    bool again = true;
    while (again) {
      again = false;
      for (int e = 0; e < targets_; ++e) {
        for (int f = 0; f < sources_; ++f) {
          if (!aligned_[e][f]) continue;
          for (const auto& step : around) {
            const int e_new = e + step[0], f_new = f + step[1];
            if (e_new < 0 || e_new >= targets_ || f_new < 0 || f_new >= sources_) continue;
            if (target_aligned(e_new) && source_aligned(f_new)) continue;
            if (!forward_[e_new][f_new] && !backward_[e_new][f_new]) continue;
            aligned_[e_new][f_new] = true;
            again = true;
          }
        }
      }
    }
  }
  void finish(const Matrix& offered, bool both) {
    for (int e = 0; e < targets_; ++e) {
      for (int f = 0; f < sources_; ++f) {
        if (!offered[e][f]) continue;
        const bool joins =
            both ? !target_aligned(e) && !source_aligned(f) : !target_aligned(e) || !source_aligned(f);
        if (joins) aligned_[e][f] = true;
      }
    }
  }

  int sources_, targets_;
  Matrix forward_, backward_, aligned_;
};

TEST(Symmetrise, ByHand) {
  // forward: each target word its source word; backward: each source word its target word.
  const Alignment forward = links("0-0 1-1 1-2 3-3 5-5"), backward = links("0-0 1-1 2-2 3-4 4-4 5-6");
  EXPECT_EQ(symmetrise(forward, backward, intersection), links("0-0 1-1"));
  EXPECT_EQ(symmetrise(forward, backward, union_), links("0-0 1-1 1-2 2-2 3-3 3-4 4-4 5-5 5-6"));
  // From 1-1: target 2 above it has no link, so 1-2 joins; from there 2-2, whose source word has none; from
  // there 3-3 on the diagonal; from there 3-4, then 4-4, then 5-5, and 5-6 beside it.
  EXPECT_EQ(symmetrise(forward, backward, grow_diag), links("0-0 1-1 1-2 2-2 3-3 3-4 4-4 5-5 5-6"));
}

TEST(Symmetrise, FinalStepsByHand) {
  // Nothing is beside 0-0. 4-2 joins two words without links; 4-4 then reaches one only; 0-4 none.
  const Alignment forward = links("0-0 4-2 0-6"), backward = links("0-0 4-4 6-4 6-6");
  EXPECT_EQ(symmetrise(forward, backward, grow_diag), links("0-0"));
  EXPECT_EQ(symmetrise(forward, backward, grow_diag_final), links("0-0 0-6 4-2 4-4 6-4"));
  EXPECT_EQ(symmetrise(forward, backward, grow_diag_final_and), links("0-0 4-2 6-4"));
  // The other direction first: 4-4 takes the source word, and 6-6 the target word.
  EXPECT_EQ(symmetrise(backward, forward, grow_diag_final_and), links("0-0 4-4 6-6"));
}

TEST(Symmetrise, VisitsInTheOrderOfMoses) {
  // By target: around 2-0 the free source word 1 goes to target 0; by source it would go to target 1, beside
  // 0-1.
  EXPECT_EQ(symmetrise(links("0-1 1-0 2-0"), links("0-1 1-1 2-0"), grow_diag), links("0-1 1-0 2-0"));
  // Neighbours on the diagonal come last: the free target word 0 goes to source 1 and not to source 0.
  EXPECT_EQ(symmetrise(links("0-5 1-0 1-1"), links("0-0 0-5 1-1"), grow_diag), links("0-5 1-0 1-1"));
}

TEST(Symmetrise, EqualsThePublishedProcedure) {
  std::mt19937 random(11);
  int differs[5] = {};
  for (int trial = 0; trial < 3000; ++trial) {
    const int sources = 1 + static_cast<int>(random() % 9), targets = 1 + static_cast<int>(random() % 9);
    const auto some = [&](bool one_a_target) {
      std::vector<Link> made;
      for (int n = 0; n < (one_a_target ? targets : sources); ++n) {
        if (random() % 4 == 0) continue;
        const auto s = static_cast<int32_t>(random() % static_cast<unsigned>(sources)),
                   t = static_cast<int32_t>(random() % static_cast<unsigned>(targets));
        // Near the diagonal most times, so that there is something to grow along.
        const bool near = random() % 3 != 0;
        if (one_a_target) {
          made.push_back({near ? std::min(n, sources - 1) : s, n});
        } else {
          made.push_back({n, near ? std::min(n, targets - 1) : t});
        }
      }
      if (random() % 5 == 0) {  // alignments of many to many too
        for (int n = 0; n < 4; ++n)
          made.push_back({static_cast<int32_t>(random() % static_cast<unsigned>(sources)),
                          static_cast<int32_t>(random() % static_cast<unsigned>(targets))});
      }
      return in_order(made);
    };
    const Alignment forward = some(true), backward = some(false);
    Published published(forward, backward, sources, targets);
    Alignment before;
    for (size_t m = 0; m < std::size(kMethods); ++m) {
      const Alignment got = symmetrise(forward, backward, kMethods[m]);
      ASSERT_EQ(got, published.run(kMethods[m]))
          << moses_line(forward) << " | " << moses_line(backward) << ", method " << m;
      differs[m] += m > 0 && got != before;
      before = got;
    }
  }
  // The cases tell every method from the one before it.
  for (size_t m = 1; m < std::size(kMethods); ++m) EXPECT_GT(differs[m], 100) << m;
}

TEST(Symmetrise, OfNothingAndOfTheSame) {
  const Alignment one = links("0-3 2-1");
  for (const Symmetrisation method : kMethods) {
    EXPECT_TRUE(symmetrise({}, {}, method).empty());
    EXPECT_EQ(symmetrise(one, one, method), one);
  }
  EXPECT_EQ(symmetrise(one, {}, grow_diag_final_and), one);
  EXPECT_TRUE(symmetrise(one, {}, grow_diag).empty());
}

TEST(Symmetrise, RefusesWhatIsNoWord) {
  EXPECT_THAT(io::message_of([] { symmetrise({{-1, 0}}, {}, union_); }), HasSubstr("the link -1-0 is none"));
  EXPECT_THAT(io::message_of([] { symmetrise({}, {{0, 1'000'000}}, union_); }), HasSubstr("0-1000000"));
}

}  // namespace
}  // namespace gloss::evaluate
