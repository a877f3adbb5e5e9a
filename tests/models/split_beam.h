// Decoder states under a beam that splits and merges: hypotheses whose parents are drawn at random.
#pragma once

#include <gtest/gtest.h>

#include <vector>

#include "gloss/base/random.h"
#include "gloss/models/model.h"

namespace gloss::models {

// Two sentences, the second from step 12 on, so that they stand at different positions; up to three
// hypotheses of the first go on from any of those before. With the cache and without it the outputs of each
// step are the same to `tolerance`. Tokens are from 1 to `tokens`.
inline void expect_cache_changes_nothing(const Model& model, Context& context, const Tokens& source,
                                         int32_t tokens, float tolerance,
                                         CachePrecision precision = CachePrecision::float32) {
  const auto cached = model.decoder_state(context, Caching::on, precision),
             whole = model.decoder_state(context, Caching::off, precision);
  const std::vector<int> slots{0, 1};
  cached->add(slots, source);
  whole->add(slots, source);
  const RandomKey key(7);
  uint64_t draws = 0;
  const auto below = [&](int n) {
    return static_cast<int32_t>(key.below(draws++, static_cast<uint64_t>(n)));
  };
  int rows_before = 1;
  for (int step = 0; step < 30; ++step) {
    std::vector<Step> steps;
    const int rows = step == 0 ? 1 : 1 + below(3);
    for (int r = 0; r < rows; ++r)
      steps.push_back({0, step == 0 ? 0 : below(rows_before), 1 + below(tokens)});
    if (step >= 12) steps.push_back({1, 0, 1 + below(tokens)});
    rows_before = rows;
    const Tensor<float> a = cached->advance(steps), b = whole->advance(steps);
    ASSERT_EQ(a.size(), b.size());
    for (int64_t i = 0; i < a.size(); ++i)
      ASSERT_NEAR(a.data()[i], b.data()[i], tolerance) << "step " << step;
  }
}

}  // namespace gloss::models
