// Tables of options on the command line (apps/gloss/option_table.h).
#include "option_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "support/sample_options.h"

namespace gloss {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using tests::Colour;
using tests::Sample;

Typed<Sample> parse(std::vector<std::string> arguments) {
  Typed<Sample> options;
  CLI::App app;
  cli::add_options(app, options);
  std::reverse(arguments.begin(), arguments.end());  // as CLI11 wants them
  app.parse(arguments);
  return options;
}

TEST(OptionTable, FillsOptionsFromTheCommandLine) {
  const Typed<Sample> options = parse({"--batch-tokens", "100", "--alpha", "-1", "--quiet", "--no-cache",
                                       "--train", "a", "b", "--colour=red", "--layers", "3"});
  EXPECT_EQ(options.value.batch_tokens, 100);
  EXPECT_EQ(options.value.alpha, -1);
  EXPECT_TRUE(options.value.quiet);
  EXPECT_FALSE(options.value.cache);
  EXPECT_THAT(options.value.train, ElementsAre("a", "b"));
  EXPECT_EQ(options.value.colour, Colour::red);
  EXPECT_EQ(options.value.inner.layers, 3);
  EXPECT_THAT(options.typed,
              ElementsAre("alpha", "batch-tokens", "cache", "colour", "layers", "quiet", "train"));
  EXPECT_TRUE(parse({}).typed.empty());
  EXPECT_TRUE(parse({"--cache"}).has("cache"));
  EXPECT_FALSE(parse({"--no-quiet"}).value.quiet);
  EXPECT_TRUE(parse({"--no-quiet"}).has("quiet"));
}

TEST(OptionTable, RefusesWhatAFieldDoesNotAllow) {
  try {
    parse({"--dropout", "x"});
    ADD_FAILURE() << "a UsageError was expected";
  } catch (const UsageError& error) {
    EXPECT_STREQ(error.what(), "--dropout must be a number from 0 to below 1, not 'x'");
  }
  EXPECT_THROW(parse({"--train", "a"}), CLI::ParseError);
  EXPECT_THROW(parse({"--dropout"}), CLI::ParseError);
  EXPECT_THROW(parse({"--nonsense"}), CLI::ParseError);
  EXPECT_THROW(parse({"--quiet", "--no-quiet"}), CLI::ParseError);
}

TEST(OptionTable, ShowsDefaultsInTheHelp) {
  Typed<Sample> options;
  CLI::App app;
  cli::add_options(app, options);
  const std::string help = app.help();
  EXPECT_THAT(help, HasSubstr("--batch-tokens N"));
  EXPECT_THAT(help, HasSubstr("4096"));
  EXPECT_THAT(help, HasSubstr("Batches:"));
  EXPECT_THAT(help, HasSubstr("tiny|small|base"));
  EXPECT_THAT(help, HasSubstr("--no-cache"));
  EXPECT_THAT(help, Not(HasSubstr("--no-quiet")));
  EXPECT_THAT(help, HasSubstr("--train SRC TGT"));
}

}  // namespace
}  // namespace gloss
