// Drawing tokens from a row of logits.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "gloss/base/random.h"
#include "gloss/decode/options.h"

namespace gloss::decode {

// The key of a sentence's random numbers: the seed and the source's ids, never its place in a batch.
RandomKey sampling_key(uint64_t seed, std::span<const int32_t> source);

// The distribution that `options` make of one row of logits [V]; -infinity marks what may not be drawn. The
// row must hold no NaN and outlive this object.
class TokenDistribution {
 public:
  // `scratch` [V] is written where the temperature is not 1.
  TokenDistribution(std::span<const float> row, const Sampling& options, std::span<float> scratch);

  bool empty() const { return kept_ <= 0; }  // nothing may be drawn
  // The token where the cumulated probability, the likeliest token first, passes u in [0, 1).
  int32_t draw(double u);

 private:
  struct Entry {
    int32_t token;
    double cumulated;  // mass of this token and all likelier ones, the likeliest weighing 1
  };
  bool reach(size_t rank);  // ranks tokens down to `rank`; false where the row ends or mass is 0
  void extend();

  std::span<const float> row_;  // [V], divided by the temperature
  int64_t limit_;               // tokens that may be ranked
  double highest_ = 0;          // the likeliest token's logit
  double kept_ = 0;             // mass that draws share
  std::vector<Entry> ranked_;   // grows as draws and top_p ask for more
};

}  // namespace gloss::decode
