#include "gloss/decode/forced.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "decode/toy_scorer.h"
#include "gloss/decode/search.h"

namespace gloss::decode {
namespace {

const ToyScorer kScorer{.seed = 6, .vocabulary = 40, .end_bonus = 3};

template <class Function>
std::string error_of(Function function) {
  try {
    function();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(Forced, EqualsTheLogSoftmaxOfEachStep) {
  const std::vector<Sentence> sources = random_sources(9, 1);
  std::vector<Sentence> targets;
  for (int32_t i = 0; i < 9; ++i) {
    targets.emplace_back(static_cast<size_t>(i));  // one of them empty
    for (int32_t t = 0; t < i; ++t) targets.back()[static_cast<size_t>(t)] = (7 * i + 11 * t) % 40;
  }
  for (const int batch : {1, 4, 64}) {
    ToyState state(kScorer);
    const auto scores = forced_log_probabilities(state, tokens_of(sources), tokens_of(targets), batch);
    EXPECT_TRUE(state.empty());
    EXPECT_EQ(scores.offsets, tokens_of(targets).offsets);
    size_t at = 0;
    for (size_t i = 0; i < targets.size(); ++i) {
      for (size_t t = 0; t < targets[i].size(); ++t) {
        const auto row = kScorer.logits(sources[i], std::span(targets[i]).first(t));
        double sum = 0;
        for (const float logit : row) sum += std::exp(static_cast<double>(logit));
        EXPECT_NEAR(scores.rows[at++], row[static_cast<size_t>(targets[i][t])] - std::log(sum), 2e-6);
      }
    }
    EXPECT_EQ(at, scores.rows.size());
  }
}

TEST(Forced, AgreesWithSearchBitForBit) {
  const std::vector<Sentence> sources = random_sources(20, 2);
  Context context(1);
  ToyState state(kScorer);
  SearchOptions options;
  options.at_cap = AtCap::leave_open;
  std::vector<Sentence> targets;
  std::vector<float> expected;
  for (const auto& found : search(context, state, tokens_of(sources), options)) {
    targets.push_back(found[0].tokens);
    expected.insert(expected.end(), found[0].token_log_probabilities.begin(),
                    found[0].token_log_probabilities.end());
  }
  EXPECT_EQ(forced_log_probabilities(state, tokens_of(sources), tokens_of(targets)).rows, expected);
}

TEST(Forced, RefusesWhatItCannotScore) {
  ToyState state(kScorer);
  const auto score = [&](const std::vector<Sentence>& sources, const std::vector<Sentence>& targets) {
    return error_of([&] { forced_log_probabilities(state, tokens_of(sources), tokens_of(targets)); });
  };
  using testing::HasSubstr;
  EXPECT_THAT(score({{2, kEnd}}, {}), HasSubstr("1 sources and 0 translations"));
  EXPECT_THAT(score({{2, kEnd}, {}}, {{3}, {4}}), HasSubstr("sentence 1 (counting from 0) is empty"));
  EXPECT_THAT(score({{2, kEnd}}, {{3, 40}}), HasSubstr("target token 40 is not in the vocabulary of 40"));
  EXPECT_THAT(score({{2, kEnd}}, {{-1}}), HasSubstr("target token -1"));
  state.broken = {{3, kEnd}};
  EXPECT_THAT(score({{2, kEnd}, {3, kEnd}}, {{3, 5, 6, 7}, {3, 5, 6, 7}}),
              HasSubstr("sentence 1 (counting from 0): the model gives NaN or infinity for target token 2"));
  EXPECT_TRUE(state.empty());
}

TEST(Search, NamesTheSentenceWhoseLogitsAreNoNumbers) {
  std::vector<Sentence> sources = random_sources(6, 5);
  for (const bool sampled : {false, true}) {
    Context context(2);
    ToyState state({.seed = 6, .vocabulary = 40, .end_bonus = -9});
    state.broken = {sources[4]};
    SearchOptions options;
    options.batch = 3;
    if (sampled) options.sampling = Sampling{};
    EXPECT_THAT(error_of([&] { search(context, state, tokens_of(sources), options); }),
                testing::HasSubstr(
                    "sentence 4 (counting from 0): the model gives NaN or infinity for target token 2"));
    EXPECT_TRUE(state.empty());
  }
}

TEST(Search, RefusesEmptySourcesAndImpossibleOptions) {
  Context context(1);
  ToyState state(kScorer);
  const auto searching = [&](const std::vector<Sentence>& sources, const SearchOptions& options) {
    return error_of([&] { search(context, state, tokens_of(sources), options); });
  };
  using testing::HasSubstr;
  EXPECT_THAT(searching({{2, kEnd}, {}}, {}), HasSubstr("sentence 1 (counting from 0) is empty"));
  const auto refused = [&](auto change) {
    SearchOptions options;
    change(options);
    EXPECT_THROW(validate(options), UsageError);
    return searching({{2, kEnd}}, options);
  };
  EXPECT_THAT(refused([](auto& o) { o.beam = 0; }), HasSubstr("beam is 0"));
  EXPECT_THAT(refused([](auto& o) { o.n_best = 6; }), HasSubstr("from 1 to the beam width, which is 5"));
  EXPECT_THAT(refused([](auto& o) { o.batch = -1; }), HasSubstr("batch is -1"));
  EXPECT_THAT(refused([](auto& o) { o.length_penalty = std::nan(""); }), HasSubstr("length penalty is nan"));
  EXPECT_THAT(refused([](auto& o) { o.min_length = -1; }), HasSubstr("min length is -1"));
  EXPECT_THAT(refused([](auto& o) { o.min_length = 9, o.max_length = 8; }),
              HasSubstr("min length 9 is greater than max length 8"));
  EXPECT_THAT(refused([](auto& o) { o.sampling = Sampling{.temperature = 0}; }),
              HasSubstr("temperature is 0"));
  EXPECT_THAT(refused([](auto& o) { o.sampling = Sampling{.top_p = 1.5}; }), HasSubstr("top-p is 1.5"));
  EXPECT_THAT(refused([](auto& o) { o.sampling = Sampling{.top_k = -1}; }), HasSubstr("top-k is -1"));
  SearchOptions options;
  options.forbidden_tokens = {40};
  EXPECT_THAT(searching({{2, kEnd}}, options), HasSubstr("forbidden token 40 is not in the vocabulary"));
  EXPECT_TRUE(state.empty());
}

TEST(Search, NeverSaysWhatIsForbidden) {
  Context context(1);
  ToyState state(kScorer);
  state.forbidden = {5, 6};
  SearchOptions options;
  options.forbidden_tokens = {7};
  for (const bool sampled : {false, true}) {
    if (sampled) options.sampling = Sampling{.temperature = 5};
    for (const auto& found : search(context, state, tokens_of(random_sources(50, 2)), options)) {
      for (const int32_t token : found[0].tokens) EXPECT_FALSE(token >= 5 && token <= 7);
    }
  }
  options.sampling.reset();
  options.forbidden_tokens.clear();
  for (int32_t token = 0; token < 40; ++token) options.forbidden_tokens.push_back(token);
  EXPECT_THAT(error_of([&] {
                search(context, state, tokens_of({{2, kEnd}}), options);
              }),
              testing::HasSubstr("sentence 0 (counting from 0): every first token is forbidden"));
}

}  // namespace
}  // namespace gloss::decode
