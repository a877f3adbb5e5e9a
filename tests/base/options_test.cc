#include "gloss/base/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "support/sample_options.h"

namespace gloss {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using tests::Colour;
using tests::Sample;

std::string refusal(const std::function<void()>& run) {
  try {
    run();
  } catch (const UsageError& error) {
    return error.what();
  }
  ADD_FAILURE() << "a UsageError was expected";
  return {};
}

TEST(Options, AreSetFromTextAndRemembered) {
  Typed<Sample> options;
  options.set("batch-tokens", "8192");
  options.set("dropout", "0.25");
  options.set("alpha", "-1.5");
  options.set("quiet", "true");
  options.set("preset", "base");
  options.set("note", "");
  options.set("colour", "red");
  options.set_values("train", {"a", "b"});
  options.set("seed", "9223372036854775807");
  options.set("layers", "6");
  EXPECT_EQ(options.value.batch_tokens, 8192);
  EXPECT_EQ(options.value.dropout, 0.25);
  EXPECT_EQ(options.value.alpha, -1.5);
  EXPECT_TRUE(options.value.quiet);
  EXPECT_EQ(options.value.preset, "base");
  EXPECT_EQ(options.value.colour, Colour::red);
  EXPECT_THAT(options.value.train, ElementsAre("a", "b"));
  EXPECT_EQ(options.value.seed, 9223372036854775807u);
  EXPECT_EQ(options.value.inner.layers, 6);
  EXPECT_TRUE(options.has("note"));
  EXPECT_TRUE(options.has(options.value.colour));
  EXPECT_FALSE(options.has("cache"));
  EXPECT_FALSE(options.has(options.value.small));
}

TEST(Options, RefuseWithTheRangeAndWhatCame) {
  Typed<Sample> options;
  const auto set = [&](const char* name, const std::string& text) {
    return refusal([&] { options.set(name, text, "--"); });
  };
  EXPECT_EQ(set("batch-tokens", "x"), "--batch-tokens must be a whole number from 1 to 1000000000, not 'x'");
  EXPECT_EQ(set("batch-tokens", "0"), "--batch-tokens must be a whole number from 1 to 1000000000, not '0'");
  EXPECT_THAT(set("batch-tokens", "1e3"), HasSubstr("not '1e3'"));
  EXPECT_THAT(set("batch-tokens", " 1"), HasSubstr("not ' 1'"));
  EXPECT_THAT(set("batch-tokens", ""), HasSubstr("not ''"));
  EXPECT_THAT(set("batch-tokens", "99999999999999999999"), HasSubstr("not '99999999999999999999'"));
  EXPECT_EQ(set("dropout", "1"), "--dropout must be a number from 0 to below 1, not '1'");
  EXPECT_EQ(set("dropout", "nan"), "--dropout must be a number from 0 to below 1, not 'nan'");
  EXPECT_EQ(set("alpha", "inf"), "--alpha must be a number, not 'inf'");
  EXPECT_EQ(set("quiet", "yes"), "--quiet must be true or false, not 'yes'");
  EXPECT_EQ(set("preset", "huge"), "--preset must be tiny, small or base, not 'huge'");
  EXPECT_EQ(set("colour", "blue"), "--colour must be red or green, not 'blue'");
  EXPECT_EQ(set("seed", "-1"), "--seed must be a whole number of at least 0, not '-1'");
  EXPECT_EQ(set("seed", "18446744073709551616"),
            "--seed must be a whole number from 0 to 9223372036854775807, not '18446744073709551616'");
  EXPECT_EQ(set("small", "128"), "--small must be a whole number from -128 to 127, not '128'");
  EXPECT_EQ(set("layers", "0"), "--layers must be a whole number of at least 1, not '0'");
  EXPECT_EQ(set("train", "a"), "--train takes 2 values, not 1");
  EXPECT_EQ(set("nonsense", "a"), "there is no option --nonsense");
  EXPECT_LT(set("alpha", std::string(10'000, 'x')).size(), 200u);
  EXPECT_TRUE(options.typed.empty());
  EXPECT_EQ(options.value.batch_tokens, 4096);
}

TEST(Options, MadeByAProgramAreChecked) {
  Sample sample;
  check_options(sample);
  sample.inner.layers = 0;
  EXPECT_EQ(refusal([&] { check_options(sample); }), "layers must be a whole number of at least 1, not '0'");
  sample.inner.layers = 1;
  sample.colour = static_cast<Colour>(9);
  EXPECT_EQ(refusal([&] { check_options(sample); }), "colour must be red or green, not number 9");
  sample.colour = Colour::red;
  sample.train = {"one"};
  EXPECT_EQ(refusal([&] { check_options(sample); }), "train takes 2 values, not 1");
}

TEST(Options, TypedOnesSurvivePresetsFilesAndResumedRuns) {
  Typed<Sample> options;
  options.set("dropout", "0.3");
  options.set("layers", "2");
  Sample preset;
  preset.dropout = 0.5;
  preset.inner.layers = 6;
  preset.batch_tokens = 100;
  preset.train = {"x", "y"};
  options.fill_from(preset);
  EXPECT_EQ(options.value.dropout, 0.3);
  EXPECT_EQ(options.value.inner.layers, 2);
  EXPECT_EQ(options.value.batch_tokens, 100);
  EXPECT_THAT(options.value.train, ElementsAre("x", "y"));

  options.suggest(options.value.dropout, 0.9);
  options.suggest(options.value.batch_tokens, 7);
  EXPECT_EQ(options.value.dropout, 0.3);
  EXPECT_EQ(options.value.batch_tokens, 7);
  EXPECT_FALSE(options.has("batch-tokens"));
  double foreign = 0;
  EXPECT_THROW(options.suggest(foreign, 1.0), Error);

  Typed<Sample> file;
  file.set("dropout", "0.7");
  file.set("colour", "red");
  options.merge_weaker(file);
  EXPECT_EQ(options.value.dropout, 0.3);
  EXPECT_EQ(options.value.colour, Colour::red);
  EXPECT_TRUE(options.has("colour"));
  options.fill_from(Sample());
  EXPECT_EQ(options.value.colour, Colour::red);
}

}  // namespace
}  // namespace gloss
