// The Transformer with relative positions: its folder, its gradients, its steps, and that it knows order.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "gloss/io/json_file.h"
#include "gloss/io/safetensors.h"
#include "gloss/kernels/adam.h"
#include "gloss/models/model_config.h"
#include "gloss/models/model_folder.h"
#include "gloss/models/transformer_decoder.h"
#include "gloss/models/transformer_model.h"
#include "models/split_beam.h"
#include "support/compare.h"
#include "support/gradient_check.h"
#include "support/isas.h"
#include "support/random.h"

namespace gloss::models {
namespace {

namespace fs = std::filesystem;
using autograd::Tape;
using ::testing::HasSubstr;
using tests::same_bits;

constexpr int32_t kEnd = 0, kPad = 10;

TransformerConfig relative_config() {
  TransformerConfig config;
  config.source_vocabulary = config.target_vocabulary = 11;
  config.d_model = 12;
  config.encoder = {2, 2, 16};
  config.decoder = {2, 3, 16};
  config.positions = nn::PositionLayout::relative;
  config.relative = {8, 6};
  config.symbols = {kEnd, kPad, kPad};
  config.zero_start_embedding = true;
  config.dropout = 0;
  return config;
}

// Sequences of these lengths, each with the end symbol.
Tokens random_tokens(const std::vector<int64_t>& lengths, uint64_t seed) {
  return tests::random_sequences(lengths, 1, 10, kEnd, seed);
}
Tokens sequence(const Tokens& tokens, int64_t s) {
  const auto begin = tokens.rows.begin() + tokens.offsets.begin(s);
  return {{begin, begin + tokens.offsets.length(s)},
          Offsets::of_lengths(std::vector<int64_t>{tokens.offsets.length(s)})};
}

// The biases begin small: larger ones make every difference plain.
void enlarge_biases(Model& model) {
  model.parameters().each_part([](const std::string& name, const Tensor<float>& value) {
    if (!name.ends_with("relative_attention_bias.weight")) return;
    for (float& x : value.values()) x *= 8;
  });
}

TEST(RelativeTransformer, HasOneTableAStack) {
  Arena arena;
  const Transformer<float> model(relative_config(), arena);
  std::vector<std::string> tables;
  model.parameters().each_part([&](const std::string& name, const Tensor<float>& value) {
    if (name.find("relative") == std::string::npos) return;
    tables.push_back(name);
    EXPECT_EQ(value.shape(), Shape({8, name.starts_with("model.encoder") ? 2 : 3}));
  });
  EXPECT_THAT(tables, ::testing::ElementsAre("model.encoder.relative_attention_bias.weight",
                                             "model.decoder.relative_attention_bias.weight"));
}

TEST(RelativeTransformer, HasTheGradientsOfFiniteDifferences) {
  Context context;
  TransformerConfig config = relative_config();
  config.d_model = 4;
  config.encoder = config.decoder = {2, 2, 4};
  config.relative = {4, 3};
  config.dropout = 0.1;
  config.zero_start_embedding = false;
  Transformer<double> model(config, context.arena);
  model.parameters().initialise(5);
  model.parameters().allocate_gradients(context.arena);
  const Tokens source = random_tokens({6, 2}, 1), target = random_tokens({5, 3}, 2);
  tests::GradientCheck options;
  options.parameters = &model.parameters();
  EXPECT_EQ(
      tests::check_gradients(
          context, {},
          [&](Tape<double>& tape, const std::vector<autograd::Var<double>>&) {
            return std::vector<autograd::Var<double>>{model.loss(tape, source, target, {0.1, 0.25}).sum};
          },
          options),
      "");
}

TEST(RelativeTransformer, DoesNotDependOnCompany) {
  tests::on_every_isa([](kernels::Isa) {
    Context one(1), three(3);
    TransformerModel model(relative_config(), one.arena);
    model.initialise(3);
    enlarge_biases(model);
    const Tokens source = random_tokens({9, 1, 40, 5}, 1), target = random_tokens({7, 30, 2, 1}, 2);
    const auto scores = [&](Context& context, const Tokens& a, const Tokens& b) {
      Tape<float> tape(context);
      return model.log_probabilities(tape, a, b);
    };
    const std::vector<float> batch = scores(one, source, target);
    EXPECT_TRUE(same_bits(batch, scores(three, source, target)));
    for (int64_t s = 0; s < source.offsets.count(); ++s) {
      const std::vector<float> alone = scores(three, sequence(source, s), sequence(target, s));
      EXPECT_TRUE(
          same_bits(std::span<const float>(alone),
                    std::span(batch).subspan(static_cast<size_t>(target.offsets.begin(s)), alone.size())));
    }
  });
}

// A beam that splits and merges, with the cache and without it.
TEST(RelativeTransformer, CachedStepsEqualWholePrefixes) {
  for (const bool pre_norm : {false, true}) {
    Context context(2);
    TransformerConfig config = relative_config();
    config.pre_norm = pre_norm;
    TransformerModel model(config, context.arena);
    model.initialise(3);
    enlarge_biases(model);
    expect_cache_changes_nothing(model, context, random_tokens({12, 5}, 1), 9, 2e-5F);
    expect_cache_changes_nothing(model, context, random_tokens({12, 5}, 1), 9, 0, CachePrecision::bfloat16);
  }
}

class RelativeFolder : public testing::Test {
 protected:
  RelativeFolder()
      : folder_(fs::path(testing::TempDir()) /
                (std::string("relative_") + testing::UnitTest::GetInstance()->current_test_info()->name())) {
    fs::create_directories(folder_);
  }
  ~RelativeFolder() override { fs::remove_all(folder_); }
  std::string error() {
    try {
      load_model(folder_, arena_);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }
  nlohmann::json json() const { return io::read_json(folder_ / "config.json"); }

  Arena arena_;
  fs::path folder_;
};

TEST_F(RelativeFolder, ComesBackAndIsNoMarian) {
  for (const bool pre_norm : {false, true}) {
    TransformerConfig config = relative_config();
    config.pre_norm = pre_norm;
    config.d_model = 9;  // no pairs are needed
    config.encoder.heads = config.decoder.heads = 3;
    TransformerModel model(config, arena_);
    model.initialise(3);
    save_model(folder_, model);
    EXPECT_EQ(json().at("model_type"), "gloss_relative");
    EXPECT_FALSE(json().contains("architectures"));
    EXPECT_EQ(json().at("position_layout"), "relative");
    EXPECT_EQ(json().at("relative_attention_num_buckets"), 8);
    EXPECT_EQ(json().at("relative_attention_max_distance"), 6);
    const auto file = io::SafetensorsFile::open(folder_ / "model.safetensors");
    EXPECT_TRUE(file.has("model.encoder.relative_attention_bias.weight"));
    EXPECT_FALSE(file.has("model.encoder.embed_positions.weight"));
    const auto loaded = load_model(folder_, arena_);
    EXPECT_EQ(dynamic_cast<const TransformerModel&>(*loaded).transformer().config(), config);
    EXPECT_TRUE(same_bits(std::span<const float>(loaded->parameters().values()),
                          std::span<const float>(model.parameters().values())));
  }
}

TEST_F(RelativeFolder, HasT5sNumbersWhereItSaysNone) {
  TransformerConfig config = relative_config();
  config.relative = {};
  TransformerModel model(config, arena_);
  save_model(folder_, model);
  nlohmann::json shorter = json();
  shorter.erase("relative_attention_num_buckets");
  shorter.erase("relative_attention_max_distance");
  io::write_json(folder_ / "config.json", shorter);
  EXPECT_EQ(load_model(folder_, arena_)->config_json(), model.config_json());
}

TEST_F(RelativeFolder, RefusesWhatDoesNotFit) {
  TransformerModel model(relative_config(), arena_);
  save_model(folder_, model);
  const nlohmann::json good = json();
  const auto with = [&](const char* key, const nlohmann::json& value) {
    nlohmann::json changed = good;
    changed[key] = value;
    io::write_json(folder_ / "config.json", changed);
    return error();
  };
  EXPECT_THAT(with("relative_attention_num_buckets", 7),
              HasSubstr("config.json: the buckets of relative positions"));
  EXPECT_THAT(with("relative_attention_num_buckets", 6),
              HasSubstr("relative_attention_bias.weight' must have shape"));
  EXPECT_THAT(with("relative_attention_max_distance", 4), HasSubstr("must be above half their 8 buckets"));
  EXPECT_THAT(with("relative_attention_max_distance", 1 << 20), HasSubstr("at most 65536"));
  EXPECT_THAT(with("relative_attention_num_buckets", "many"), HasSubstr("relative_attention_num_buckets"));
  EXPECT_THAT(with("position_layout", "rotary"), HasSubstr("halves, interleaved or relative"));
  EXPECT_THAT(with("position_layout", "halves"), HasSubstr("has no place in the model"));
  // Sinusoids in the file would be added by other programs, and here by nobody.
  io::write_json(folder_ / "config.json", good);
  const auto file = io::SafetensorsFile::open(folder_ / "model.safetensors");
  io::SafetensorsWriter writer;
  std::vector<Tensor<float>> kept;
  for (const std::string& name : file.names()) {
    kept.push_back(file.read<float>(name, arena_));
    writer.add<float>(name, file.info(name).shape, kept.back().values());
  }
  kept.push_back(nn::sinusoidal_positions<float>(arena_, 0, 20, 12, nn::PositionLayout::halves));
  writer.add("model.encoder.embed_positions.weight", kept.back());
  writer.write(folder_ / "model.safetensors");
  EXPECT_THAT(error(),
              HasSubstr("'model.encoder.embed_positions.weight' has no place beside the relative positions"));
}

TEST(RelativeTransformer, TakesALittleMoreMemoryToTrain) {
  TransformerConfig config = relative_config();
  const KeptNumbers relative = kept_numbers(ModelConfig(config));
  config.positions = nn::PositionLayout::halves;
  EXPECT_EQ(relative.per_token - kept_numbers(ModelConfig(config)).per_token, 6 * (2 + 3));
}

// Which token came first? A source without positions is a bag of words, and the answer one guess in four.
double loss_of_the_first_token(bool with_positions) {
  Context context;
  TransformerConfig config = relative_config();
  config.d_model = 16;
  config.encoder = config.decoder = {1, 2, 32};
  TransformerModel model(config, context.arena);
  model.initialise(1);
  auto& parameters = model.parameters();
  parameters.allocate_gradients(context.arena);
  std::vector<float> first(parameters.values().size()), second(first.size());
  const auto erase = [&](std::span<float> block) {
    parameters.each_part([&](const std::string& name, const Tensor<float>& value) {
      if (with_positions || name != "model.encoder.relative_attention_bias.weight") return;
      std::fill_n(block.data() + (value.data() - parameters.values().data()), value.size(), 0.0F);
    });
  };
  erase(parameters.values());
  double last = 0;
  constexpr int kUpdates = 400, kMeasured = 20, kPairs = 32;
  for (int update = 1; update <= kUpdates; ++update) {
    Tokens source, target;
    const RandomKey key = RandomKey(9).with(static_cast<uint64_t>(update));
    for (int p = 0; p < kPairs; ++p) {
      std::vector<int32_t> words{1, 2, 3, 4, 5, 6, 7, 8, 9};  // four different ones of them
      for (uint64_t i = 0; i < 4; ++i)
        std::swap(words[i], words[i + key.with(static_cast<uint64_t>(p)).below(i, words.size() - i)]);
      source.rows.insert(source.rows.end(), words.begin(), words.begin() + 4);
      source.rows.push_back(kEnd);
      target.rows.insert(target.rows.end(), {words[0], kEnd});
    }
    source.offsets = Offsets::of_lengths(std::vector<int64_t>(kPairs, 5));
    target.offsets = Offsets::of_lengths(std::vector<int64_t>(kPairs, 2));
    std::ranges::fill(parameters.gradients(), 0.0F);
    Tape<float> tape(context, Tape<float>::Mode::train);
    const auto loss = model.loss(tape, source, target, {0, 1.0 / kPairs});
    tape.backward(loss.sum, Tensor<float>::from(context.arena, {1}, std::vector<float>{1}));
    erase(parameters.gradients());
    kernels::Adam adam;
    adam.learning_rate = 0.01;
    adam.step = update;
    kernels::adam<float>(context.pool, adam, parameters.values(), std::as_const(parameters).gradients(),
                         first, second);
    if (update > kUpdates - kMeasured) last += loss.smoothed / kPairs / kMeasured;
  }
  return last;
}

TEST(RelativeTransformer, LearnsWhatNeedsOrder) {
  EXPECT_LT(loss_of_the_first_token(true), 0.3);
  EXPECT_GT(loss_of_the_first_token(false), 1.2);  // ln 4 is 1.39
}

}  // namespace
}  // namespace gloss::models
