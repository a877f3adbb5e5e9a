// Translating with keys and values kept as bfloat16: what holds of float32 holds of it, and what the cache
// rounds is rounded without it too, so that not a bit depends on the cache.
#include <gtest/gtest.h>

#include "gloss/kernels/precision.h"
#include "golden_translator.h"
#include "small_translator.h"
#include "support/isas.h"

namespace gloss::decode {
namespace {

using models::CachePrecision;

class GoldenCachePrecision : public GoldenTranslator {
 protected:
  static TranslateOptions rounded() {
    TranslateOptions options;
    options.cache_precision = CachePrecision::bfloat16;
    return options;
  }
};

TEST_F(GoldenCachePrecision, CompanyThreadsAndWorkersChangeNothing) {
  lines_.resize(100);
  expect_no_company(*translator_, rounded());
}

TEST_F(GoldenCachePrecision, RoundsAndSaysNearlyWhatFloat32Says) {
  const auto want = translator_->translate(lines_), got = translator_->translate(lines_, rounded());
  EXPECT_FALSE(tests::same_bits(scores_of(got), scores_of(want)));
  double distance = 0;
  for (size_t i = 0; i < got.size(); ++i)
    distance += std::abs(got[i].candidates[0].score - want[i].candidates[0].score);
  EXPECT_LE(distance / static_cast<double>(got.size()), 0.02);
}

TEST_F(GoldenCachePrecision, TheCacheChangesNotABitInAnyPrecisionOfProducts) {
  lines_.resize(40);
  for (const auto precision :
       {kernels::Precision::float32, kernels::Precision::bfloat16, kernels::Precision::int8}) {
    if (!kernels::precision_served(precision)) continue;
    SCOPED_TRACE(kernels::precision_name(precision));
    const Translator translator(kGolden, precision);
    TranslateOptions options = rounded();
    const auto cached = translator.translate(lines_, options);
    options.cache = false;
    expect_same(translator.translate(lines_, options), cached);
  }
}

TEST_F(GoldenCachePrecision, WideInstructionSetsGiveTheSameBits) {
  lines_.resize(40);
  const auto want = translator_->translate(lines_, rounded());
  tests::on_every_isa([&](kernels::Isa isa) {
    const auto got = Translator(kGolden).translate(lines_, rounded());
    if (isa >= kernels::Isa::avx2) return expect_same(got, want);
    int64_t equal = 0;
    for (size_t i = 0; i < got.size(); ++i) equal += got[i].text() == want[i].text();
    EXPECT_GE(equal, std::ssize(lines_) - 2);
  });
}

// The same of a model that is always there, with drawing at random.
class SmallCachePrecision : public SmallTranslator {};

TEST_F(SmallCachePrecision, CompanyAndCacheChangeNothing) {
  const Lines lines{"The cat sat on the mat.", "A dog ran over the hill and far away.", "", "Nobody knows.",
                    "One, two, three, four, five, six, seven."};
  for (const bool sample : {false, true}) {
    TranslateOptions options = short_options();
    options.sample = sample;
    const auto whole = translator_->translate(lines, options);
    options.cache_precision = CachePrecision::bfloat16;
    const auto want = translator_->translate(lines, options);
    EXPECT_FALSE(tests::same_bits(scores_of(want), scores_of(whole)));
    options.cache = false;
    expect_same(translator_->translate(lines, options), want);
    for (const int batch : {1, 3}) {
      options.search.batch = batch;
      options.threads = options.workers = 2;
      for (const bool cache : {false, true}) {
        options.cache = cache;
        expect_same(translator_->translate(lines, options), want);
      }
    }
  }
}

}  // namespace
}  // namespace gloss::decode
