// A model whose matrices exist in packed form only computes what the same model computes with plain numbers.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

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
      expect_cache_changes_nothing(*packed, context_, tests::random_sequences({12, 5}, 1, 65, kEnd, 3), 60,
                                   2e-5F);
    });
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

TEST_F(Packed, CannotBeTrained) {
  const auto model = make_model(transformer(), context_.arena);
  save_model(folder_, *model);
  const auto packed = load_packed_model(folder_, context_.arena);
  EXPECT_THROW(packed->parameters().allocate_gradients(context_.arena), Error);
}

}  // namespace
}  // namespace gloss::models
