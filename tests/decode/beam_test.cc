#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "decode/slow_search.h"
#include "decode/toy_scorer.h"
#include "gloss/decode/search.h"

namespace gloss::decode {
namespace {

std::vector<Hypothesis> search_one(const ToyScorer& scorer, const Sentence& source,
                                   const SearchOptions& options, size_t* advances = nullptr) {
  Context context(1);
  ToyState state(scorer);
  auto results = search(context, state, tokens_of({source}), options);
  EXPECT_TRUE(state.empty());
  if (advances) *advances = state.advances;
  return results.at(0);
}

void expect_equal(const std::vector<Hypothesis>& found, const std::vector<SlowHypothesis>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    ASSERT_EQ(found[i].tokens, expected[i].tokens) << "hypothesis " << i;
    ASSERT_EQ(found[i].log_probability, static_cast<float>(expected[i].sum));
    ASSERT_EQ(found[i].score, static_cast<float>(expected[i].score));
    ASSERT_EQ(found[i].finished, expected[i].finished);
    ASSERT_EQ(found[i].token_log_probabilities.size(), found[i].tokens.size());
    const auto& parts = found[i].token_log_probabilities;
    ASSERT_NEAR(std::accumulate(parts.begin(), parts.end(), 0.0), found[i].log_probability, 1e-5);
  }
}

TEST(Beam, OfFullWidthEqualsExhaustiveSearch) {
  for (uint64_t seed = 0; seed < 12; ++seed) {
    for (const double alpha : {-1.0, 0.0, 0.5, 1.0, 2.0}) {
      for (const AtCap at_cap : {AtCap::force_end, AtCap::leave_open}) {
        const ToyScorer scorer{.seed = seed, .vocabulary = 4};
        SearchOptions options;
        options.beam = 4 * 4 * 4 * 4;  // more than there are hypotheses of 5 tokens in 4 words
        options.max_length = 5;
        options.length_penalty = alpha;
        options.at_cap = at_cap;
        const Sentence source{7, 8, kEnd};
        const std::vector<SlowHypothesis> all = exhaustive(scorer, source, options);
        for (const size_t n : {size_t{1}, size_t{3}, std::min<size_t>(all.size(), 256)}) {
          SCOPED_TRACE(fmt::format("seed {}, alpha {}, n-best {}", seed, alpha, n));
          options.n_best = static_cast<int>(n);
          const std::vector<Hypothesis> found = search_one(scorer, source, options);
          ASSERT_EQ(found.size(), n);
          for (size_t i = 0; i < n; ++i) {
            ASSERT_EQ(found[i].score, static_cast<float>(all[i].score)) << i;
            ASSERT_EQ(found[i].tokens, all[i].tokens) << i;
          }
        }
      }
    }
  }
}

// Scorers, widths and options all drawn at random. A third of the scorers have few levels and short memory,
// where equal sums abound: a reordered pair of tokens has the same probability to the bit.
TEST(Beam, EqualsTheSlowBeamOnAThousandRandomScorers) {
  int ties = 0, early = 0, blocked = 0;
  for (uint64_t i = 0; i < 1000; ++i) {
    const RandomKey key = RandomKey(17).with(i);
    const auto pick = [&](uint64_t index, uint64_t bound) {
      return static_cast<int>(key.below(index, bound));
    };
    const bool tied = i % 3 == 0;
    const ToyScorer scorer{.seed = i,
                           .vocabulary = 3 + pick(0, 8),
                           .levels = tied ? uint64_t{4} : uint64_t{1} << 16,
                           .end_bonus = static_cast<float>(pick(1, 5)) - 1,
                           .memory = tied ? pick(2, 3) : 1000};
    SearchOptions options;
    options.beam = 2 + pick(3, 3);
    options.n_best = 1 + pick(4, static_cast<uint64_t>(options.beam));
    options.length_penalty = -1 + 0.5 * pick(5, 7);
    options.patience = std::max(0, pick(13, 6) - 2) * 0.5;  // a half of them none
    options.max_length = 1 + pick(6, 10);
    options.min_length = pick(7, 3) ? 0 : 1 + pick(8, static_cast<uint64_t>(options.max_length));
    options.no_repeat_ngram = pick(9, 4) ? 0 : 1 + pick(10, 3);
    options.at_cap = pick(11, 2) ? AtCap::force_end : AtCap::leave_open;
    if (pick(12, 2)) options.forbidden_tokens = {kStart};
    const Sentence source{static_cast<int32_t>(i), kEnd};
    SCOPED_TRACE(fmt::format("scorer {}", i));

    const std::vector<SlowHypothesis> expected = slow_beam(scorer, source, options);
    // With every token used up the real search keeps what it has; the slow one has nothing to say.
    if (expected.empty()) {
      ASSERT_GT(options.no_repeat_ngram, 0);
      ++blocked;
      continue;
    }
    size_t advances = 0;
    expect_equal(search_one(scorer, source, options, &advances), expected);
    if (HasFatalFailure()) return;
    for (size_t k = 1; k < expected.size(); ++k) ties += expected[k].score == expected[k - 1].score;
    early += static_cast<int64_t>(advances) < options.max_length - 1;
  }
  EXPECT_GT(ties, 50);    // the comparison met ties,
  EXPECT_GT(early, 200);  // searches that stopped before the cap,
  EXPECT_LT(blocked, 50);
}

TEST(Beam, OfOneIsGreedy) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const ToyScorer scorer{.seed = seed, .vocabulary = 9, .levels = 16, .end_bonus = 2};
    SearchOptions options;
    options.beam = 1;
    options.max_length = 12;
    options.at_cap = seed % 2 ? AtCap::force_end : AtCap::leave_open;
    const Sentence source{3, kEnd};
    Sentence greedy;
    while (greedy.size() < 12 && (greedy.empty() || greedy.back() != kEnd)) {
      const std::vector<float> row = scorer.logits(source, greedy);
      const auto best = std::max_element(row.begin(), row.end()) - row.begin();
      const bool forced = greedy.size() == 11 && options.at_cap == AtCap::force_end;
      greedy.push_back(forced ? kEnd : static_cast<int32_t>(best));
    }
    EXPECT_EQ(search_one(scorer, source, options).at(0).tokens, greedy);
    expect_equal(search_one(scorer, source, options), slow_beam(scorer, source, options));
  }
}

TEST(Beam, StopsWhereNothingLiveCanWin) {
  // The end symbol takes nearly all the probability at once, so one step decides for alpha <= 0.
  const ToyScorer scorer{.seed = 1, .vocabulary = 6, .end_bonus = 30};
  SearchOptions options;
  options.beam = 4;
  options.max_length = 50;
  options.length_penalty = 0;
  size_t advances = 0;
  EXPECT_EQ(search_one(scorer, {5, kEnd}, options, &advances).at(0).tokens, Sentence{kEnd});
  EXPECT_EQ(advances, 1u);
}

TEST(Beam, ComputesNoRowThatCannotWin) {
  SearchOptions options;
  options.beam = 4;
  options.max_length = 12;
  options.length_penalty = 0;  // a hypothesis below the best finished one stays below it
  size_t rows = 0, whole_beams = 0;
  for (uint64_t seed = 0; seed < 50; ++seed) {
    Context context(1);
    ToyState state({.seed = seed, .vocabulary = 6, .end_bonus = 2});
    search(context, state, tokens_of({{5, kEnd}}), options);
    rows += state.rows;
    whole_beams += 1 + (state.advances - 1) * 4;
  }
  EXPECT_LT(rows, whole_beams * 3 / 4);
}

TEST(Beam, KeepsTheLengthsAsked) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    SearchOptions options;
    options.beam = 3;
    options.n_best = 3;
    options.min_length = 4;
    options.max_length = 6;
    const ToyScorer eager{.seed = seed, .vocabulary = 8, .end_bonus = 20};
    for (const Hypothesis& each : search_one(eager, {2, kEnd}, options)) {
      EXPECT_GE(each.tokens.size(), 4u);
      EXPECT_LE(each.tokens.size(), 6u);
      EXPECT_EQ(each.tokens.back(), kEnd);
    }
    const ToyScorer reluctant{.seed = seed, .vocabulary = 8, .end_bonus = -30};
    for (const Hypothesis& each : search_one(reluctant, {2, kEnd}, options)) {
      EXPECT_EQ(each.tokens.size(), 6u);
      EXPECT_TRUE(each.finished);
      EXPECT_EQ(each.tokens.back(), kEnd);
      EXPECT_EQ(each.token_log_probabilities.back(), 0);  // forced, not chosen
    }
    options.at_cap = AtCap::leave_open;
    for (const Hypothesis& each : search_one(reluctant, {2, kEnd}, options)) {
      EXPECT_EQ(each.tokens.size(), 6u);
      EXPECT_FALSE(each.finished);
      EXPECT_NE(each.tokens.back(), kEnd);
    }
  }
}

TEST(Beam, TakesTheCapFromTheSource) {
  SearchOptions options;
  EXPECT_EQ(length_cap(options, 4), 22);
  options.length_factor = 1.5;
  options.length_extra = 1;
  EXPECT_EQ(length_cap(options, 3), 5);
  options.min_length = 9;
  EXPECT_EQ(length_cap(options, 3), 9);  // a cap from the source gives way
  options = {};
  const ToyScorer reluctant{.vocabulary = 8, .end_bonus = -30};
  EXPECT_EQ(search_one(reluctant, {2, 3, 4, kEnd}, options).at(0).tokens.size(), 22u);
}

TEST(Beam, OfACapOfOneNeedsNoModel) {
  SearchOptions options;
  options.max_length = 1;
  size_t advances = 9;
  EXPECT_EQ(search_one({}, {2, kEnd}, options, &advances).at(0).tokens, Sentence{kEnd});
  EXPECT_EQ(advances, 0u);
}

TEST(Beam, RepeatsNoNgramAndSaysWhatItHasAtADeadEnd) {
  SearchOptions options;
  options.beam = 3;
  options.max_length = 40;
  for (const int n : {1, 2, 3}) {
    options.no_repeat_ngram = n;
    // Nothing but one token is likely, and the end symbol least of all.
    const ToyScorer stubborn{.vocabulary = 4, .end_bonus = -30, .memory = 0};
    const Sentence said = search_one(stubborn, {2, kEnd}, options).at(0).tokens;
    for (size_t i = 0; i + static_cast<size_t>(n) <= said.size(); ++i) {
      const auto ngram = said.begin() + static_cast<std::ptrdiff_t>(i);
      EXPECT_EQ(std::search(said.begin(), said.end(), ngram, ngram + n), ngram) << "n " << n << " at " << i;
    }
  }
  options.no_repeat_ngram = 1;
  options.forbidden_tokens = {kEnd};
  const std::vector<Hypothesis> stuck = search_one({.vocabulary = 4}, {2, kEnd}, options);
  EXPECT_EQ(stuck.at(0).tokens.size(), 3u);  // each of the other tokens once
  EXPECT_FALSE(stuck.at(0).finished);
}

}  // namespace
}  // namespace gloss::decode
