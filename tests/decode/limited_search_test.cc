// Searching among the tokens of a sentence's own set: what is computed is fewer logits, what is found depends
// on the sentence alone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <set>

#include "decode/golden_translator.h"
#include "decode/small_translator.h"
#include "decode/toy_scorer.h"
#include "gloss/data/lexical_table.h"
#include "gloss/decode/search.h"
#include "gloss/decode/short_ranking.h"
#include "gloss/decode/token_union.h"
#include "support/isas.h"
#include "text/fixture.h"

namespace gloss::decode {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using text::error_of;
using Ids = std::vector<int32_t>;
using Results = std::vector<std::vector<Hypothesis>>;

constexpr float kNone = -std::numeric_limits<float>::infinity();

TEST(TokenUnion, GrowsWithSentencesAndShrinksWhenMostIsWaste) {
  TokenUnion all(100);
  EXPECT_FALSE(all.settle());
  all.add(Ids{3, 7, 50});
  EXPECT_TRUE(all.settle());
  EXPECT_THAT(all.tokens(), ElementsAre(3, 7, 50));
  all.add(Ids{0, 7, 99});
  EXPECT_TRUE(all.settle());
  EXPECT_THAT(all.tokens(), ElementsAre(0, 3, 7, 50, 99));
  EXPECT_EQ(all.place(7), 2);
  EXPECT_EQ(all.place(99), 4);
  all.remove(Ids{3, 7, 50});
  EXPECT_FALSE(all.settle()) << "three of five are needed";
  all.add(Ids{3});
  EXPECT_FALSE(all.settle()) << "it is still there";
  all.remove(Ids{0, 7, 99});
  all.add(Ids{4});
  EXPECT_TRUE(all.settle());
  EXPECT_THAT(all.tokens(), ElementsAre(3, 4)) << "two of six are needed";
  EXPECT_EQ(all.place(7), -1);
}

TEST(ShortRanking, RanksEachRowAmongItsOwnInAnyParts) {
  constexpr int64_t kRows = 6, kColumns = 1300;
  std::vector<float> logits(kRows * kColumns);
  for (size_t i = 0; i < logits.size(); ++i)
    logits[i] = static_cast<float>(std::round(8 * RandomKey(3).normal(i))) / 2;  // with ties
  std::vector<Ids> tokens(kRows), columns(kRows);
  for (size_t row = 0; row < kRows; ++row) {
    for (int32_t c = 0; c < kColumns; ++c) {
      if (RandomKey(row).below(static_cast<uint64_t>(c), 50) >= row * row) continue;
      columns[row].push_back(c);
      tokens[row].push_back(2 * c + 1);
    }
  }
  columns[0] = {5, 1299};
  tokens[0] = {11, 2599};
  const Ids masked{1, 11, 12, 401, 1001, 2599};
  for (const int64_t part : {1, 64, 512, 1300}) {
    for (const int64_t group : {1, 4}) {
      ShortRanking ranking;
      ranking.begin(5);
      for (size_t row = 0; row < kRows; ++row) ranking.add_row(tokens[row], columns[row]);
      ranking.end_rows();
      for (int64_t column = (kColumns - 1) / part * part; column >= 0; column -= part) {
        for (int64_t row = 0; row < kRows; row += group) {
          ranking.see(row, column,
                      {logits.data() + row * kColumns + column, std::min(group, kRows - row),
                       std::min(part, kColumns - column), kColumns});
        }
      }
      for (int64_t row = 0; row < kRows; ++row) {
        const auto r = static_cast<size_t>(row);
        std::vector<float> own;
        for (const int32_t c : columns[r]) own.push_back(logits[static_cast<size_t>(row * kColumns + c)]);
        const bool masks = row % 2 == 0;
        ASSERT_EQ(std::bit_cast<uint32_t>(ranking.normalise(row, masks ? masked : Ids{})),
                  std::bit_cast<uint32_t>(kernels::log_sum_exp(own)));
        std::vector<kernels::Ranked> want;
        for (size_t i = 0; i < own.size(); ++i) {
          if (!masks || !std::ranges::binary_search(masked, tokens[r][i]))
            want.push_back({own[i], tokens[r][i]});
        }
        std::ranges::sort(want, kernels::Better());
        ranking.rank(row);
        const auto got = ranking.choices(row);
        ASSERT_EQ(got.size(), 5U);
        for (size_t i = 0; i < 5; ++i) {
          if (i < want.size()) {
            ASSERT_EQ(got[i], want[i]) << "row " << row << ", part " << part;
          } else {
            ASSERT_EQ(got[i].value, kNone);
          }
        }
      }
    }
  }
}

TEST(ShortRanking, MissesWhatTheModelDoesNotGive) {
  const Ids tokens{1, 5};
  const std::vector<float> logits(4);
  ShortRanking ranking;
  for (const int64_t given : {4, 6}) {
    ranking.begin(1);
    ranking.add_row(tokens, tokens);
    ranking.end_rows();
    ranking.see(0, 0, {logits.data(), 1, 4, 4});
    if (given == 6) ranking.see(0, 4, {logits.data(), 1, 2, 2});
    EXPECT_EQ(std::isnan(ranking.normalise(0, {})), given == 4);
  }
}

const ToyScorer kScorer{.seed = 5, .vocabulary = 300, .levels = 1 << 16, .end_bonus = 2};

// About a sixth of the tokens, by the source.
Ids some_tokens(std::span<const int32_t> source) {
  RandomKey key(9);
  for (const int32_t token : source) key = key.with(static_cast<uint64_t>(token));
  Ids tokens{kEnd};
  for (int32_t token = 1; token < kScorer.vocabulary; ++token) {
    if (key.below(static_cast<uint64_t>(token), 6) == 0) tokens.push_back(token);
  }
  return tokens;
}
Ids all_tokens(std::span<const int32_t>) {
  Ids tokens(static_cast<size_t>(kScorer.vocabulary));
  for (size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<int32_t>(i);
  return tokens;
}

// Hands over the columns that it is limited to, a few at a time.
class LimitedToy : public ToyState {
 public:
  using ToyState::ToyState;
  bool limit_output(std::span<const int32_t> tokens) override {
    limit_.assign(tokens.begin(), tokens.end());
    ++limits;
    return true;
  }
  void logits_in_parts(const Tensor<float>& states, kernels::ColumnParts,
                       const kernels::SeePart& see) override {
    ASSERT_FALSE(limit_.empty());
    const Tensor<float> all = logits(states);
    for (int64_t row = 0; row < all.rows(); ++row) {
      for (size_t first = 0; first < limit_.size(); first += 13) {
        std::vector<float> part;
        for (size_t i = first; i < std::min(first + 13, limit_.size()); ++i)
          part.push_back(all.row(row)[limit_[i]]);
        see(row, static_cast<int64_t>(first), {part.data(), 1, std::ssize(part), std::ssize(part)});
      }
    }
  }
  bool limited() const { return !limit_.empty(); }
  size_t limits = 0;

 private:
  Ids limit_;
};

// Logits of -infinity outside the set: the same search by the book.
class ClosedToy : public ToyState {
 public:
  ClosedToy(ToyScorer scorer, Ids open) : ToyState(scorer), open_(std::move(open)) {}
  Tensor<float> logits(const Tensor<float>& states) override {
    const Tensor<float> all = ToyState::logits(states);
    for (int64_t row = 0; row < all.rows(); ++row) {
      for (int32_t token = 0; token < all.cols(); ++token) {
        if (!std::ranges::binary_search(open_, token)) all.row(row)[token] = kNone;
      }
    }
    return all;
  }

 private:
  Ids open_;
};

template <class State>
Results run(const std::vector<Sentence>& sources, SearchOptions options, int batch, int threads,
            const TokensOf& limit) {
  Context context(threads);
  State state(kScorer);
  options.batch = batch;
  auto results = search(context, state, tokens_of(sources), options, limit);
  EXPECT_TRUE(state.empty());
  if constexpr (std::is_same_v<State, LimitedToy>) {
    EXPECT_FALSE(state.limited()) << "a limit stays behind";
    EXPECT_EQ(state.limits > 0, static_cast<bool>(limit));
  }
  return results;
}

void expect_equal(const Results& got, const Results& want) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_EQ(got[i].size(), want[i].size());
    for (size_t j = 0; j < got[i].size(); ++j) {
      EXPECT_EQ(got[i][j].tokens, want[i][j].tokens);
      EXPECT_EQ(got[i][j].score, want[i][j].score);
      EXPECT_EQ(got[i][j].token_log_probabilities, want[i][j].token_log_probabilities);
    }
  }
}

std::vector<SearchOptions> kinds_of_search() {
  SearchOptions beam;
  beam.beam = 4;
  beam.max_length = 12;
  beam.n_best = 3;
  SearchOptions greedy;
  greedy.beam = 1;
  greedy.max_length = 12;
  SearchOptions rules = beam;
  rules.min_length = 3;
  rules.no_repeat_ngram = 1;
  rules.forbidden_tokens = {kStart, 7, 100};
  SearchOptions draws = beam;
  draws.sampling = Sampling{1, 0, 1, 3};
  SearchOptions cut = draws;
  cut.sampling = Sampling{0.7, 20, 0.9, 4};
  return {beam, greedy, rules, draws, cut};
}

TEST(LimitedSearch, IsASearchWhereTheOtherTokensAreImpossible) {
  const std::vector<Sentence> sources = random_sources(20, 3);
  for (const SearchOptions& options : kinds_of_search()) {
    const auto got = run<LimitedToy>(sources, options, 8, 1, some_tokens);
    for (size_t i = 0; i < sources.size(); ++i) {
      const Ids own = some_tokens(sources[i]);
      Context context(1);
      ClosedToy closed(kScorer, own);
      const auto want = search(context, closed, tokens_of({sources[i]}), options).at(0);
      ASSERT_EQ(got[i].size(), want.size());
      for (size_t j = 0; j < want.size(); ++j) {
        EXPECT_EQ(got[i][j].tokens, want[j].tokens);
        EXPECT_NEAR(got[i][j].score, want[j].score, 1e-4);
        for (const int32_t token : got[i][j].tokens) EXPECT_TRUE(std::ranges::binary_search(own, token));
      }
    }
  }
}

TEST(LimitedSearch, AmongAllTokensIsSearch) {
  const std::vector<Sentence> sources = random_sources(20, 3);
  for (const SearchOptions& options : kinds_of_search()) {
    const auto want = run<ToyState>(sources, options, 8, 1, {});
    expect_equal(run<ToyState>(sources, options, 8, 1, all_tokens), want);
    expect_equal(run<LimitedToy>(sources, options, 8, 1, all_tokens), want);
  }
}

TEST(LimitedSearch, CompanyChangesNothing) {
  const std::vector<Sentence> sources = random_sources(60, 3);
  for (const SearchOptions& options : kinds_of_search()) {
    Results alone;
    for (const Sentence& source : sources)
      alone.push_back(run<LimitedToy>({source}, options, 1, 1, some_tokens).at(0));
    for (const int batch : {1, 2, 7, 64}) {
      for (const int threads : {1, 3}) {
        expect_equal(run<LimitedToy>(sources, options, batch, threads, some_tokens), alone);
        expect_equal(run<ToyState>(sources, options, batch, threads, some_tokens), alone);
      }
    }
    const std::vector<Sentence> turned(sources.rbegin(), sources.rend());
    auto got = run<LimitedToy>(turned, options, 7, 1, some_tokens);
    std::ranges::reverse(got);
    expect_equal(got, alone);
  }
}

TEST(LimitedSearch, TakesSetsThatAreSmallerThanTheBeam) {
  const std::vector<Sentence> sources = random_sources(10, 4);
  for (const SearchOptions& options : kinds_of_search()) {
    for (const Ids& own : {Ids{kEnd}, Ids{kEnd, 5}, Ids{5, 299}}) {
      const auto found = [&] { return run<LimitedToy>(sources, options, 4, 1, [&](auto) { return own; }); };
      if (options.min_length > 0 && own.size() == 1) {
        EXPECT_THAT(error_of(found), HasSubstr("every first token is forbidden"));
        continue;
      }
      const Results results = found();
      for (const auto& hypotheses : results) {
        ASSERT_FALSE(hypotheses.empty());
        for (const Hypothesis& one : hypotheses) {
          EXPECT_FALSE(one.tokens.empty());
          EXPECT_FALSE(std::isnan(one.score));
        }
      }
    }
  }
}

TEST(LimitedSearch, RefusesSetsThatAreNone) {
  for (const Ids& bad : {Ids{}, Ids{3, 2}, Ids{2, 2}, Ids{-1, 2}, Ids{2, 300}}) {
    EXPECT_THAT(error_of([&] {
                  run<LimitedToy>({{4, kEnd}}, {}, 4, 1, [&](auto) { return bad; });
                }),
                HasSubstr("sentence 0"));
  }
}

// Translators.

std::filesystem::path write_table(const text::TemporaryFolder& folder, const text::Tokenizer& tokenizer) {
  const text::Vocabulary &source = tokenizer.source_vocabulary(), &target = tokenizer.target_vocabulary();
  std::string lines;
  for (int32_t id = 4; id < target.size() && id < 40; id += 2) {
    if (id != target.pad_id()) lines += fmt::format("{} NULL 0.01\n", target.piece(id));
  }
  for (int32_t id = 3; id < source.size(); ++id) {
    std::set<int32_t> own;
    for (int32_t i = 0; i < 9; ++i)
      own.insert(static_cast<int32_t>((id * 37 + i * i * 101) % std::min(target.size(), 6000)));
    for (const int32_t t : own) {
      if (t > 2 && t != target.pad_id() && id != source.pad_id())
        lines += fmt::format("{} {} {}\n", target.piece(t), source.piece(id), 0.1);
    }
  }
  return folder.write("t.lex", lines);
}

const Lines kLines{"The cat sat on the mat.", "A dog ran over the hill and far away.", "", "Nobody knows.",
                   "One, two, three, four, five, six, seven."};

class LimitedTranslator : public SmallTranslator {
 protected:
  text::TemporaryFolder tables_;
};

TEST_F(LimitedTranslator, AmongAllPiecesSaysTheSame) {
  for (const bool sample : {false, true}) {
    for (const bool cache : {false, true}) {
      TranslateOptions options = short_options();
      options.sample = sample;
      options.cache = cache;
      const auto want = translator_->translate(kLines, options);
      options.shortlist = write_table(tables_, translator_->tokenizer());
      EXPECT_FALSE(tests::same_bits(scores_of(translator_->translate(kLines,
                                                                     [&] {
                                                                       TranslateOptions few = options;
                                                                       few.likely = {4, 2, 0};
                                                                       return few;
                                                                     }())),
                                    scores_of(want)));
      options.likely.first = translator_->tokenizer().target_vocabulary().size();
      expect_same(translator_->translate(kLines, options), want);
    }
  }
}

TEST_F(LimitedTranslator, CompanyCacheAndThreadsChangeNothing) {
  for (const auto precision :
       {kernels::Precision::float32, kernels::Precision::bfloat16, kernels::Precision::int8}) {
    if (!kernels::precision_served(precision)) continue;
    SCOPED_TRACE(kernels::precision_name(precision));
    const Translator translator(folder_, precision);
    for (const bool sample : {false, true}) {
      TranslateOptions options = short_options();
      options.sample = sample;
      options.shortlist = write_table(tables_, translator.tokenizer());
      options.likely = {4, 2, 0};
      options.cache_precision = models::CachePrecision::bfloat16;  // to the bit without a cache as well
      const auto want = translator.translate(kLines, options);
      for (const int batch : {1, 3}) {
        options.search.batch = batch;
        options.threads = options.workers = batch == 3 ? 2 : 1;
        for (const bool cache : {false, true}) {
          options.cache = cache;
          expect_same(translator.translate(kLines, options), want);
        }
      }
    }
  }
}

TEST_F(LimitedTranslator, RefusesATableOfAnotherModel) {
  TranslateOptions options = short_options();
  const std::string piece = translator_->tokenizer().target_vocabulary().piece(9);
  options.shortlist =
      tables_.write("other.lex", fmt::format("{} {} 1\nzzz yyy 1\nzzz xxx 1\n", piece, piece));
  EXPECT_THAT(error_of([&] { translator_->translate(kLines, options); }), HasSubstr("2 of 3 lines of"));
  options.shortlist = tables_.write("other.lex", "zzz yyy 1\n");
  EXPECT_THAT(error_of([&] { translator_->translate(kLines, options); }), HasSubstr("other.lex"));
  options.shortlist = "nowhere.lex";
  EXPECT_THAT(error_of([&] { translator_->translate(kLines, options); }), HasSubstr("nowhere.lex"));
  options.likely.best = -1;
  EXPECT_THROW(translator_->translate(kLines, options), UsageError);
}

class LimitedGolden : public GoldenTranslator {
 protected:
  TranslateOptions limited(const Translator& translator) const {
    TranslateOptions options;
    options.shortlist = write_table(tables_, translator.tokenizer());
    options.search.max_length = 20;
    return options;
  }
  text::TemporaryFolder tables_;
};

TEST_F(LimitedGolden, CompanyThreadsAndWorkersChangeNothingInAnyPrecision) {
  lines_.resize(30);
  for (const auto precision :
       {kernels::Precision::float32, kernels::Precision::bfloat16, kernels::Precision::int8}) {
    if (!kernels::precision_served(precision)) continue;
    SCOPED_TRACE(kernels::precision_name(precision));
    const Translator translator(kGolden, precision);
    expect_no_company(translator, limited(translator));
  }
}

TEST_F(LimitedGolden, WideInstructionSetsGiveTheSameBits) {
  lines_.resize(15);
  const auto want = translator_->translate(lines_, limited(*translator_));
  tests::on_every_isa([&](kernels::Isa isa) {
    const Translator translator(kGolden);
    const auto got = translator.translate(lines_, limited(translator));
    if (isa >= kernels::Isa::avx2) expect_same(got, want);
  });
}

}  // namespace
}  // namespace gloss::decode
