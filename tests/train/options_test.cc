// Every option of the model and the text reaches the model folder, and comes back from it.
#include <cmath>
#include <limits>

#include "gloss/decode/translator.h"
#include "gloss/models/model_folder.h"
#include "gloss/models/transformer_model.h"
#include "gloss/train/setup.h"
#include "train/fixture.h"

namespace gloss::train {
namespace {

using testing::HasSubstr;

struct Variant {
  std::string name;
  std::map<std::string, std::string> options;
  std::function<bool(const models::TransformerConfig&)> reached;
};

std::ostream& operator<<(std::ostream& out, const Variant& variant) {
  return out << variant.name;
}

class EveryOption : public testing::TestWithParam<Variant> {};

TEST_P(EveryOption, TrainsAndComesBackFromTheFolder) {
  Task task;
  task.set("max-updates", "12").set("average", "1");
  for (const auto& [name, value] : GetParam().options) task.set(name, value);
  EXPECT_GT(train(task).perplexity, 1);

  Arena arena;
  const auto model = models::load_model(task.output(), arena);
  const auto& config = dynamic_cast<const models::TransformerModel&>(*model).transformer().config();
  EXPECT_TRUE(GetParam().reached(config)) << bytes_of(task.output() / "config.json");

  // Saved again and loaded again, the model translates and scores as before.
  const fs::path copy = task.folder.path() / "copy";
  fs::create_directories(copy);
  models::save_model(copy, *model);
  text::Tokenizer::load(task.output()).save(copy);
  EXPECT_TRUE(bytes_of(copy / "model.safetensors") == bytes_of(task.output() / "model.safetensors"));
  EXPECT_EQ(bytes_of(copy / "config.json"), bytes_of(task.output() / "config.json"));
  const auto lines = word_lines(8, 5);
  const auto a = decode::Translator(task.output()).translate(lines),
             b = decode::Translator(copy).translate(lines);
  for (size_t i = 0; i < lines.size(); ++i) {
    EXPECT_EQ(a[i].text(), b[i].text());
    EXPECT_EQ(a[i].candidates.at(0).score, b[i].candidates.at(0).score);
  }
  EXPECT_EQ(train(task).kind, Outcome::Kind::complete);
}

INSTANTIATE_TEST_SUITE_P(
    Training, EveryOption,
    testing::Values(
        Variant{"plain", {}, [](const auto& c) { return c.share_embeddings && c.tie_output && !c.pre_norm; }},
        Variant{"pre_norm", {{"pre-norm", "true"}}, [](const auto& c) { return c.pre_norm; }},
        Variant{"swish",
                {{"activation", "swish"}},
                [](const auto& c) { return c.activation == kernels::Activation::swish; }},
        Variant{"gelu",
                {{"activation", "gelu"}},
                [](const auto& c) { return c.activation == kernels::Activation::gelu; }},
        Variant{"untied", {{"tie-output", "false"}}, [](const auto& c) { return !c.tie_output; }},
        Variant{"separate", {{"joint", "false"}}, [](const auto& c) { return !c.share_embeddings; }},
        Variant{"separate_untied",
                {{"joint", "false"}, {"tie-output", "false"}},
                [](const auto& c) { return !c.share_embeddings && !c.tie_output; }},
        Variant{"interleaved",
                {{"positions", "interleaved"}},
                [](const auto& c) { return c.positions == nn::PositionLayout::interleaved; }},
        Variant{"relative",
                {{"positions", "relative"}},
                [](const auto& c) {
                  return c.positions == nn::PositionLayout::relative && c.relative.count == 32 &&
                         c.relative.max_distance == 128;
                }},
        Variant{"relative_pre_norm",
                {{"positions", "relative"}, {"pre-norm", "true"}},
                [](const auto& c) { return c.positions == nn::PositionLayout::relative && c.pre_norm; }},
        Variant{"unscaled", {{"scale-embedding", "false"}}, [](const auto& c) { return !c.scale_embedding; }},
        Variant{"unigram", {{"segmentation", "unigram"}}, [](const auto&) { return true; }},
        Variant{
            "uneven_stacks",
            {{"encoder-layers", "2"}, {"decoder-heads", "4"}, {"encoder-ff", "24"}},
            [](const auto& c) {
              return c.encoder == models::StackConfig{2, 2, 24} && c.decoder == models::StackConfig{1, 4, 32};
            }},
        Variant{"paper",
                {{"paper", "true"}},
                [](const auto& c) {
                  return c.positions == nn::PositionLayout::interleaved && c.dropout == 0.1;
                }}),
    [](const auto& variant) { return variant.param.name; });

TEST(Options, FillInWhatWasNotTyped) {
  Typed<TrainOptions> options;
  options.set_values("train", {"a", "b"});
  options.set_values("valid", {"a", "b"});
  options.set("output", "c");
  options.set("preset", "small");
  options.set("decoder-layers", "2");
  const TrainOptions small = resolve(options);
  EXPECT_EQ(small.d_model, 256);
  EXPECT_EQ(small.encoder_layers, 4);
  EXPECT_EQ(small.decoder_layers, 2);
  EXPECT_EQ(small.encoder_ff, 1024);
  EXPECT_EQ(small.learning_rate, 1e-3);
  EXPECT_GE(small.threads, 1);

  options.set("preset", "base");
  options.set("paper", "true");
  options.set("dropout", "0.25");
  const TrainOptions paper = resolve(options);
  EXPECT_EQ(paper.d_model, 512);
  EXPECT_EQ(paper.schedule, Schedule::paper);
  EXPECT_EQ(paper.learning_rate, 1);
  EXPECT_EQ(paper.warmup, 4000);
  EXPECT_EQ(paper.positions, nn::PositionLayout::interleaved);
  EXPECT_EQ(paper.dropout, 0.25) << "what was typed stays";
  EXPECT_EQ(paper.label_smoothing, 0.1);
  EXPECT_EQ(paper.clip_norm, 0);
}

struct Preset {
  std::string name;
  int64_t d_model, layers, heads, feed_forward;
  double peak_rate;
};
const std::vector<Preset> kPresets = {{"tiny", 128, 4, 4, 256, 2e-3},
                                      {"small", 256, 4, 4, 1024, 1e-3},
                                      {"base", 512, 6, 8, 2048, 5e-4},
                                      {"big", 1024, 6, 16, 4096, 5e-4}};

Typed<TrainOptions> of_preset(const std::string& name) {
  Typed<TrainOptions> options;
  options.set_values("train", {"a", "b"});
  options.set_values("valid", {"a", "b"});
  options.set("output", "c");
  options.set("preset", name);
  return options;
}

TEST(Options, OfEachPreset) {
  for (const Preset& preset : kPresets) {
    SCOPED_TRACE(preset.name);
    const TrainOptions o = resolve(of_preset(preset.name));
    EXPECT_EQ(o.d_model, preset.d_model);
    EXPECT_EQ(o.encoder_layers, preset.layers);
    EXPECT_EQ(o.decoder_layers, preset.layers);
    EXPECT_EQ(o.encoder_heads, preset.heads);
    EXPECT_EQ(o.decoder_heads, preset.heads);
    EXPECT_EQ(o.encoder_ff, preset.feed_forward);
    EXPECT_EQ(o.decoder_ff, preset.feed_forward);
    EXPECT_EQ(o.learning_rate, preset.peak_rate);
  }
}

// Each preset, with and without --paper, with each schedule typed or none, and each set of the three typed.
TEST(Options, RateWarmUpAndClippingFollowTheSchedule) {
  const std::vector<std::pair<std::string, std::string>> numbers = {
      {"learning-rate", "0.7"}, {"warmup", "33"}, {"clip-norm", "1.25"}};
  for (const Preset& preset : kPresets) {
    for (const bool paper : {false, true}) {
      for (const std::string schedule : {"", "inverse-sqrt", "paper"}) {
        for (unsigned typed = 0; typed < 8; ++typed) {
          SCOPED_TRACE(
              fmt::format("{}, paper {}, schedule '{}', typed {}", preset.name, paper, schedule, typed));
          Typed<TrainOptions> options = of_preset(preset.name);
          if (paper) options.set("paper", "true");
          if (!schedule.empty()) options.set("schedule", schedule);
          for (unsigned i = 0; i < 3; ++i) {
            if ((typed >> i) & 1) options.set(numbers[i].first, numbers[i].second);
          }
          const TrainOptions o = resolve(options);
          const bool by_paper = schedule == "paper" || (schedule.empty() && paper);
          EXPECT_EQ(o.schedule, by_paper ? Schedule::paper : Schedule::inverse_sqrt);
          EXPECT_EQ(o.learning_rate, (typed & 1) ? 0.7 : by_paper ? 1 : preset.peak_rate);
          EXPECT_EQ(o.warmup, (typed & 2) ? 33 : by_paper ? 4000 : 1000);
          EXPECT_EQ(o.clip_norm, (typed & 4) ? 1.25 : by_paper ? 0 : 5);
        }
      }
    }
  }
}

// The command line checks what is typed; a program writes into the struct.
TEST(Options, OfAProgramAreCheckedOneByOne) {
  Task task;
  int spoilt = 0;
  for_each_field(task.options.value, [&]<class T>(const Field& field, T& value) {
    const T before = value;
    if constexpr (std::same_as<T, bool>) {
      return;  // either is right
    } else if constexpr (WholeNumber<T>) {
      value = std::numeric_limits<T>::min();
    } else if constexpr (std::floating_point<T>) {
      value = std::nan("");
    } else if constexpr (std::is_enum_v<T>) {
      value = static_cast<T>(99);
    } else if constexpr (std::same_as<T, std::string>) {
      if (field.choices().empty()) return;  // any text will do
      value = "huge";
    } else {
      value.emplace_back("a third");
    }
    EXPECT_THAT(text::error_of([&] { resolve(task.options); }), HasSubstr(field.name()));
    EXPECT_THROW(resolve(task.options), UsageError) << field.name();
    value = before;
    ++spoilt;
  });
  EXPECT_GT(spoilt, 35);
  EXPECT_NO_THROW(resolve(task.options));
  task.options.value.warmup = 0;
  EXPECT_THAT(error_of_training(task), HasSubstr("warmup must be a whole number"));
  EXPECT_FALSE(fs::exists(task.output()));
}

// Layers have more activations than a Transformer may ask for.
TEST(Options, AllowTheActivationsOfAFeedForwardLayer) {
  Task task;
  for (const auto activation : {kernels::Activation::none, kernels::Activation::tanh}) {
    task.options.value.activation = activation;
    EXPECT_THAT(text::error_of([&] { resolve(task.options); }), HasSubstr("relu, swish"));
  }
  EXPECT_THAT(text::error_of([&] { task.options.set("activation", "tanh"); }), HasSubstr("relu, swish"));
}

TEST(Options, AreRefusedBeforeAnyWork) {
  Typed<TrainOptions> options;
  EXPECT_THROW(resolve(options), UsageError);
  options.set_values("train", {"a", "b"});
  EXPECT_THAT(text::error_of([&] { resolve(options); }), HasSubstr("--valid"));
  options.set_values("valid", {"a", "b"});
  EXPECT_THAT(text::error_of([&] { resolve(options); }), HasSubstr("--output"));
  EXPECT_THROW(options.set("preset", "huge"), UsageError);
  EXPECT_THROW(options.set("dropout", "1"), UsageError);
  EXPECT_THROW(options.set("average", "0"), UsageError);

  for (const auto& [name, value] :
       std::map<std::string, std::string>{{"d-model", "15"}, {"encoder-heads", "3"}}) {
    Task task;
    task.set(name, value);
    EXPECT_THAT(error_of_training(task), HasSubstr(value));
    EXPECT_FALSE(fs::exists(task.output() / "training" / "run.json"));
  }
  Task small;
  small.set("vocab-size", "8");
  EXPECT_THAT(error_of_training(small), HasSubstr("larger vocabulary"));
}

}  // namespace
}  // namespace gloss::train
