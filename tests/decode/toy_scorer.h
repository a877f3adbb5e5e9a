// Models small enough to reason about: logits are a function of the source and the prefix.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <span>
#include <vector>

#include "gloss/base/error.h"
#include "gloss/base/random.h"
#include "gloss/models/decoder_state.h"
#include "gloss/tensor/arena.h"

namespace gloss::decode {

inline constexpr int32_t kEnd = 0;
inline constexpr int32_t kStart = 1;  // can also be produced, unless forbidden

using Sentence = std::vector<int32_t>;

// Logits are whole numbers in [0, levels) times 8 / levels: few levels make many ties, and with a power of
// two every language computes the same floats.
struct ToyScorer {
  uint64_t seed = 1;
  int64_t vocabulary = 5;
  uint64_t levels = 1 << 16;
  float end_bonus = 0;
  int memory = 1000;  // tokens of the prefix that count; 0: the same row at every step
  bool sees_source = true;

  std::vector<float> logits(std::span<const int32_t> source, std::span<const int32_t> prefix) const {
    RandomKey key(seed);
    if (sees_source) {
      for (const int32_t token : source) key = key.with(static_cast<uint64_t>(token));
    }
    if (prefix.size() > static_cast<size_t>(memory)) prefix = prefix.last(static_cast<size_t>(memory));
    key = key.with(prefix.size());
    for (const int32_t token : prefix) key = key.with(static_cast<uint64_t>(token));
    std::vector<float> row(static_cast<size_t>(vocabulary));
    for (size_t v = 0; v < row.size(); ++v) {
      row[v] = static_cast<float>(key.bits(v) % levels) * (8.0f / static_cast<float>(levels));
    }
    row[kEnd] += end_bonus;
    return row;
  }
};

// Keeps whole prefixes, and fails the test where search breaks the contract of DecoderState.
class ToyState : public models::DecoderState {
 public:
  explicit ToyState(ToyScorer scorer) : scorer_(scorer) {}

  int64_t vocabulary_size() const override { return scorer_.vocabulary; }
  int32_t start_token() const override { return kStart; }
  int32_t end_token() const override { return kEnd; }
  std::span<const int32_t> forbidden_tokens() const override { return forbidden; }

  void add(std::span<const int> slots, const Tokens& sources) override {
    spoil();
    require(static_cast<int64_t>(slots.size()) == sources.offsets.count() && !slots.empty(),
            "slots, sources");
    for (size_t i = 0; i < slots.size(); ++i) {
      const auto begin = sources.rows.begin() + sources.offsets.begin(static_cast<int64_t>(i));
      const auto end = sources.rows.begin() + sources.offsets.end(static_cast<int64_t>(i));
      require(begin != end, "an empty source reached the model");
      require(slots_.emplace(slots[i], Slot{{begin, end}, {}}).second, "slot {} is taken", slots[i]);
    }
    most_sentences = std::max(most_sentences, slots_.size());
  }

  void remove(int slot) override {
    spoil();
    require(slots_.erase(slot) == 1, "slot {} is free already", slot);
  }

  Tensor<float> advance(std::span<const models::Step> steps) override {
    spoil();
    ++advances;
    rows += steps.size();
    states_ = Tensor<float>(arena_, {static_cast<int64_t>(steps.size()), scorer_.vocabulary});
    std::set<int> seen;
    for (size_t begin = 0, end = 0; begin < steps.size(); begin = end) {
      const int slot = steps[begin].slot;
      while (end < steps.size() && steps[end].slot == slot) ++end;
      require(seen.insert(slot).second, "the rows of slot {} do not stand together", slot);
      extend(slots_.at(slot), steps.subspan(begin, end - begin), static_cast<int64_t>(begin));
    }
    return states_;
  }

  // The states of a toy are its logits.
  Tensor<float> logits(const Tensor<float>& states) override {
    spoil(logits_);
    logits_ = Tensor<float>::from(arena_, states.shape(), states.values());
    return logits_;
  }

  bool empty() const { return slots_.empty(); }

  std::vector<int32_t> forbidden;
  std::set<Sentence> broken;  // sources whose logits turn NaN at the third token
  size_t most_sentences = 0, advances = 0, rows = 0;

 private:
  struct Slot {
    Sentence source;
    std::vector<Sentence> prefixes;  // of the last advance; empty before the first
  };

  void extend(Slot& slot, std::span<const models::Step> steps, int64_t first_row) {
    std::vector<Sentence> prefixes;
    for (size_t i = 0; i < steps.size(); ++i) {
      if (slot.prefixes.empty()) {
        require(steps.size() == 1 && steps[0].parent == 0 && steps[0].token == kStart, "a bad first step");
        prefixes.push_back({});
      } else {
        prefixes.push_back(slot.prefixes.at(static_cast<size_t>(steps[i].parent)));
        prefixes.back().push_back(steps[i].token);
      }
      std::vector<float> row = scorer_.logits(slot.source, prefixes.back());
      if (prefixes.back().size() == 2 && broken.contains(slot.source)) {
        row.back() = std::numeric_limits<float>::quiet_NaN();
      }
      std::copy(row.begin(), row.end(), states_.row(first_row + static_cast<int64_t>(i)));
    }
    slot.prefixes = std::move(prefixes);
  }
  // What a call returned is valid until the next one: whoever reads it later reads NaN.
  void spoil() {
    spoil(states_);
    spoil(logits_);
  }
  static void spoil(const Tensor<float>& tensor) {
    if (tensor) tensor.fill(std::numeric_limits<float>::quiet_NaN());
  }

  ToyScorer scorer_;
  Arena arena_;
  Tensor<float> states_, logits_;
  std::map<int, Slot> slots_;
};

inline Tokens tokens_of(const std::vector<Sentence>& sentences) {
  Tokens tokens;
  std::vector<int64_t> lengths;
  for (const Sentence& sentence : sentences) {
    tokens.rows.insert(tokens.rows.end(), sentence.begin(), sentence.end());
    lengths.push_back(static_cast<int64_t>(sentence.size()));
  }
  tokens.offsets = Offsets::of_lengths(lengths);
  return tokens;
}

// Distinct sources of 1 to 9 tokens.
inline std::vector<Sentence> random_sources(size_t count, uint64_t seed) {
  std::vector<Sentence> sources;
  for (uint64_t i = 0; i < count; ++i) {
    const RandomKey key = RandomKey(seed).with(i);
    Sentence source(1 + key.below(0, 8), static_cast<int32_t>(i));
    for (size_t t = 1; t < source.size(); ++t) source[t] = static_cast<int32_t>(key.below(t, 1000));
    source.push_back(kEnd);
    sources.push_back(source);
  }
  return sources;
}

}  // namespace gloss::decode
