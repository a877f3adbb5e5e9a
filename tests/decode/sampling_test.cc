#include "gloss/decode/sampling.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>

#include "decode/toy_scorer.h"
#include "gloss/decode/search.h"

namespace gloss::decode {
namespace {

constexpr float kForbidden = -std::numeric_limits<float>::infinity();

// The distribution by the book: sort, cut, normalise.
std::vector<double> expected_distribution(std::vector<float> row, const Sampling& options) {
  std::vector<size_t> order(row.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return row[a] > row[b]; });
  if (options.top_k > 0 && order.size() > static_cast<size_t>(options.top_k)) {
    order.resize(static_cast<size_t>(options.top_k));
  }
  std::vector<double> mass;
  for (const size_t i : order) mass.push_back(std::exp((row[i] - row[order[0]]) / options.temperature));
  const double all = std::accumulate(mass.begin(), mass.end(), 0.0);
  double kept = 0;
  size_t n = 0;
  while (n < mass.size() && kept < options.top_p * all) kept += mass[n++];
  std::vector<double> p(row.size(), 0.0);
  for (size_t i = 0; i < n; ++i) p[order[i]] = mass[i] / kept;
  return p;
}

std::vector<float> random_row(size_t n, uint64_t seed) {
  std::vector<float> row(n);
  for (size_t i = 0; i < n; ++i) row[i] = static_cast<float>(2 * RandomKey(seed).normal(i));
  return row;
}

TEST(TokenDistribution, HasTheProbabilitiesOfItsDefinition) {
  for (const size_t vocabulary : {1, 10, 64, 65, 500}) {
    std::vector<float> row = random_row(vocabulary, vocabulary);
    if (vocabulary > 1) row[vocabulary / 2] = kForbidden;
    for (const Sampling& options : {Sampling{}, Sampling{2.0, 0, 1.0, 1}, Sampling{0.5, 7, 1.0, 1},
                                    Sampling{1.0, 0, 0.8, 1}, Sampling{3.0, 100, 0.97, 1}}) {
      std::vector<float> scratch(vocabulary);
      TokenDistribution distribution(row, options, scratch);
      ASSERT_FALSE(distribution.empty());
      const std::vector<double> expected = expected_distribution(row, options);
      // A lattice of u instead of random ones: the share of each token is then exact to 1 / n.
      constexpr int n = 20000;
      std::vector<double> share(vocabulary, 0.0);
      for (int i = 0; i < n; ++i) {
        share[static_cast<size_t>(distribution.draw((i + 0.5) / n))] += 1.0 / n;
      }
      for (size_t token = 0; token < vocabulary; ++token) {
        ASSERT_NEAR(share[token], expected[token], 1.5 / n) << "token " << token << " of " << vocabulary;
      }
    }
  }
}

TEST(TokenDistribution, KeepsToWhatIsAllowedAtTheEdges) {
  const std::vector<float> row{kForbidden, 1, 0, kForbidden};
  TokenDistribution distribution(row, {}, {});
  EXPECT_EQ(distribution.draw(0), 1);
  EXPECT_EQ(distribution.draw(std::nextafter(1.0, 0.0)), 2);
  EXPECT_TRUE(TokenDistribution(std::vector<float>(5, kForbidden), {}, {}).empty());
  std::vector<float> scratch(4);
  TokenDistribution cold(row, {.temperature = 1e-4}, scratch);
  for (const double u : {0.0, 0.5, 0.999999}) EXPECT_EQ(cold.draw(u), 1);
  TokenDistribution narrow(row, {.top_p = 1e-9}, {});
  EXPECT_EQ(narrow.draw(0.999999), 1);
}

TEST(Sampling, FollowsTheModel) {
  // One step, many samples of one sentence: the first tokens follow the first row.
  const ToyScorer scorer{.seed = 3, .vocabulary = 6};
  Context context(2);
  ToyState state(scorer);
  const Sentence source{4, kEnd};
  SearchOptions options;
  options.n_best = 20000;
  options.max_length = 2;
  options.sampling = Sampling{.temperature = 2};
  std::map<int32_t, int> counts;
  const auto samples = search(context, state, tokens_of({source}), options).at(0);
  for (const Hypothesis& each : samples) ++counts[each.tokens[0]];
  EXPECT_EQ(samples.size(), 20000u);
  const std::vector<float> row = scorer.logits(source, {});
  const std::vector<double> expected = expected_distribution(row, *options.sampling);
  for (int32_t token = 0; token < 6; ++token) {
    const double p = expected[static_cast<size_t>(token)];
    EXPECT_NEAR(counts[token] / 20000.0, p, 5 * std::sqrt(p * (1 - p) / 20000) + 1e-9) << token;
  }
  // The reported probability is the model's own, at temperature 1.
  const std::vector<double> own = expected_distribution(row, {});
  for (const Hypothesis& each : samples) {
    ASSERT_NEAR(each.token_log_probabilities[0], std::log(own[static_cast<size_t>(each.tokens[0])]), 1e-5);
  }
}

TEST(Sampling, KnowsSeedTextSampleAndStep) {
  const ToyScorer scorer{.seed = 3, .vocabulary = 50, .end_bonus = -9, .sees_source = false};
  Context context(1);
  SearchOptions options;
  options.n_best = 4;
  options.max_length = 8;
  options.sampling = Sampling{};
  const auto draw = [&](const Sentence& source) {
    ToyState state(scorer);
    std::vector<Sentence> said;
    const auto samples = search(context, state, tokens_of({source}), options);
    for (const Hypothesis& each : samples[0]) said.push_back(each.tokens);
    return said;
  };
  const std::vector<Sentence> first = draw({4, kEnd});
  EXPECT_EQ(first, draw({4, kEnd}));
  EXPECT_NE(first, draw({5, kEnd}));  // the same logits, another text
  for (size_t i = 1; i < first.size(); ++i) EXPECT_NE(first[i], first[0]);
  options.sampling->seed = 2;
  EXPECT_NE(first, draw({4, kEnd}));
  options.sampling->top_k = 1;  // greedy
  const std::vector<Sentence> coldest = draw({4, kEnd});
  for (const Sentence& each : coldest) EXPECT_EQ(each, coldest[0]);
}

}  // namespace
}  // namespace gloss::decode
