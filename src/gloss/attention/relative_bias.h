// Relative positions as in T5 (Raffel et al. 2020, 2.1): a learned number for each head and bucket of
// distances, added to the scaled scores of self-attention. The layers of a stack share it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gloss/attention/mask.h"
#include "gloss/attention/scaled_dot_product.h"
#include "gloss/autograd/tape.h"

namespace gloss::attention {

// How distances fall into buckets.
struct RelativeBuckets {
  int64_t count = 32;
  int64_t max_distance = 128;  // from here on they share the last bucket
  bool operator==(const RelativeBuckets&) const = default;
};

// T5's bucket of a distance, key position - query position. Causal::no: half of the buckets for keys behind
// the query, half for the others. Causal::yes: all of them for keys before it, those behind share bucket 0.
// The first half of a side's buckets hold one distance each, the others grow with its logarithm.
int64_t relative_position_bucket(int64_t distance, Causal causal, const RelativeBuckets& buckets);

// Throws Error unless every side has buckets for one distance and for many, and max_distance is among these.
void validate(const RelativeBuckets& buckets);

template <class T>
class RelativeBias {
 public:
  // Declares <prefix>relative_attention_bias.weight [buckets, heads], which starts as N(0, 1 / d_model).
  RelativeBias(autograd::ParameterSet<T>& parameters, const std::string& prefix, int64_t heads,
               int64_t d_model, Causal causal, const RelativeBuckets& buckets);

  // Spread out for keys from `before` places before the query to `behind` places behind it.
  DistanceBias<T> operator()(autograd::Tape<T>& tape, int64_t before, int64_t behind) const;
  // For sequences of up to `longest` tokens that attend to themselves.
  DistanceBias<T> operator()(autograd::Tape<T>& tape, int64_t longest) const;

 private:
  int64_t bucket(int64_t distance) const;

  const autograd::Parameter<T>* weight_;
  std::vector<int32_t> before_, behind_;  // the bucket of each distance up to max_distance, without its sign
};

}  // namespace gloss::attention
