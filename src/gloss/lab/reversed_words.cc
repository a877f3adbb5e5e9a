#include "gloss/lab/reversed_words.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <string>
#include <utility>

#include "gloss/decode/search.h"
#include "gloss/evaluate/chrf.h"
#include "gloss/kernels/adam.h"
#include "gloss/lab/drawn.h"
#include "gloss/models/transformer_model.h"

namespace gloss::lab {
namespace {

using autograd::Tape;

constexpr int64_t kLetters = 26;

models::TransformerConfig config_of(const ReversedWords& task) {
  models::TransformerConfig config = small_config(kFirstWord + kLetters, 32, 1, 2);
  if (task.order != Order::sinusoidal) config.positions = nn::PositionLayout::relative;
  config.relative = task.buckets;
  return config;
}

// One word in eight is for the test.
bool is_held_out(std::span<const int32_t> word) {
  RandomKey key;
  for (const int32_t letter : word) key = key.with(static_cast<uint64_t>(letter));
  return key.below(0, 8) == 0;
}

std::vector<int32_t> draw_word(const RandomKey& key, int64_t letters, bool held_out) {
  std::vector<int32_t> alphabet(kLetters);
  for (uint64_t attempt = 0;; ++attempt) {
    std::iota(alphabet.begin(), alphabet.end(), kFirstWord);
    for (int64_t i = 0; i < letters; ++i) {
      const auto left = static_cast<uint64_t>(kLetters - i);
      const auto j = i + static_cast<int64_t>(key.with(attempt).below(static_cast<uint64_t>(i), left));
      std::swap(alphabet[static_cast<size_t>(i)], alphabet[static_cast<size_t>(j)]);
    }
    const std::span<const int32_t> word = std::span(alphabet).first(static_cast<size_t>(letters));
    if (is_held_out(word) == held_out) return {word.begin(), word.end()};
  }
}

// Words and their translations, with end symbols.
struct Pairs {
  Tokens source, target;
  std::vector<int64_t> lengths;

  void add(std::vector<int32_t> word) {
    const auto append = [&](Tokens& tokens) {
      tokens.rows.insert(tokens.rows.end(), word.begin(), word.end());
      tokens.rows.push_back(0);
    };
    append(source);
    std::ranges::reverse(word);
    append(target);
    lengths.push_back(static_cast<int64_t>(word.size()) + 1);
    source.offsets = target.offsets = Offsets::of_lengths(lengths);
  }
};

std::string text_of(std::span<const int32_t> tokens) {
  std::string text;
  for (const int32_t token : tokens) {
    if (token >= kFirstWord) text += static_cast<char>('a' + token - kFirstWord);
  }
  return text;
}

class Learner {
 public:
  explicit Learner(const ReversedWords& task)
      : task_(task), key_(task.seed), model_(config_of(task), context_.arena) {
    auto& parameters = model_.parameters();
    parameters.allocate_gradients(context_.arena);
    parameters.initialise(key_.state());
    if (task.order == Order::none) {
      for (auto& parameter : parameters.all()) {
        if (parameter.parts.front().name.ends_with("relative_attention_bias.weight"))
          silent_.push_back(&parameter);
      }
      for (const auto* bias : silent_) bias->value.fill(0);
    }
    first_.assign(parameters.values().size(), 0);
    second_ = first_;
  }

  void train() {
    constexpr uint64_t kBatch = 16;  // words
    for (int64_t update = 1; update <= task_.updates; ++update) {
      const RandomKey key = key_.with("training").with(static_cast<uint64_t>(update));
      Pairs pairs;
      for (uint64_t i = 0; i < kBatch; ++i) {
        const auto lengths = static_cast<uint64_t>(task_.longest - kShortestWord + 1);
        const int64_t letters = kShortestWord + static_cast<int64_t>(key.with("length").below(i, lengths));
        pairs.add(draw_word(key.with(i), letters, false));
      }
      learn(pairs, update);
    }
  }

  double chrf(int64_t letters) {
    constexpr uint64_t kWords = 64;
    const RandomKey key = key_.with("test").with(static_cast<uint64_t>(letters));
    Pairs pairs;
    for (uint64_t i = 0; i < kWords; ++i) pairs.add(draw_word(key.with(i), letters, true));
    const std::unique_ptr<models::DecoderState> state = model_.decoder_state(context_, models::Caching::on);
    decode::SearchOptions greedy;
    greedy.beam = 1;
    std::vector<std::string> said, expected;
    for (const auto& hypotheses : decode::search(context_, *state, pairs.source, greedy))
      said.push_back(text_of(hypotheses.front().tokens));
    for (int64_t i = 0; i < pairs.target.offsets.count(); ++i) {
      const auto begin = static_cast<size_t>(pairs.target.offsets.begin(i));
      expected.push_back(text_of(std::span(pairs.target.rows).subspan(begin, static_cast<size_t>(letters))));
    }
    return evaluate::chrf(said, {expected}).score;
  }

 private:
  void learn(const Pairs& pairs, int64_t update) {
    const auto& parameters = model_.parameters();
    std::ranges::fill(parameters.gradients(), 0.0f);
    Tape<float> tape(context_, Tape<float>::Mode::train);
    const auto tokens = static_cast<double>(pairs.target.offsets.total());
    const auto loss = model_.loss(tape, pairs.source, pairs.target, {.scale = 1 / tokens});
    const Tensor<float> one(context_.arena, {1});
    one.fill(1);
    tape.backward(loss.sum, one);
    for (const auto* bias : silent_) bias->gradient.fill(0);
    // The rate rises at first and then falls to zero, so that the end does not wander.
    constexpr double kRate = 0.01, kWarmup = 50, kLongestGradient = 1;
    const auto done = static_cast<double>(update), all = static_cast<double>(task_.updates);
    const double norm = std::sqrt(kernels::sum_of_squares<float>(context_.pool, parameters.gradients()));
    kernels::adam<float>(context_.pool,
                         {.learning_rate = kRate * std::min(1.0, done / kWarmup) * (all - done) / all,
                          .step = update,
                          .gradient_scale = std::min(1.0, kLongestGradient / norm)},
                         parameters.values(), parameters.gradients(), first_, second_);
  }

  ReversedWords task_;
  RandomKey key_;
  Context context_{1};
  models::TransformerModel model_;
  std::vector<const autograd::Parameter<float>*> silent_;  // tables that stay zero: they say nothing
  std::vector<float> first_, second_;
};

}  // namespace

std::vector<double> chrf_by_length(const ReversedWords& task) {
  require(
      task.longest >= kShortestWord && 2 * task.longest <= kLetters,
      "words of the training have {} to {} different letters, so that there are words twice as long, not {}",
      kShortestWord, kLetters / 2, task.longest);
  Learner learner(task);
  learner.train();
  std::vector<double> scores;
  for (int64_t letters = kShortestWord; letters <= 2 * task.longest; ++letters)
    scores.push_back(learner.chrf(letters));
  return scores;
}

}  // namespace gloss::lab
