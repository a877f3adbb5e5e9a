// Every claim of the laboratory holds, and fails where what it rests on is taken away.
#include "gloss/lab/experiments.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace gloss::lab {
namespace {

template <class Experiment>
void expect_proof(const typename Experiment::Options& options) {
  const Report kept = Experiment::run(options, Ingredient::kept);
  EXPECT_FALSE(kept.claims.empty());
  EXPECT_TRUE(kept.holds()) << kept.text();
  const Report removed = Experiment::run(options, Ingredient::removed);
  EXPECT_FALSE(removed.holds()) << "without " << Experiment::kRemoves << "\n" << removed.text();
}

TEST(Lab, EveryExperimentHoldsAndFailsWithoutItsIngredient) {
  for_each_experiment([]<class Experiment>() {
    SCOPED_TRACE(Experiment::kName);
    typename Experiment::Options options;
    expect_proof<Experiment>(options);
    if constexpr (requires { options.seed; }) {
      options.seed = 20261130;  // no claim hangs on one seed
      expect_proof<Experiment>(options);
    }
  });
}

TEST(Lab, ReportsAreTheSameTwice) {
  for_each_experiment([]<class Experiment>() {
    if constexpr (requires { Experiment::kTimed; }) return;  // shows times
    const auto text = [] { return Experiment::run({}, Ingredient::kept).text(); };
    EXPECT_EQ(text(), text()) << Experiment::kName;
  });
}

TEST(Lab, FiguresAreDrawn) {
  if (!inspect::pictures_available()) GTEST_SKIP() << "this build draws no pictures";
  for_each_experiment([]<class Experiment>() {
    const Report report = Experiment::run({}, Ingredient::kept);
    ASSERT_TRUE(report.figure) << Experiment::kName;
    for (const inspect::Theme theme : {inspect::Theme::light, inspect::Theme::dark})
      EXPECT_GT(report.figure(inspect::PictureFormat::svg, theme).bytes.size(), 500u) << Experiment::kName;
  });
}

TEST(Lab, TablesKeepTheirColumnsInStep) {
  const Table table{"of signs", {"√d", "x"}, {{"1", "22.5"}, {"–10", "1"}}};
  EXPECT_EQ(table.text(), "of signs\n  √d       x\n  1     22.5\n  –10      1\n");
}

// Each experiment has its page, which names its function and shows its figure.
TEST(Lab, EveryExperimentHasAPage) {
  for_each_experiment([]<class Experiment>() {
    const std::filesystem::path page = std::filesystem::path(GLOSS_TEST_GOLDEN) / "../../docs/attention" /
                                       (std::string(Experiment::kName) + ".md");
    std::ifstream in(page);
    ASSERT_TRUE(in) << page;
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    EXPECT_THAT(text, ::testing::HasSubstr("](" + std::string(Experiment::kName) + ".svg)")) << page;
    EXPECT_THAT(text, ::testing::HasSubstr("In the library")) << page;
    EXPECT_THAT(text, ::testing::HasSubstr("gloss lab " + std::string(Experiment::kName))) << page;
  });
}

}  // namespace
}  // namespace gloss::lab
