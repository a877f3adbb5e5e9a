#include "gloss/data/batches.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <set>

#include "gloss/base/random.h"
#include "gloss/text/training.h"
#include "text/fixture.h"

namespace gloss::data {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using text::error_of;
using text::TemporaryFolder;

// Sentences of 1 to 40 words on both sides, two blank pairs, one too long and one uneven.
struct Fixture {
  TemporaryFolder folder;
  std::vector<std::string> source, target;
  std::vector<std::vector<int32_t>> source_ids, target_ids;
  std::unique_ptr<ParallelCorpus> corpus;
  std::unique_ptr<text::Tokenizer> tokenizer;

  Fixture() {
    const auto sentences = text::small_sentences();
    const RandomKey key(3);
    const auto words = [&](uint64_t i, uint64_t count) {
      std::string line;
      for (uint64_t k = 0; k < count; ++k)
        line += (k ? " " : "") + sentences[key.with(i).below(k, sentences.size())];
      return line;
    };
    for (uint64_t i = 0; i < 200; ++i) {
      const uint64_t n = 1 + key.below(i, 5);
      source.push_back(words(i, n));
      target.push_back(words(i + 1000, n));
    }
    source[10] = "";
    target[20] = "  ";
    source[30] = target[30] = words(5000, 100);
    source[40] = "a";
    target[40] = words(6000, 9);
    const auto source_file = folder.write("c.en", text::joined(source));
    const auto target_file = folder.write("c.de", text::joined(target));
    text::TokenizerOptions options;
    options.vocabulary_size = 250;
    tokenizer =
        std::make_unique<text::Tokenizer>(text::train_tokenizer(source_file, target_file, options).tokenizer);
    corpus = std::make_unique<ParallelCorpus>(source_file, target_file);
    for (const auto& line : source) source_ids.push_back(tokenizer->encode_source_ids(line));
    for (const auto& line : target) target_ids.push_back(tokenizer->encode_target_ids(line));
  }
};

const Fixture& fixture() {
  static const Fixture instance;
  return instance;
}

BatchOptions options_with(int64_t tokens, int64_t window, uint64_t seed = 1, bool prefetch = false) {
  BatchOptions options;
  options.target_tokens = tokens;
  options.window = window;
  options.seed = seed;
  options.prefetch = prefetch;
  return options;
}

std::vector<TokenBatch> epoch(BatchStream& stream) {
  std::vector<TokenBatch> batches;
  while (auto batch = stream.next()) batches.push_back(std::move(*batch));
  return batches;
}

bool equal(const TokenBatch& a, const TokenBatch& b) {
  return a.source.rows == b.source.rows && a.source.offsets == b.source.offsets &&
         a.target.rows == b.target.rows && a.target.offsets == b.target.offsets && a.pairs == b.pairs &&
         a.line_numbers == b.line_numbers;
}

bool equal(const std::vector<TokenBatch>& a, const std::vector<TokenBatch>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const auto& x, const auto& y) { return equal(x, y); });
}

std::vector<int32_t> sequence(const Tokens& tokens, int64_t i) {
  return {tokens.rows.begin() + tokens.offsets.begin(i), tokens.rows.begin() + tokens.offsets.end(i)};
}

RC_GTEST_PROP(BatchStream, GivesEveryUsablePairOnceAnEpochWithinTheLimits, ()) {
  const auto tokens = *rc::gen::inRange<int64_t>(150, 3000);
  const auto window = *rc::gen::inRange<int64_t>(1, 300);
  auto options = options_with(tokens, window, *rc::gen::arbitrary<uint64_t>(), *rc::gen::arbitrary<bool>());
  options.source_tokens = *rc::gen::element<int64_t>(0, 200, tokens);
  options.max_length = 150;
  const auto& f = fixture();
  BatchStream stream(*f.corpus, *f.tokenizer, options);
  for (int e = 0; e < 2; ++e) {
    std::set<int64_t> seen;
    for (const TokenBatch& batch : epoch(stream)) {
      RC_ASSERT(batch.pairs >= 1);
      RC_ASSERT(batch.target.offsets.total() <= tokens);
      RC_ASSERT(batch.source.offsets.total() <= (options.source_tokens ? options.source_tokens : 2 * tokens));
      RC_ASSERT(batch.source.offsets.count() == batch.pairs);
      RC_ASSERT(batch.target.offsets.count() == batch.pairs);
      RC_ASSERT(static_cast<int64_t>(batch.line_numbers.size()) == batch.pairs);
      RC_ASSERT(static_cast<int64_t>(batch.source.rows.size()) == batch.source.offsets.total());
      for (int64_t i = 0; i < batch.pairs; ++i) {
        const int64_t number = batch.line_numbers[static_cast<size_t>(i)];
        RC_ASSERT(seen.insert(number).second);
        const auto line = static_cast<size_t>(number - 1);
        RC_ASSERT(sequence(batch.source, i) == f.source_ids[line]);
        RC_ASSERT(sequence(batch.target, i) == f.target_ids[line]);
      }
    }
    RC_ASSERT(stream.position().epoch == e + 1);
    const SkipCounts& skipped = stream.skipped_last_epoch();
    RC_ASSERT(skipped.empty == 2);
    RC_ASSERT(skipped.too_long >= 1);
    RC_ASSERT(skipped.uneven == 1);
    RC_ASSERT(static_cast<int64_t>(seen.size()) + skipped.total() == f.corpus->pairs());
  }
}

TEST(BatchStream, TheSameSeedGivesTheSameBatchesAndAnotherSeedOthers) {
  const auto& f = fixture();
  BatchStream first(*f.corpus, *f.tokenizer, options_with(500, 70)),
      second(*f.corpus, *f.tokenizer, options_with(500, 70)),
      other(*f.corpus, *f.tokenizer, options_with(500, 70, 2));
  const auto batches = epoch(first);
  EXPECT_TRUE(equal(batches, epoch(second)));
  EXPECT_FALSE(equal(batches, epoch(other)));
  const auto next_epoch = epoch(first);
  EXPECT_FALSE(equal(batches, next_epoch));
  EXPECT_TRUE(equal(next_epoch, epoch(second)));
}

TEST(BatchStream, PreparingAheadChangesNothing) {
  const auto& f = fixture();
  for (const int64_t window : {60, 10000}) {
    BatchStream direct(*f.corpus, *f.tokenizer, options_with(500, window)),
        ahead(*f.corpus, *f.tokenizer, options_with(500, window, 1, true));
    for (int e = 0; e < 3; ++e) EXPECT_TRUE(equal(epoch(direct), epoch(ahead))) << window << " epoch " << e;
    EXPECT_EQ(direct.position(), ahead.position());
    EXPECT_EQ(direct.skipped_last_epoch(), ahead.skipped_last_epoch());
  }
}

RC_GTEST_PROP(BatchStream, GoesOnFromAnyPositionAsIfNeverStopped, ()) {
  const auto& f = fixture();
  const auto window = *rc::gen::element<int64_t>(7, 100, 199, 200, 201);
  const auto options =
      options_with(*rc::gen::inRange<int64_t>(300, 2000), window, 5, *rc::gen::arbitrary<bool>());
  BatchStream stream(*f.corpus, *f.tokenizer, options), resumed(*f.corpus, *f.tokenizer, options);
  const int before = *rc::gen::inRange(0, 60), astray = *rc::gen::inRange(0, 5);
  for (int i = 0; i < before; ++i) stream.next();
  for (int i = 0; i < astray; ++i) resumed.next();  // where it stood does not matter
  resumed.seek(StreamPosition::parse(stream.position().text()));
  RC_ASSERT(resumed.position() == stream.position());
  for (int i = 0; i < 40; ++i) {
    const auto expected = stream.next(), actual = resumed.next();
    RC_ASSERT(expected.has_value() == actual.has_value());
    if (expected) RC_ASSERT(equal(*expected, *actual));
    RC_ASSERT(stream.position() == resumed.position());
    RC_ASSERT(stream.skipped_last_epoch() == resumed.skipped_last_epoch() || resumed.position().epoch == 0 ||
              resumed.skipped_last_epoch() == SkipCounts{});
  }
}

TEST(BatchStream, CountsSkippedPairsOfAResumedEpochWhole) {
  const auto& f = fixture();
  BatchStream stream(*f.corpus, *f.tokenizer, options_with(300, 50)),
      resumed(*f.corpus, *f.tokenizer, options_with(300, 50));
  for (int i = 0; i < 20; ++i) stream.next();
  resumed.seek(stream.position());
  epoch(stream);
  epoch(resumed);
  EXPECT_EQ(stream.skipped_last_epoch(), resumed.skipped_last_epoch());
  EXPECT_EQ(resumed.skipped_last_epoch().empty, 2);
}

TEST(BatchStream, BatchesAreNearlyFullEvenAndOfLikeLengths) {
  const auto& f = fixture();
  BatchStream stream(*f.corpus, *f.tokenizer, options_with(300, 100000));
  const auto batches = epoch(stream);
  int64_t total = 0, smallest = INT64_MAX, spread = 0;
  for (const TokenBatch& batch : batches) {
    const int64_t tokens = batch.target.offsets.total();
    total += tokens;
    smallest = std::min(smallest, tokens);
    int64_t shortest = INT64_MAX;
    for (int64_t i = 0; i < batch.pairs; ++i) shortest = std::min(shortest, batch.target.offsets.length(i));
    spread = std::max(spread, batch.target.offsets.longest() - shortest);
  }
  const auto count = static_cast<int64_t>(batches.size());
  ASSERT_GT(count, 10);
  EXPECT_LE((count - 2) * 300, total);  // no more batches than needed but one
  EXPECT_GE(smallest, total / count * 3 / 4);
  EXPECT_LE(spread, 20);
  // Shuffled: lengths do not rise from batch to batch.
  EXPECT_FALSE(std::is_sorted(batches.begin(), batches.end(), [](const TokenBatch& a, const TokenBatch& b) {
    return a.target.offsets.longest() < b.target.offsets.longest();
  }));
}

TEST(BatchStream, StopsCleanlyWhileItPrepares) {
  const auto& f = fixture();
  for (int i = 0; i < 20; ++i) {
    BatchStream stream(*f.corpus, *f.tokenizer, options_with(500, 100, 1, true));
    for (int k = 0; k < i; ++k) stream.next();
  }
}

TEST(BatchStream, CarriesErrorsOverFromItsThread) {
  const auto& f = fixture();
  for (const bool prefetch : {false, true}) {
    const TemporaryFolder folder;
    const auto lines = text::joined(text::small_sentences());
    const ParallelCorpus corpus(folder.write("c.en", lines), folder.write("c.de", lines));
    BatchStream stream(corpus, *f.tokenizer, options_with(500, 300, 1, prefetch));
    ASSERT_TRUE(stream.next());
    folder.write("c.de", "short\n");
    const auto run = [&] {
      while (stream.next()) {
      }
    };
    EXPECT_THAT(error_of(run), HasSubstr("c.de"));
    EXPECT_THAT(error_of(run), HasSubstr("c.de"));  // and again: it never goes on without the lost window
  }
}

TEST(BatchStream, SaysWhyNoPairCanBeUsed) {
  const auto& f = fixture();
  const TemporaryFolder folder;
  const ParallelCorpus blank(folder.write("c.en", "\na\n"), folder.write("c.de", "a\n \n"));
  BatchStream stream(blank, *f.tokenizer, options_with(500, 10));
  EXPECT_THAT(error_of([&] { stream.next(); }), AllOf(HasSubstr("c.en"), HasSubstr("2 have an empty side")));
  const ParallelCorpus one(folder.write("d.en", "a man"), folder.write("d.de", "a dog"));
  BatchStream single(one, *f.tokenizer, options_with(500, 10));
  EXPECT_EQ(single.next()->pairs, 1);
  EXPECT_FALSE(single.next());
  EXPECT_EQ(single.next()->line_numbers, std::vector<int64_t>{1});
}

TEST(BatchStream, RefusesOptionsAndPositionsOutOfRange) {
  const auto& f = fixture();
  const auto error = [&](auto change) {
    BatchOptions options;
    change(options);
    return error_of([&] { BatchStream(*f.corpus, *f.tokenizer, options); });
  };
  EXPECT_THAT(error([](auto& o) { o.target_tokens = 1; }), HasSubstr("1 target tokens"));
  EXPECT_THAT(error([](auto& o) { o.source_tokens = -4; }), HasSubstr("-4"));
  EXPECT_THAT(error([](auto& o) { o.max_length = 0; }), HasSubstr("0"));
  EXPECT_THAT(error([](auto& o) { o.window = 0; }), HasSubstr("window"));
  EXPECT_THAT(error([](auto& o) { o.max_ratio = 0.5; }), HasSubstr("0.5"));
  BatchStream stream(*f.corpus, *f.tokenizer, options_with(500, 70));
  StreamPosition position;
  position.window = 3;
  EXPECT_THAT(error_of([&] { stream.seek(position); }), HasSubstr("windows"));
  position = {};
  position.batch = position.window_batch = 1000;
  EXPECT_THAT(error_of([&] { stream.seek(position); }), HasSubstr("1000"));
  for (const char* bad : {"", "1 2 3", "1 2 3 4 5 6 7 8", "a b c d e f g", "-1 0 0 0 0 0 0", "1 2 3 4 5 6 7x",
                          "99999999999999999999 0 0 0 0 0 0"})
    EXPECT_THAT(error_of([&] { StreamPosition::parse(bad); }), HasSubstr("position")) << bad;
}

TEST(ValidationBatches, HoldAllPairsSortedByLength) {
  const auto& f = fixture();
  const auto [batches, skipped] = validation_batches(*f.corpus, *f.tokenizer, 400);
  EXPECT_EQ(skipped.empty, 2);
  std::set<int64_t> seen;
  std::tuple<int64_t, int64_t, int64_t> last{};
  for (const TokenBatch& batch : batches) {
    EXPECT_TRUE(batch.pairs == 1 || batch.target.offsets.total() <= 400);
    for (int64_t i = 0; i < batch.pairs; ++i) {
      const int64_t line = batch.line_numbers[static_cast<size_t>(i)];
      EXPECT_TRUE(seen.insert(line).second);
      const std::tuple now(batch.target.offsets.length(i), batch.source.offsets.length(i), line);
      EXPECT_LT(last, now);
      last = now;
    }
  }
  EXPECT_EQ(static_cast<int64_t>(seen.size()), f.corpus->pairs() - 2);
  const TemporaryFolder folder;
  const ParallelCorpus blank(folder.write("c.en", "\n"), folder.write("c.de", "a\n"));
  EXPECT_THAT(error_of([&] { validation_batches(blank, *f.tokenizer, 400); }), HasSubstr("c.de"));
}

TEST(BatchStream, FillsItsBatchesOnMulti30k) {
  const auto english = text::gzip_lines(text::multi30k("train.en.gz"), 10000),
             german = text::gzip_lines(text::multi30k("train.de.gz"), 10000);
  if (english.empty()) GTEST_SKIP() << text::multi30k("train.en.gz") << " is absent";
  const TemporaryFolder folder;
  const auto source = folder.write("c.en", text::joined(english)),
             target = folder.write("c.de", text::joined(german));
  const ParallelCorpus corpus(source, target);
  const auto trained = text::train_tokenizer(source, target, {});
  BatchStream stream(corpus, trained.tokenizer, options_with(4096, 100000, 1, true));
  int64_t pairs = 0, tokens = 0, count = 0;
  for (const TokenBatch& batch : epoch(stream)) {
    pairs += batch.pairs;
    tokens += batch.target.offsets.total();
    ++count;
  }
  EXPECT_EQ(pairs + stream.skipped_last_epoch().total(), corpus.pairs());
  EXPECT_LE(stream.skipped_last_epoch().total(), 10);
  EXPECT_GE(tokens, count * 4096 * 94 / 100);
}

}  // namespace
}  // namespace gloss::data
