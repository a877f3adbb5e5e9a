// What training relies on in the model: no look ahead, a start symbol that stays nothing, and gradients in
// single precision that are those in double.
#include <cmath>
#include <numeric>

#include "gloss/models/transformer_model.h"
#include "gloss/train/learner.h"
#include "support/compare.h"
#include "support/random.h"
#include "train/fixture.h"

namespace gloss::train {
namespace {

using autograd::Tape;
using models::Transformer;
using models::TransformerConfig;

constexpr int32_t kEnd = 0, kPad = 49;

TransformerConfig small_config() {
  TransformerConfig config;
  config.source_vocabulary = config.target_vocabulary = 50;
  config.d_model = 24;
  config.encoder = {2, 3, 40};
  config.decoder = {2, 4, 40};
  config.symbols = {kEnd, kPad, kPad};
  config.zero_start_embedding = true;
  config.dropout = 0;
  return config;
}

// Sequences of these lengths, each with the end symbol; ids below kPad.
Tokens random_tokens(const std::vector<int64_t>& lengths, uint64_t seed) {
  return tests::random_sequences(lengths, 2, kPad, kEnd, seed);
}

double length(const std::vector<double>& x) {
  return std::sqrt(std::inner_product(x.begin(), x.end(), x.begin(), 0.0));
}

data::TokenBatch random_batch(uint64_t seed) {
  data::TokenBatch batch;
  batch.source = random_tokens({5, 1, 9, 3}, seed);
  batch.target = random_tokens({4, 2, 7, 1}, seed + 100);
  batch.pairs = 4;
  batch.line_numbers = {1, 2, 3, 4};
  return batch;
}

Tensor<float> logits_of(Context& context, const Transformer<float>& model, const Tokens& source,
                        const Tokens& target) {
  Tape<float> tape(context);
  const auto states = model.decode(tape, model.decoder_input(target), model.encode(tape, source));
  return model.logits(tape, states.rows).value();
}

TEST(Model, DoesNotLookAhead) {
  for (const bool pre_norm : {false, true}) {
    TransformerConfig config = small_config();
    config.pre_norm = pre_norm;
    Context context(2);
    models::TransformerModel model(config, context.arena);
    model.initialise(3);
    const Tokens source = random_tokens({6, 4}, 1), target = random_tokens({12, 5}, 2);
    const Tensor<float> before = logits_of(context, model.transformer(), source, target);
    for (int64_t t = 0; t + 1 < 12; ++t) {
      Tokens changed = target;
      int32_t& next = changed.rows[static_cast<size_t>(t + 1)];
      next = next == 7 ? 8 : 7;
      const Tensor<float> after = logits_of(context, model.transformer(), source, changed);
      // Row t is computed from tokens up to t - 1 and predicts token t; token t + 1 enters in row t + 2.
      for (int64_t row = 0; row < before.rows(); ++row) {
        const bool same = std::equal(before.row(row), before.row(row) + 50, after.row(row));
        if (row < t + 2 || row >= 12) {
          EXPECT_TRUE(same) << "row " << row << " sees token " << t + 1;
        } else if (row == t + 2) {
          EXPECT_FALSE(same) << "token " << t + 1 << " went unseen";
        }
      }
    }
  }
}

TEST(Model, KeepsItsStartSymbolAtNothing) {
  for (const char* tied : {"true", "false"}) {
    Task task;
    task.set("tie-output", tied).set("max-updates", "25").set("ema", "0.9").set("average", "2");
    train(task);
    const int32_t pad = text::Tokenizer::load(task.output()).target_vocabulary().pad_id();
    const fs::path model = task.output() / "model.safetensors";
    const auto table = floats(model, "model.shared.weight");
    for (int64_t i = 0; i < 16; ++i) EXPECT_EQ(table[static_cast<size_t>(pad * 16 + i)], 0);
    EXPECT_NE(table[static_cast<size_t>(pad * 16 - 1)], 0);
    const auto bias = floats(model, "final_logits_bias");
    EXPECT_EQ(bias[static_cast<size_t>(pad)], -1e9f);
    for (const float b : bias) EXPECT_NE(b, 0) << "the others learn";
  }
}

TEST(Model, GivesItsStartSymbolNoGradient) {
  Context context(1);
  TransformerConfig config = small_config();
  TrainOptions options;
  options.d_model = config.d_model;
  Learner learner(options, config, context);
  learner.update({random_batch(1)}, 1, 0);
  auto& parameters = learner.model().parameters();
  const float* values = parameters.values().data();
  const auto gradient_of = [&](const Tensor<float>& value) {
    return parameters.gradients().data() + (value.data() - values);
  };
  int checked = 0;
  parameters.each_part([&](const std::string& name, const Tensor<float>& value) {
    const float* gradient = gradient_of(value);
    if (name == "model.shared.weight") {
      ++checked;
      for (int64_t i = 0; i < value.cols(); ++i) EXPECT_EQ(gradient[kPad * value.cols() + i], 0);
      EXPECT_NE(gradient[kEnd * value.cols()], 0);
    } else if (name == "final_logits_bias") {
      ++checked;
      EXPECT_EQ(gradient[kPad], 0);
      EXPECT_NE(gradient[kEnd], 0);
    }
  });
  EXPECT_EQ(checked, 2);
}

// Adam's first moment after one step is (1 - beta1) times the gradient that reached it.
TEST(Model, ClipsTheGradientThatAdamSees) {
  const auto moment = [](double clip_norm, double& gradient_norm) {
    Context context(1);
    TrainOptions options;
    options.d_model = 24;
    options.clip_norm = clip_norm;
    Learner learner(options, small_config(), context);
    gradient_norm = learner.update({random_batch(1)}, 1, 0).gradient_norm;
    return tests::doubles(learner.optimiser().first);
  };
  double norm = 0, norm_before = 0;
  const std::vector<double> whole = moment(0, norm);
  EXPECT_NEAR(length(whole), 0.1 * norm, 1e-5 * norm);
  for (const double share : {0.5, 0.01}) {
    const std::vector<double> clipped = moment(share * norm, norm_before);
    EXPECT_EQ(norm_before, norm) << "told as it was before clipping";
    EXPECT_NEAR(length(clipped), 0.1 * share * norm, 1e-5 * share * norm);
    std::vector<double> want = whole;
    for (double& x : want) x *= share;
    EXPECT_TRUE(tests::close(clipped, want, 1e-5)) << "the direction stays";
  }
  EXPECT_EQ(moment(1.01 * norm, norm_before), whole) << "a shorter one is left alone";
}

// A gradient whose squares are no floats is clipped like any other. Without clipping Adam cannot take it.
TEST(Model, TakesHugeGradientsWhenTheyAreClipped) {
  for (const double clip_norm : {5.0, 0.0, 1e30}) {
    SCOPED_TRACE(clip_norm);
    Context context(1);
    TrainOptions options;
    options.d_model = 24;
    options.clip_norm = clip_norm;
    Learner learner(options, small_config(), context);
    EXPECT_TRUE(learner.sound());
    learner.model().parameters().each_part([&](const std::string& name, const Tensor<float>& value) {
      if (name == "model.decoder.layers.1.final_layer_norm.weight") value.fill(1e21f);
    });
    EXPECT_FALSE(learner.sound()) << "no model works with that";
    const auto before = tests::doubles(std::span<const float>(learner.model().parameters().values()));
    const Learner::Step step = learner.update({random_batch(1)}, 1, 0);
    EXPECT_TRUE(std::isfinite(step.loss));
    const auto gradients = tests::doubles(std::span<const float>(learner.model().parameters().gradients()));
    EXPECT_GT(length(gradients), 2e19);
    EXPECT_TRUE(std::isfinite(length(gradients)));
    EXPECT_EQ(step.finite(), clip_norm == 5);
    const auto first = tests::doubles(learner.optimiser().first);
    if (clip_norm == 5) {
      EXPECT_NEAR(step.gradient_norm, length(gradients), 1e-6 * length(gradients));
      EXPECT_NEAR(length(first), 0.1 * 5, 1e-4);
    } else {
      EXPECT_EQ(length(first), 0);
      EXPECT_EQ(tests::doubles(std::span<const float>(learner.model().parameters().values())), before);
    }
  }
}

// A batch in two halves, scaled by all tokens, has the gradient of the whole.
TEST(Model, AccumulatesTheGradientOfTheWholeBatch) {
  const data::TokenBatch whole = random_batch(5);
  const auto half = [&](int64_t begin, int64_t end) {
    data::TokenBatch part;
    const auto cut = [&](const Tokens& tokens) {
      Tokens result;
      std::vector<int64_t> lengths;
      for (int64_t s = begin; s < end; ++s) {
        lengths.push_back(tokens.offsets.length(s));
        for (int64_t i = 0; i < lengths.back(); ++i)
          result.rows.push_back(tokens.rows[static_cast<size_t>(tokens.offsets.begin(s) + i)]);
      }
      result.offsets = Offsets::of_lengths(lengths);
      return result;
    };
    part.source = cut(whole.source);
    part.target = cut(whole.target);
    part.pairs = end - begin;
    part.line_numbers = {begin + 1};
    return part;
  };
  Context context(1);
  TrainOptions options;
  options.d_model = 24;
  options.dropout = 0;
  Learner one(options, small_config(), context), two(options, small_config(), context);
  const auto a = one.update({whole}, 1, 0), b = two.update({half(0, 2), half(2, 4)}, 1, 0);
  EXPECT_EQ(a.tokens, b.tokens);
  EXPECT_NEAR(a.loss, b.loss, 1e-4 * a.loss);
  EXPECT_NEAR(a.gradient_norm, b.gradient_norm, 1e-4 * a.gradient_norm);
}

TEST(Model, HasTheGradientsOfDoublePrecision) {
  Context context(2);
  const TransformerConfig config = small_config();
  Transformer<float> single(config, context.arena);
  Transformer<double> precise(config, context.arena);
  single.parameters().initialise(11);
  const auto narrow = single.parameters().values();
  const auto wide = precise.parameters().values();
  std::copy(narrow.begin(), narrow.end(), wide.begin());
  const data::TokenBatch batch = random_batch(9);
  const auto gradients = [&]<class T>(Transformer<T>& model) {
    model.parameters().allocate_gradients(context.arena);
    Tape<T> tape(context, Tape<T>::Mode::train);
    const auto loss = model.loss(tape, batch.source, batch.target, {0.1, 0.1});
    tape.backward(loss.sum, Tensor<T>::from(context.arena, {1}, std::vector<T>{1}));
    return loss.smoothed;
  };
  const double narrow_loss = gradients(single), wide_loss = gradients(precise);
  EXPECT_NEAR(narrow_loss, wide_loss, 1e-5 * wide_loss);

  ASSERT_EQ(narrow.size(), wide.size());
  double largest = 0;
  for (const double g : precise.parameters().gradients()) largest = std::max(largest, std::abs(g));
  EXPECT_GT(largest, 0);
  for (size_t i = 0; i < narrow.size(); ++i) {
    const double want = precise.parameters().gradients()[i];
    ASSERT_NEAR(single.parameters().gradients()[i], want, 1e-4 * std::abs(want) + 1e-6 * largest) << i;
  }
}

}  // namespace
}  // namespace gloss::train
