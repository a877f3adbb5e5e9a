#include "gloss/attention/relative_bias.h"

#include <algorithm>
#include <cmath>

namespace gloss::attention {

using autograd::Init;
using autograd::ParameterSet;
using autograd::Slot;
using autograd::Tape;
using autograd::Var;

namespace {
constexpr int64_t kMost = 1 << 16;  // buckets, or distances that have one
}

int64_t relative_position_bucket(int64_t distance, Causal causal, const RelativeBuckets& buckets) {
  int64_t count = buckets.count, first = 0;
  if (causal == Causal::no) {
    count /= 2;
    if (distance > 0) first = count;
    distance = std::abs(distance);
  } else {
    distance = std::max<int64_t>(-distance, 0);
  }
  const int64_t exact = count / 2;
  if (distance < exact) return first + distance;
  if (distance >= buckets.max_distance) return first + count - 1;
  // In single precision, as T5: it decides which side of a border a distance falls on.
  const float logarithm = std::log(static_cast<float>(distance) / static_cast<float>(exact)),
              widest = static_cast<float>(
                  std::log(static_cast<double>(buckets.max_distance) / static_cast<double>(exact)));
  const auto large = static_cast<int64_t>(logarithm / widest * static_cast<float>(count - exact));
  return first + std::min(exact + large, count - 1);
}

void validate(const RelativeBuckets& buckets) {
  require(buckets.count >= 4 && buckets.count <= kMost && buckets.count % 2 == 0,
          "the buckets of relative positions must be an even number from 4 to {}, not {}", kMost,
          buckets.count);
  require(
      buckets.max_distance > buckets.count / 2 && buckets.max_distance <= kMost,
      "the largest distance of relative positions must be above half their {} buckets and at most {}, not {}",
      buckets.count, kMost, buckets.max_distance);
}

template <class T>
RelativeBias<T>::RelativeBias(ParameterSet<T>& parameters, const std::string& prefix, int64_t heads,
                              int64_t d_model, Causal causal, const RelativeBuckets& buckets) {
  validate(buckets);
  require(heads > 0 && d_model > 0, "relative positions need heads and d_model above 0, not {} and {}", heads,
          d_model);
  autograd::Parameter<T>& weight =
      parameters.matrix(prefix + "relative_attention_bias.weight", buckets.count, heads,
                        Init::normal(1 / std::sqrt(static_cast<double>(d_model))));
  weight.multiplies = false;
  weight_ = &weight;
  for (int64_t d = 0; d <= buckets.max_distance; ++d) {
    before_.push_back(static_cast<int32_t>(relative_position_bucket(-d, causal, buckets)));
    behind_.push_back(static_cast<int32_t>(relative_position_bucket(d, causal, buckets)));
  }
}

template <class T>
int64_t RelativeBias<T>::bucket(int64_t distance) const {
  const std::vector<int32_t>& side = distance > 0 ? behind_ : before_;
  return side[std::min(static_cast<size_t>(std::abs(distance)), side.size() - 1)];
}

template <class T>
DistanceBias<T> RelativeBias<T>::operator()(Tape<T>& tape, int64_t before, int64_t behind) const {
  before = std::max<int64_t>(before, 0);
  const int64_t distances = before + std::max<int64_t>(behind, 0) + 1;
  std::vector<int32_t> bucket_of;
  bucket_of.reserve(static_cast<size_t>(distances));
  for (int64_t d = 0; d < distances; ++d) bucket_of.push_back(static_cast<int32_t>(bucket(d - before)));
  const Var<T> table = tape.use(*weight_);
  const int64_t heads = table.cols();
  const Tensor<T> spread = tape.allocate({heads, distances});
  for (int64_t h = 0; h < heads; ++h) {
    for (int64_t d = 0; d < distances; ++d)
      spread(h, d) = table.value()(bucket_of[static_cast<size_t>(d)], h);
  }
  const Var<T> by_distance = tape.record(spread, {&table}, [&] {
    return [table = table.place(), bucket_of](Tape<T>& t, const Tensor<T>& dspread) {
      const Slot<T> dtable = t.slot(table);
      if (dtable.accumulate == kernels::Accumulate::no) dtable.tensor.fill(0);
      for (int64_t h = 0; h < dspread.rows(); ++h) {
        for (int64_t d = 0; d < dspread.cols(); ++d)
          dtable.tensor(bucket_of[static_cast<size_t>(d)], h) += dspread(h, d);
      }
    };
  });
  return {by_distance, before, 0};
}

template <class T>
DistanceBias<T> RelativeBias<T>::operator()(Tape<T>& tape, int64_t longest) const {
  return (*this)(tape, longest - 1, longest - 1);
}

template class RelativeBias<float>;
template class RelativeBias<double>;

}  // namespace gloss::attention
