// A model whose matrices exist in packed form only computes what the same model computes with plain numbers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>

#include "gloss/io/json_file.h"
#include "gloss/io/safetensors.h"
#include "gloss/models/model_config.h"
#include "gloss/models/model_folder.h"
#include "models/split_beam.h"
#include "support/compare.h"
#include "support/isas.h"
#include "support/random.h"

namespace gloss::models {
namespace {

using autograd::Tape;
using tests::same_bits;

constexpr int32_t kEnd = 0, kPad = 66;

TransformerConfig transformer() {
  TransformerConfig config;
  config.source_vocabulary = config.target_vocabulary = 67;  // a whole panel and a ragged one
  config.d_model = 20;
  config.encoder = {2, 2, 36};
  config.decoder = {2, 4, 24};
  config.symbols = {kEnd, kPad, kPad};
  config.zero_start_embedding = true;
  return config;
}

RnnSearchConfig recurrent() {
  RnnSearchConfig config;
  config.source_vocabulary = config.target_vocabulary = 67;
  config.embedding = 18;
  config.hidden = 22;
  config.attention = 7;
  config.maxout = 9;
  config.symbols = {kEnd, kPad, kPad};
  return config;
}

// Tables that are shared or not, biases by distance, products in two parts.
std::vector<ModelConfig> configurations() {
  TransformerConfig apart = transformer();
  apart.share_embeddings = apart.tie_output = false;
  apart.source_vocabulary = 70;
  apart.pre_norm = true;
  TransformerConfig relative = transformer();
  relative.positions = nn::PositionLayout::relative;
  relative.relative = {8, 6};
  RnnSearchConfig single = recurrent();
  single.transition = Transition::single;
  single.reset_gate = nn::ResetGate::before;
  RnnSearchConfig tied = recurrent();
  tied.share_embeddings = tied.tie_output = true;
  tied.maxout = tied.embedding;
  return {transformer(), apart, relative, recurrent(), single, tied};
}

class Packed : public testing::Test {
 protected:
  Packed() : folder_(std::filesystem::path(testing::TempDir()) / ("packed_" + std::to_string(::getpid()))) {
    std::filesystem::create_directories(folder_);
  }
  ~Packed() override { std::filesystem::remove_all(folder_); }

  Context context_{2};
  std::filesystem::path folder_;
  const Tokens source_ = tests::random_sequences({7, 1, 12}, 1, 65, kEnd, 1),
               target_ = tests::random_sequences({5, 9, 2}, 1, 65, kEnd, 2);
};

TEST_F(Packed, ComputesTheSameOnEveryInstructionSet) {
  for (const ModelConfig& config : configurations()) {
    const auto model = make_model(config, context_.arena);
    model->initialise(3);
    save_model(folder_, *model);
    SCOPED_TRACE(model->config_json().dump());
    tests::on_every_isa([&](kernels::Isa) {
      Tape<float> tape(context_);
      const auto numbers = load_model(folder_, context_.arena);
      const auto packed = load_packed_model(folder_, context_.arena);
      EXPECT_TRUE(same_bits(std::span<const float>(numbers->log_probabilities(tape, source_, target_)),
                            std::span<const float>(packed->log_probabilities(tape, source_, target_))));
      AttentionRequest request;
      request.kinds = {AttentionKind::cross};
      const auto expected = numbers->attend(tape, source_, target_, request),
                 maps = packed->attend(tape, source_, target_, request);
      ASSERT_EQ(maps.size(), expected.size());
      for (size_t i = 0; i < maps.size(); ++i) {
        EXPECT_TRUE(same_bits(std::span<const float>(maps[i].weights.values()),
                              std::span<const float>(expected[i].weights.values())));
      }
      const Tokens source = tests::random_sequences({12, 5}, 1, 65, kEnd, 3);
      expect_cache_changes_nothing(*packed, context_, source, 60, 2e-5F);
      if (packed->type() != kRnnSearchType)  // to the bit, since numbers that differ could round apart
        expect_cache_changes_nothing(*packed, context_, source, 60, 0, CachePrecision::bfloat16);
    });
  }
}

// Logits of a few tokens are those of the same tokens among all, for every model and precision.
TEST_F(Packed, LimitsTheOutputToTheSameBits) {
  const std::vector<std::vector<int32_t>> limits{{0, 5, 66}, {}, {64}, {0, 1, 2, 3, 30, 31, 32, 33, 40, 65}};
  for (const ModelConfig& config : configurations()) {
    const auto model = make_model(config, context_.arena);
    model->initialise(3);
    save_model(folder_, *model);
    SCOPED_TRACE(model->config_json().dump());
    const auto plain = model->decoder_state(context_, Caching::on);
    EXPECT_FALSE(plain->limit_output(limits[0])) << "weights that are trained are not packed";
    for (const auto precision :
         {kernels::Precision::float32, kernels::Precision::bfloat16, kernels::Precision::int8}) {
      if (!kernels::precision_served(precision)) continue;
      tests::on_every_isa([&](kernels::Isa) {
        if (!kernels::precision_served(precision)) return;
        const auto packed = load_packed_model(folder_, context_.arena, precision);
        const auto state = packed->decoder_state(context_, Caching::on);
        state->add(std::vector<int>{0, 1, 2}, source_);
        const Tensor<float> states =
            state->advance(std::vector<Step>{{0, 0, kPad}, {1, 0, kPad}, {2, 0, kPad}});
        const Tensor<float> all = state->logits(states);
        const std::vector<float> kept(all.values().begin(), all.values().end());
        for (const auto& tokens : limits) {
          ASSERT_TRUE(state->limit_output(tokens));
          const int64_t columns = tokens.empty() ? 67 : std::ssize(tokens);
          int64_t seen = 0;
          state->logits_in_parts(states, {64, 64}, [&](int64_t row, int64_t col, kernels::Matrix<float> y) {
            EXPECT_LE(col + y.cols, columns);
            for (int64_t i = 0; i < y.rows; ++i) {
              for (int64_t j = 0; j < y.cols; ++j) {
                const int64_t token = tokens.empty() ? col + j : tokens[static_cast<size_t>(col + j)];
                EXPECT_EQ(y.row(i)[j], kept[static_cast<size_t>((row + i) * 67 + token)]);
              }
            }
            seen += y.rows * y.cols;
          });
          EXPECT_EQ(seen, 3 * columns);
        }
        EXPECT_EQ(packed->decoder_state(context_, Caching::off)->limit_output(limits[0]), false);
      });
    }
  }
}

TEST_F(Packed, HoldsMatricesOnce) {
  TransformerConfig config = transformer();
  config.source_vocabulary = config.target_vocabulary = 5000;
  config.symbols.pad = config.symbols.start = 4999;
  config.d_model = 64;
  const auto model = make_model(config, context_.arena);
  model->initialise(3);
  save_model(folder_, *model);
  Arena arena;
  const auto packed = load_packed_model(folder_, arena);
  EXPECT_EQ(packed->parameters().count(), model->parameters().count());
  int64_t vectors = 0;
  packed->parameters().each_part([&](const std::string&, const Tensor<float>& value) {
    EXPECT_EQ(value.has_numbers(), value.shape().rank() == 1);
    if (value.shape().rank() == 1) vectors += value.size();
  });
  // 16 numbers a vector of padding, and the table of 512 sinusoids.
  const auto most = static_cast<size_t>((vectors + 16 * 60) * 4 + 512 * 64 * 4);
  EXPECT_LE(arena.counters().bytes_requested, most);
}

// Rounded when it is written or when it is opened: the same bits.
TEST_F(Packed, RoundedFoldersComputeWhatRoundingOnOpeningDoes) {
  const std::filesystem::path rounded = folder_ / "rounded";
  std::filesystem::create_directories(rounded);
  for (const kernels::Precision precision : {kernels::Precision::bfloat16, kernels::Precision::int8}) {
    if (!kernels::precision_served(precision)) continue;
    SCOPED_TRACE(kernels::precision_name(precision));
    for (const ModelConfig& config : configurations()) {
      const auto model = make_model(config, context_.arena);
      model->initialise(3);
      save_model(folder_, *model);
      const nlohmann::ordered_json json = model->config_json();
      SCOPED_TRACE(json.dump());
      save_rounded_model(rounded, *model, json, precision);
      Tape<float> tape(context_);
      const auto scores = [&](const std::unique_ptr<Model>& of) {
        return of->log_probabilities(tape, source_, target_);
      };
      const auto want = scores(load_packed_model(folder_, context_.arena, precision));
      EXPECT_EQ(scores(load_packed_model(rounded, context_.arena)), want);
      EXPECT_EQ(scores(load_packed_model(rounded, context_.arena, precision)), want);
      EXPECT_NE(scores(load_packed_model(folder_, context_.arena)), want);
      // As plain numbers they are the rounded ones, whichever way they are held.
      EXPECT_EQ(scores(load_model(rounded, context_.arena)),
                scores(load_packed_model(rounded, context_.arena, kernels::Precision::float32)));
      EXPECT_LT(std::filesystem::file_size(rounded / "model.safetensors"),
                std::filesystem::file_size(folder_ / "model.safetensors"));
    }
  }
}

TEST_F(Packed, RefusesDamagedRoundedFolders) {
  const auto model = make_model(transformer(), context_.arena);
  model->initialise(3);
  const auto error_with = [&](const std::string& name, auto change) {
    save_rounded_model(folder_, *model, model->config_json(), kernels::Precision::int8);
    const auto file = folder_ / "model.safetensors";
    const uint64_t header = 8 + [&] {
      uint64_t length = 0;
      std::ifstream(file, std::ios::binary).read(reinterpret_cast<char*>(&length), 8);
      return length;
    }();
    const uint64_t begin = io::SafetensorsFile::open(file).info(name).begin;
    EXPECT_GE(begin, header);
    std::fstream bytes(file, std::ios::in | std::ios::out | std::ios::binary);
    bytes.seekp(static_cast<std::streamoff>(begin));
    change(bytes);
    bytes.close();
    try {
      load_packed_model(folder_, context_.arena);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  const std::string matrix = "model.decoder.layers.0.fc1.weight";
  const auto write = [](auto value) {
    return [value](std::fstream& file) { file.write(reinterpret_cast<const char*>(&value), sizeof(value)); };
  };
  EXPECT_THAT(error_with(matrix, write(int8_t{-128})), testing::HasSubstr("holds -128"));
  EXPECT_THAT(error_with(matrix + ".scale", write(-1.0F)), testing::HasSubstr("negative or no number"));
  EXPECT_THAT(error_with(matrix + ".scale", write(HUGE_VALF)), testing::HasSubstr("negative or no number"));
  EXPECT_EQ(error_with(matrix, write(int8_t{5})), "");

  save_model(folder_, *model);
  nlohmann::json config = io::read_json(folder_ / "config.json");
  config["weight_precision"] = "int4";
  io::write_json(folder_ / "config.json", config);
  EXPECT_THROW(load_packed_model(folder_, context_.arena), Error);
}

TEST_F(Packed, CannotBeTrained) {
  const auto model = make_model(transformer(), context_.arena);
  save_model(folder_, *model);
  const auto packed = load_packed_model(folder_, context_.arena);
  EXPECT_THROW(packed->parameters().allocate_gradients(context_.arena), Error);
}

}  // namespace
}  // namespace gloss::models
