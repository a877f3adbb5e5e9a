#include "gloss/models/rnn_search.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "gloss/io/json_file.h"
#include "gloss/models/model_folder.h"
#include "gloss/models/rnn_search_decoder.h"
#include "gloss/models/rnn_search_model.h"
#include "gloss/models/teacher_forcing.h"
#include "models/split_beam.h"
#include "support/compare.h"
#include "support/gradient_check.h"
#include "support/random.h"

namespace gloss::models {
namespace {

using autograd::Tape;
using autograd::Var;

constexpr int32_t kEnd = 0, kPad = 29;

RnnSearchConfig small_config() {
  RnnSearchConfig config;
  config.source_vocabulary = config.target_vocabulary = 30;
  config.embedding = 6;
  config.hidden = 5;
  config.attention = 7;
  config.maxout = 4;
  config.symbols = {kEnd, kPad, kPad};
  return config;
}

// Every form there is.
std::vector<RnnSearchConfig> all_forms() {
  std::vector<RnnSearchConfig> forms;
  for (const Transition transition : {Transition::conditional, Transition::single}) {
    for (const bool norm : {false, true}) {
      RnnSearchConfig config = small_config();
      config.transition = transition;
      config.layer_norm = norm;
      config.reset_gate = transition == Transition::single ? nn::ResetGate::before : nn::ResetGate::after;
      forms.push_back(config);
    }
  }
  forms.push_back(small_config());
  forms.back().share_embeddings = forms.back().tie_output = true;
  forms.back().maxout = forms.back().embedding;
  return forms;
}

Tokens random_tokens(const std::vector<int64_t>& lengths, uint64_t seed) {
  return tests::random_sequences(lengths, 1, kPad - 1, kEnd, seed);
}

// Biases start as zeros and gains as ones, which would hide mistakes.
template <class T>
void randomise(autograd::ParameterSet<T>& parameters) {
  parameters.initialise(5);
  parameters.each_part([&](const std::string& name, const Tensor<T>& value) {
    for (int64_t i = 0; i < value.size(); ++i)
      value.data()[i] += static_cast<T>(0.2 * RandomKey(3).with(name).normal(static_cast<uint64_t>(i)));
  });
}

const Tokens kSource = random_tokens({4, 1, 6, 2}, 1), kTarget = random_tokens({3, 5, 1, 4}, 50);

// The loss's derivative with respect to every parameter.
std::string wrong_gradient(const RnnSearchConfig& config, int threads, double smoothing, double scale) {
  Context context(threads);
  RnnSearch<double> network(config, context.arena);
  randomise(network.parameters());
  network.parameters().allocate_gradients(context.arena);
  tests::GradientCheck check;
  check.parameters = &network.parameters();
  return tests::check_gradients(
      context, {},
      [&](Tape<double>& tape, const auto&) {
        return std::vector<Var<double>>{network.loss(tape, kSource, kTarget, {smoothing, scale}).sum};
      },
      check);
}

TEST(RnnSearch, GradientsAreThoseOfFiniteDifferences) {
  for (const RnnSearchConfig& config : all_forms()) EXPECT_EQ(wrong_gradient(config, 2, 0.1, 0.3), "");
}

// With dropout everywhere the same masks fall in both directions.
TEST(RnnSearch, GradientsHoldUnderDropout) {
  RnnSearchConfig config = small_config();
  config.dropout = 0.2;
  config.context_dropout = 0.3;
  config.output_dropout = 0.4;
  EXPECT_EQ(wrong_gradient(config, 1, 0, 1), "");
}

TEST(RnnSearch, ParametersAreCountedWithoutMakingThem) {
  for (const RnnSearchConfig& config : all_forms()) {
    Arena arena;
    EXPECT_EQ(parameter_count(config), RnnSearch<float>(config, arena).parameters().count());
  }
}

TEST(RnnSearch, ConfigurationsAreReadBack) {
  for (const RnnSearchConfig& config : all_forms()) {
    const io::JsonObject json(nlohmann::json::parse(to_json(config).dump()), "config.json");
    EXPECT_EQ(rnn_search_from_json(json), config);
  }
  for (const char* key : {"hidden_size", "transition", "eos_token_id", "reset_gate"}) {
    auto broken = nlohmann::json::parse(to_json(small_config()).dump());
    broken[key] = "no";
    EXPECT_THROW(rnn_search_from_json(io::JsonObject(broken, "config.json")), Error) << key;
    broken.erase(key);
    EXPECT_THROW(rnn_search_from_json(io::JsonObject(broken, "config.json")), Error) << key;
  }
}

// A pass over whole targets, steps with the cache, and prefixes computed anew give one result, bit for bit.
TEST(RnnSearch, StepsEqualTheTeacherForcedPass) {
  for (const RnnSearchConfig& config : all_forms()) {
    for (const int threads : {1, 3}) {
      Context context(threads);
      RnnSearchModel model(config, context.arena);
      randomise(model.parameters());
      model.parameters().pack();
      Tape<float> tape(context);
      const auto memory = model.network().encode(tape, kSource);
      const auto all = model.network().decode(tape, decoder_input(kTarget, kPad), memory);
      for (const Caching caching : {Caching::on, Caching::off}) {
        const auto state = model.decoder_state(context, caching);
        // Sentence i begins at step i, so that slots stand at different positions.
        for (int64_t step = 0; step < 12; ++step) {
          std::vector<Step> steps;
          std::vector<int64_t> rows;
          for (int64_t s = 0; s < kSource.offsets.count(); ++s) {
            const int64_t t = step - s;
            if (t == 0) {
              Tokens one;
              one.rows.assign(kSource.rows.begin() + kSource.offsets.begin(s),
                              kSource.rows.begin() + kSource.offsets.end(s));
              one.offsets = Offsets({0, kSource.offsets.length(s)});
              const int slot = static_cast<int>(s);
              state->add(std::span(&slot, 1), one);
            }
            if (t < 0 || t >= kTarget.offsets.length(s)) continue;
            const int64_t row = kTarget.offsets.begin(s) + t;
            steps.push_back(
                {static_cast<int>(s), 0, t == 0 ? kPad : kTarget.rows[static_cast<size_t>(row - 1)]});
            rows.push_back(row);
          }
          if (steps.empty()) continue;
          const Tensor<float> output = state->advance(steps);
          for (size_t i = 0; i < rows.size(); ++i) {
            EXPECT_TRUE(tests::same_bits(
                std::span<const float>(output.row(static_cast<int64_t>(i)),
                                       static_cast<size_t>(config.maxout)),
                std::span<const float>(all.rows.value().row(rows[i]), static_cast<size_t>(config.maxout))))
                << "step " << step;
          }
        }
      }
    }
  }
}

// The states of hypotheses follow their parents, to the bit.
TEST(RnnSearch, ABeamThatSplitsAndMergesKeepsItsStates) {
  for (const RnnSearchConfig& config : all_forms()) {
    Context context(2);
    RnnSearchModel model(config, context.arena);
    randomise(model.parameters());
    expect_cache_changes_nothing(model, context, random_tokens({7, 3}, 1), kPad - 1, 0);
  }
}

TEST(RnnSearch, RefusesACacheThatRounds) {
  Context context(1);
  RnnSearchModel model(small_config(), context.arena);
  EXPECT_NO_THROW(model.require_cache(CachePrecision::float32));
  EXPECT_THROW(model.require_cache(CachePrecision::bfloat16), UsageError);
  EXPECT_THROW(model.cache_cost(CachePrecision::bfloat16), UsageError);
  for (const Caching caching : {Caching::on, Caching::off})
    EXPECT_THROW(model.decoder_state(context, caching, CachePrecision::bfloat16), UsageError);
}

TEST(RnnSearch, AFutureTokenChangesNothingBeforeIt) {
  Context context(1);
  RnnSearch<float> network(small_config(), context.arena);
  randomise(network.parameters());
  Tape<float> tape(context);
  const auto memory = network.encode(tape, kSource);
  Tokens input = decoder_input(kTarget, kPad);
  const Tensor<float> before = network.decode(tape, input, memory).rows.value();
  const int64_t changed = input.offsets.begin(1) + 3;
  input.rows[static_cast<size_t>(changed)] = 7;
  const Tensor<float> after = network.decode(tape, input, memory).rows.value();
  for (int64_t row = 0; row < before.rows(); ++row) {
    const bool same = std::equal(before.row(row), before.row(row) + before.cols(), after.row(row));
    EXPECT_EQ(same, row < changed || row >= input.offsets.end(1)) << row;
  }
}

TEST(RnnSearch, FoldersAreReadBackAndStrict) {
  const auto folder = std::filesystem::temp_directory_path() / fmt::format("gloss-rnn-{}", ::getpid());
  std::filesystem::create_directories(folder);
  for (const RnnSearchConfig& config : all_forms()) {
    Arena arena;
    RnnSearchModel model(config, arena);
    model.initialise(9);
    save_model(folder, model);
    const auto read = load_model(folder, arena);
    EXPECT_EQ(read->type(), "rnn_search");
    EXPECT_EQ(read->config_json(), model.config_json());
    EXPECT_TRUE(std::ranges::equal(read->parameters().values(), model.parameters().values()));
    // The file of one configuration does not pass for another.
    RnnSearchConfig other = config;
    other.layer_norm = !config.layer_norm;
    io::write_json(folder / "config.json", to_json(other));
    EXPECT_THROW(load_model(folder, arena), Error);
  }
  std::filesystem::remove_all(folder);
}

TEST(RnnSearch, ShowsItsWeights) {
  Context context(1);
  RnnSearchModel model(small_config(), context.arena);
  randomise(model.parameters());
  Tape<float> tape(context);
  const auto maps = model.attend(tape, kSource, kTarget, {{AttentionKind::cross}, 0, true});
  ASSERT_EQ(maps.size(), 1u);
  const float* weight = maps[0].weights.data();
  for (int64_t s = 0; s < kTarget.offsets.count(); ++s) {
    ASSERT_EQ(weight, maps[0].weights.data() + maps[0].offsets[static_cast<size_t>(s)]);
    for (int64_t i = 0; i < kTarget.offsets.length(s); ++i) {
      double sum = 0;
      for (int64_t j = 0; j < kSource.offsets.length(s); ++j) sum += static_cast<double>(*weight++);
      EXPECT_NEAR(sum, 1, 1e-5);
    }
  }
  EXPECT_TRUE(model.attend(tape, kSource, kTarget, {{AttentionKind::encoder}, {}, false}).empty());
  // Recording changes no number.
  AttentionRecord<float> record;
  record.request = {{AttentionKind::cross}, {}, true};
  const auto& network = model.network();
  const auto memory = network.encode(tape, kSource);
  const Tokens input = decoder_input(kTarget, kPad);
  EXPECT_TRUE(tests::same_bits(network.decode(tape, input, memory).rows.value(),
                               network.decode(tape, input, memory, &record).rows.value()));
  EXPECT_EQ(record.entries.size(), 1U);
}

}  // namespace
}  // namespace gloss::models
