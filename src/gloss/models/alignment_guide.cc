#include "gloss/models/alignment_guide.h"

#include <algorithm>
#include <utility>

#include "gloss/attention/guided.h"

namespace gloss::models {
namespace {

struct Wanted {
  std::vector<attention::GuidedWeight> weights;
  int64_t tokens = 0;  // whose rows they are in
};

// Where the weights of the guided rows stand in the ragged tensor [sequence][head, n_q, n_k].
Wanted wanted_weights(const AlignmentGuide& guide, std::span<const int64_t> offsets, const Offsets& source,
                      const Offsets& target, AlignmentStep step) {
  Wanted wanted;
  wanted.weights.reserve(guide.links.size());
  int64_t sequence = 0;
  for (size_t begin = 0, end = 0; begin < guide.links.size(); begin = end) {
    const int64_t token = guide.links[begin].target;
    while (end < guide.links.size() && guide.links[end].target == token) ++end;
    require(token >= 0 && token < target.total() && (begin == 0 || guide.links[begin - 1].target < token),
            "links of a batch of {} target tokens must name them in ascending order, not {}", target.total(),
            token);
    while (target.end(sequence) <= token) ++sequence;
    const int64_t row = row_of(token - target.begin(sequence), step);
    if (row >= target.length(sequence)) continue;
    const int64_t n_q = target.length(sequence), n_k = source.length(sequence),
                  first = offsets[static_cast<size_t>(sequence)] + (guide.head.head * n_q + row) * n_k;
    ++wanted.tokens;
    for (size_t i = begin; i < end; ++i) {
      const int64_t key = guide.links[i].source - source.begin(sequence);
      require(key >= 0 && key < n_k, "a link leaves its sentence: source token {} of target token {}",
              guide.links[i].source, token);
      wanted.weights.push_back({first + key, 1.0 / static_cast<double>(end - begin)});
    }
  }
  return wanted;
}

}  // namespace

template <class T>
TrainingLoss<T> guided(autograd::Tape<T>& tape, const nn::Loss<T>& translation,
                       const AttentionRecord<T>& record, int64_t heads, const Tokens& source,
                       const Tokens& target, const Objective& objective, AlignmentStep step) {
  const AlignmentGuide& guide = *objective.guide;
  const auto layer = std::ranges::find(record.entries, guide.head.layer, &AttentionRecord<T>::Entry::layer);
  require(layer != record.entries.end(), "there is no layer {} of cross-attention to guide",
          guide.head.layer);
  require(guide.head.head >= 0 && guide.head.head < heads, "there is no head {} to guide: a layer has {}",
          guide.head.head, heads);
  const attention::Attended<T>& attended = layer->attended;
  Wanted wanted = wanted_weights(guide, attended.offsets, source.offsets, target.offsets, step);
  const auto result = attention::guided_cross_entropy(
      tape, translation.sum, attended.weights, std::move(wanted.weights), guide.weight * objective.scale);
  TrainingLoss<T> loss{translation, result.cross_entropy, wanted.tokens};
  loss.sum = result.loss;
  return loss;
}

template TrainingLoss<float> guided(autograd::Tape<float>&, const nn::Loss<float>&,
                                    const AttentionRecord<float>&, int64_t, const Tokens&, const Tokens&,
                                    const Objective&, AlignmentStep);
template TrainingLoss<double> guided(autograd::Tape<double>&, const nn::Loss<double>&,
                                     const AttentionRecord<double>&, int64_t, const Tokens&, const Tokens&,
                                     const Objective&, AlignmentStep);

}  // namespace gloss::models
