// Beam search equals transformers' with early_stopping="never" and, with patience 1, True:
// golden/beam_transformers.json, written by transformers_golden.py.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "decode/toy_scorer.h"
#include "gloss/decode/search.h"

namespace gloss::decode {
namespace {

TEST(Beam, EqualsTransformers) {
  std::ifstream file(GLOSS_TEST_GOLDEN "/beam_transformers.json");
  const nlohmann::json golden = nlohmann::json::parse(file);
  ASSERT_EQ(golden["cases"].size(), 300u);
  for (const auto& one : golden["cases"]) {
    SCOPED_TRACE(one.dump());
    ToyState state({.seed = one["seed"], .vocabulary = one["vocabulary"], .end_bonus = one["end_bonus"]});
    state.forbidden = {kStart};
    SearchOptions options;
    options.beam = one["beam"];
    options.n_best = one["n_best"];
    options.patience = one["early_stopping"] == "never" ? 0 : 1;
    options.length_penalty = one["length_penalty"];
    options.max_length = one["max_length"];
    options.min_length = one["min_length"];
    options.no_repeat_ngram = one["no_repeat_ngram"];
    options.at_cap = one["force_end"] ? AtCap::force_end : AtCap::leave_open;
    Context context(1);
    const auto found = search(context, state, tokens_of({one["source"]}), options).at(0);
    const auto& expected = one["expected"];
    ASSERT_EQ(found.size(), expected.size());
    for (size_t i = 0; i < found.size(); ++i) {
      EXPECT_EQ(found[i].tokens, expected[i]["tokens"].get<Sentence>()) << "hypothesis " << i;
      const auto score = expected[i]["score"].get<float>();
      EXPECT_NEAR(found[i].score, score, 1e-5 * std::max(1.0f, std::abs(score))) << "hypothesis " << i;
    }
  }
}

}  // namespace
}  // namespace gloss::decode
