// What holds of translating in float32 holds in every precision: no company, no threads, no instruction set,
// and hardly the absence of a cache, changes an answer.
#include <gtest/gtest.h>

#include <algorithm>

#include "gloss/base/error.h"
#include "gloss/kernels/precision.h"
#include "golden_translator.h"
#include "support/isas.h"

namespace gloss::decode {
namespace {

using kernels::Precision;

class GoldenPrecision : public GoldenTranslator, public ::testing::WithParamInterface<Precision> {
 protected:
  void SetUp() override {
    GoldenTranslator::SetUp();
    if (IsSkipped()) return;
    if (!kernels::precision_served(GetParam())) GTEST_SKIP() << "this CPU does not serve it";
    rounded_.emplace(kGolden, GetParam());
  }
  std::optional<Translator> rounded_;
};

TEST_P(GoldenPrecision, CompanyThreadsAndWorkersChangeNothing) {
  lines_.resize(100);
  expect_no_company(*rounded_);
}

TEST_P(GoldenPrecision, SaysNearlyWhatFloat32Says) {
  const auto want = translator_->translate(lines_), got = rounded_->translate(lines_);
  EXPECT_FALSE(tests::same_bits(scores_of(got), scores_of(want)));  // it does round
  int64_t equal = 0;
  double distance = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    equal += got[i].text() == want[i].text();
    distance +=
        std::abs(got[i].candidates[0].score - want[i].candidates[0].score) / static_cast<double>(got.size());
  }
  EXPECT_GE(equal, std::ssize(lines_) * 6 / 10);
  EXPECT_LE(distance, 0.02);
}

// A rounding falls the other way where sums of attention differ in their last bits.
TEST_P(GoldenPrecision, TheCacheChangesHardlyAScore) {
  lines_.resize(40);
  TranslateOptions options;
  const auto cached = rounded_->translate(lines_, options);
  options.cache = false;
  const auto uncached = rounded_->translate(lines_, options);
  int64_t equal = 0;
  for (size_t i = 0; i < cached.size(); ++i) {
    equal += uncached[i].text() == cached[i].text();
    EXPECT_NEAR(uncached[i].candidates[0].score, cached[i].candidates[0].score, 0.01);
  }
  EXPECT_GE(equal, std::ssize(lines_) - 1);
}

TEST_P(GoldenPrecision, WideInstructionSetsGiveTheSameBits) {
  lines_.resize(40);
  const auto want = rounded_->translate(lines_);
  tests::on_every_isa([&](kernels::Isa isa) {
    if (!kernels::precision_served(GetParam())) {
      EXPECT_THROW(Translator(kGolden, GetParam()), UsageError);
      return;
    }
    const auto got = Translator(kGolden, GetParam()).translate(lines_);
    if (isa >= kernels::Isa::avx2) return expect_same(got, want);
    int64_t equal = 0;
    for (size_t i = 0; i < got.size(); ++i) equal += got[i].text() == want[i].text();
    EXPECT_GE(equal, std::ssize(lines_) - 2);
  });
}

TEST_P(GoldenPrecision, NeedsNoVnni) {
  lines_.resize(40);
  const auto want = rounded_->translate(lines_);
  kernels::allow_vnni(false);
  const Translator without(kGolden, GetParam());
  kernels::allow_vnni(true);
  expect_same(without.translate(lines_), want);
}

INSTANTIATE_TEST_SUITE_P(Rounded, GoldenPrecision, ::testing::Values(Precision::bfloat16, Precision::int8),
                         [](const auto& one) { return std::string(kernels::precision_name(one.param)); });

}  // namespace
}  // namespace gloss::decode
