// The answer never depends on company: batch size, order, neighbours, threads.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "decode/toy_scorer.h"
#include "gloss/decode/search.h"
#include "gloss/kernels/isa.h"

namespace gloss::decode {
namespace {

bool same(const Hypothesis& a, const Hypothesis& b) {
  return a.tokens == b.tokens && a.score == b.score && a.log_probability == b.log_probability &&
         a.token_log_probabilities == b.token_log_probabilities && a.finished == b.finished;
}
bool same(const std::vector<Hypothesis>& a, const std::vector<Hypothesis>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const auto& x, const auto& y) { return same(x, y); });
}

const ToyScorer kScorer{.seed = 5, .vocabulary = 300, .levels = 64, .end_bonus = 2};

std::vector<std::vector<Hypothesis>> run(const std::vector<Sentence>& sources, SearchOptions options,
                                         int batch, int threads) {
  Context context(threads);
  ToyState state(kScorer);
  options.batch = batch;
  auto results = search(context, state, tokens_of(sources), options);
  EXPECT_TRUE(state.empty());
  EXPECT_LE(state.most_sentences, static_cast<size_t>(batch));
  return results;
}

void expect_no_company(const SearchOptions& options) {
  const std::vector<Sentence> sources = random_sources(60, 3);
  std::vector<std::vector<Hypothesis>> alone;
  for (const Sentence& source : sources) alone.push_back(run({source}, options, 1, 1).at(0));
  std::vector<size_t> order(sources.size());
  std::iota(order.begin(), order.end(), size_t{0});
  for (const int batch : {1, 2, 7, 64}) {
    for (const int threads : {1, 3}) {
      std::vector<Sentence> shuffled;
      for (const size_t i : order) shuffled.push_back(sources[i]);
      const auto results = run(shuffled, options, batch, threads);
      for (size_t i = 0; i < order.size(); ++i) {
        EXPECT_TRUE(same(results[i], alone[order[i]])) << "batch " << batch << ", threads " << threads;
      }
      std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
        return RandomKey(static_cast<uint64_t>(batch)).bits(a) <
               RandomKey(static_cast<uint64_t>(batch)).bits(b);
      });
    }
  }
}

TEST(Company, ChangesNothingInBeamSearch) {
  SearchOptions options;
  options.n_best = 5;
  options.no_repeat_ngram = 3;
  expect_no_company(options);
}

TEST(Company, ChangesNothingInGreedySearch) {
  SearchOptions options;
  options.beam = 1;
  expect_no_company(options);
}

TEST(Company, ChangesNothingInSampling) {
  SearchOptions options;
  options.n_best = 3;
  for (const Sampling& sampling : {Sampling{}, Sampling{1.3, 40, 0.9, 4}, Sampling{0.7, 0, 0.95, 9}}) {
    options.sampling = sampling;
    expect_no_company(options);
  }
}

TEST(Company, NorDoesTheInstructionSetFromAvx2Up) {
  const std::vector<Sentence> sources = random_sources(20, 3);
  const auto best = run(sources, {}, 7, 1);
  for (const kernels::Isa isa : kernels::supported_isas()) {
    if (isa < kernels::Isa::avx2) continue;
    kernels::limit_isa(isa);
    const auto limited = run(sources, {}, 7, 1);
    for (size_t i = 0; i < sources.size(); ++i) EXPECT_TRUE(same(limited[i], best[i]));
  }
  kernels::limit_isa(kernels::supported_isas().back());
}

// A negative control: the comparison above sees another source, seed and width.
TEST(Company, ComparisonCanFail) {
  const std::vector<Sentence> sources = random_sources(2, 3);
  SearchOptions options;
  const auto results = run(sources, options, 2, 1);
  EXPECT_FALSE(same(results[0], results[1]));
  options.sampling = Sampling{};
  const auto drawn = run(sources, options, 2, 1);
  options.sampling->seed = 2;
  EXPECT_FALSE(same(drawn[0], run(sources, options, 2, 1)[0]));
}

TEST(Search, RefillsSlotsAndHandsOverEachSentenceOnceAsItEnds) {
  const std::vector<Sentence> sources = random_sources(100, 8);
  Context context(1);
  ToyState state(kScorer);
  SearchOptions options;
  options.batch = 8;
  std::map<int64_t, size_t> when;
  search(context, state, tokens_of(sources), options, [&](int64_t id, std::vector<Hypothesis> hypotheses) {
    EXPECT_EQ(hypotheses.size(), 1u);
    EXPECT_TRUE(when.emplace(id, state.advances).second) << id;
  });
  EXPECT_EQ(when.size(), 100u);
  EXPECT_EQ(state.most_sentences, 8u);
  // Had each eight waited for the slowest among them, it would have taken more steps.
  size_t waiting = 0;
  for (size_t first = 0; first < sources.size(); first += 8) {
    size_t slowest = 0;
    for (size_t i = first; i < std::min(first + 8, sources.size()); ++i) {
      ToyState alone(kScorer);
      search(context, alone, tokens_of({sources[i]}), options);
      slowest = std::max(slowest, alone.advances);
    }
    waiting += slowest;
  }
  EXPECT_LT(state.advances, waiting * 9 / 10);
}

TEST(Search, AcceptsSentencesWhileItRuns) {
  const std::vector<Sentence> sources = random_sources(20, 8);
  Context context(1);
  ToyState state(kScorer);
  SearchOptions options;
  options.batch = 3;
  std::map<int64_t, std::vector<Hypothesis>> results;
  Search running(context, state, options);
  size_t next = 0;
  EXPECT_EQ(running.room(), 3);
  while (next < sources.size() || !running.idle()) {
    if (next < sources.size()) {
      running.submit(static_cast<int64_t>(next), sources[next]);
      ++next;
    }
    running.step(
        [&](int64_t id, std::vector<Hypothesis> hypotheses) { results[id] = std::move(hypotheses); });
  }
  const auto expected = run(sources, options, 64, 1);
  for (size_t i = 0; i < sources.size(); ++i) {
    EXPECT_TRUE(same(results[static_cast<int64_t>(i)], expected[i]));
  }
}

TEST(Search, LeavesTheStateEmptyWhenItIsGivenUp) {
  Context context(1);
  ToyState state(kScorer);
  SearchOptions options;
  {
    Search running(context, state, options);
    for (const Sentence& source : random_sources(10, 1)) running.submit(0, source);
    running.step([](int64_t, std::vector<Hypothesis>) {});
    EXPECT_FALSE(state.empty());
  }
  EXPECT_TRUE(state.empty());
  EXPECT_THROW(search(context, state, tokens_of(random_sources(10, 1)), options,
                      [](int64_t, std::vector<Hypothesis>) { fail("the receiver is gone"); }),
               Error);
  EXPECT_TRUE(state.empty());
}

RC_GTEST_PROP(SearchProperty, AnyBatchGivesWhatEachSentenceGetsAlone, (uint64_t seed)) {
  const auto sources = random_sources(*rc::gen::inRange<size_t>(1, 12), seed);
  SearchOptions options;
  options.beam = *rc::gen::inRange(1, 7);
  options.n_best = *rc::gen::inRange(1, options.beam + 1);
  options.max_length = *rc::gen::inRange(0, 12);
  options.length_penalty = *rc::gen::element(-1.0, 0.0, 1.0);
  if (*rc::gen::arbitrary<bool>())
    options.sampling = Sampling{1.5, *rc::gen::inRange<int64_t>(0, 9), 0.9, seed};
  const auto results = run(sources, options, *rc::gen::inRange(1, 15), 2);
  for (size_t i = 0; i < sources.size(); ++i) {
    RC_ASSERT(same(results[i], run({sources[i]}, options, 1, 1)[0]));
  }
}

}  // namespace
}  // namespace gloss::decode
