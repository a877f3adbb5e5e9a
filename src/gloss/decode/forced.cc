#include "gloss/decode/forced.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "gloss/base/error.h"
#include "gloss/decode/hypothesis.h"
#include "gloss/kernels/top_k.h"

namespace gloss::decode {
namespace {

void check(const Tokens& sources, const Tokens& targets, int64_t vocabulary, int batch) {
  require(batch >= 1, "batch is {}: it must be at least 1", batch);
  require(sources.offsets.count() == targets.offsets.count(),
          "{} sources and {} translations: there must be one translation for each source",
          sources.offsets.count(), targets.offsets.count());
  for (int64_t i = 0; i < sources.offsets.count(); ++i) {
    require(sources.offsets.length(i) > 0,
            "sentence {} (counting from 0) is empty: a blank line must not reach the model", i);
    for (int64_t t = targets.offsets.begin(i); t < targets.offsets.end(i); ++t) {
      const int32_t token = targets.rows[static_cast<size_t>(t)];
      require(token >= 0 && token < vocabulary,
              "sentence {} (counting from 0): target token {} is not in the vocabulary of {} tokens", i,
              token, vocabulary);
    }
  }
}

// Scores the targets of sentences [first, first + slots.size()), all begun together; sentences leave the
// state as their targets end, or all at once where something throws.
class Group {
 public:
  Group(models::DecoderState& state, const Tokens& sources, const Tokens& targets, int64_t first, int64_t end)
      : state_(state), targets_(targets), first_(first) {
    std::vector<int> slots;
    std::vector<int64_t> lengths;
    for (int64_t i = first; i < end; ++i) {
      if (targets.offsets.length(i) == 0) continue;
      slots.push_back(static_cast<int>(i - first));
      lengths.push_back(sources.offsets.length(i));
      const auto begin = sources.rows.begin() + sources.offsets.begin(i);
      sources_.rows.insert(sources_.rows.end(), begin, begin + lengths.back());
    }
    if (slots.empty()) return;
    sources_.offsets = Offsets::of_lengths(lengths);
    state_.add(slots, sources_);
    live_ = std::move(slots);
  }
  ~Group() {
    for (const int slot : live_) {
      try {
        state_.remove(slot);
      } catch (...) {  // the state is broken already; there is nobody to tell
      }
    }
  }
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  void score(std::vector<float>& result) {
    std::vector<models::Step> steps;
    for (int64_t t = 0; !live_.empty(); ++t) {
      steps.clear();
      for (const int slot : live_) steps.push_back({slot, 0, t ? target(slot, t - 1) : state_.start_token()});
      const Tensor<float> logits = state_.logits(state_.advance(steps));
      require(
          logits.rows() == static_cast<int64_t>(steps.size()) && logits.cols() == state_.vocabulary_size(),
          "the model gave logits of shape {} for {} hypotheses and {} tokens", logits.shape().text(),
          steps.size(), state_.vocabulary_size());
      for (size_t row = 0; row < live_.size(); ++row) {
        const std::span<const float> of_row(logits.row(static_cast<int64_t>(row)),
                                            static_cast<size_t>(logits.cols()));
        const float normaliser = kernels::log_sum_exp(of_row);
        if (std::isnan(normaliser)) throw NoNumber::of_sentence(first_ + live_[row], t);
        const double log_p = static_cast<double>(of_row[static_cast<size_t>(target(live_[row], t))]) -
                             static_cast<double>(normaliser);
        result[static_cast<size_t>(targets_.offsets.begin(first_ + live_[row]) + t)] =
            static_cast<float>(std::min(0.0, log_p));
      }
      remove_ended(t + 1);
    }
  }

 private:
  int32_t target(int slot, int64_t t) const {
    return targets_.rows[static_cast<size_t>(targets_.offsets.begin(first_ + slot) + t)];
  }
  void remove_ended(int64_t length) {
    for (size_t i = 0; i < live_.size();) {
      if (targets_.offsets.length(first_ + live_[i]) > length) {
        ++i;
        continue;
      }
      const int slot = live_[i];
      live_.erase(live_.begin() + static_cast<std::ptrdiff_t>(i));
      state_.remove(slot);
    }
  }

  models::DecoderState& state_;
  const Tokens& targets_;
  int64_t first_;
  Tokens sources_;
  std::vector<int> live_;  // slots whose targets go on
};

}  // namespace

Ragged<std::vector<float>> forced_log_probabilities(models::DecoderState& state, const Tokens& sources,
                                                    const Tokens& targets, int batch) {
  check(sources, targets, state.vocabulary_size(), batch);
  Ragged<std::vector<float>> result{std::vector<float>(targets.rows.size()), targets.offsets};
  const int64_t count = sources.offsets.count();
  for (int64_t first = 0; first < count; first += batch) {
    Group(state, sources, targets, first, std::min(count, first + batch)).score(result.rows);
  }
  return result;
}

}  // namespace gloss::decode
