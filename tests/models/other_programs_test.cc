// What a model folder holds for transformers and CTranslate2 besides what we read ourselves. Whether they
// agree with us is compared by tests/peers.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "gloss/io/json_file.h"
#include "gloss/io/safetensors.h"
#include "gloss/models/model_folder.h"
#include "gloss/models/transformer_model.h"
#include "gloss/nn/positions.h"

namespace gloss::models {
namespace {

namespace fs = std::filesystem;

TransformerConfig small_config() {
  TransformerConfig config;
  config.source_vocabulary = config.target_vocabulary = 11;
  config.d_model = 8;
  config.encoder = config.decoder = {1, 2, 16};
  config.symbols = {0, 10, 10};
  config.cap = 20;
  return config;
}

class OtherPrograms : public testing::Test {
 protected:
  OtherPrograms()
      : folder_(fs::path(testing::TempDir()) /
                (std::string("other_programs_") +
                 testing::UnitTest::GetInstance()->current_test_info()->name())) {
    fs::create_directories(folder_);
  }
  ~OtherPrograms() override { fs::remove_all(folder_); }

  // Saves a model of this configuration and opens its tensors.
  io::SafetensorsFile saved(const TransformerConfig& config) {
    TransformerModel model(config, arena_);
    model.initialise(3);
    save_model(folder_, model, {});
    values_.assign(model.parameters().values().begin(), model.parameters().values().end());
    return io::SafetensorsFile::open(folder_ / "model.safetensors");
  }
  // The folder read again holds the same numbers.
  void expect_opens() {
    const auto model = load_model(folder_, arena_);
    const auto values = std::as_const(*model).parameters().values();
    EXPECT_EQ(std::vector<float>(values.begin(), values.end()), values_);
  }

  Arena arena_;
  fs::path folder_;
  std::vector<float> values_;
  std::vector<Tensor<float>> kept_;  // while a writer borrows their numbers
};

// transformers ties the output layer and both embeddings, or none of them: with a shared table and an output
// layer of its own it looks for the two embeddings, and makes them up where they are missing.
TEST_F(OtherPrograms, SharedTableBesideAnUntiedOutputIsStoredForEachSide) {
  TransformerConfig config = small_config();
  config.share_embeddings = true;
  config.tie_output = false;
  const auto file = saved(config);
  const auto shared = file.read<float>("model.shared.weight", arena_);
  for (const char* name : {"model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight"}) {
    ASSERT_TRUE(file.has(name)) << name;
    EXPECT_TRUE(std::ranges::equal(file.read<float>(name, arena_).values(), shared.values())) << name;
  }
  expect_opens();
}

TEST_F(OtherPrograms, TiedModelsStoreTheirTableOnce) {
  TransformerConfig config = small_config();
  config.share_embeddings = config.tie_output = true;
  const auto file = saved(config);
  EXPECT_FALSE(file.has("model.encoder.embed_tokens.weight"));
  EXPECT_FALSE(file.has("model.encoder.embed_positions.weight"));
  expect_opens();
}

// They would compute sines and cosines in halves, but prefer positions that are stored.
TEST_F(OtherPrograms, PositionsInThePapersLayoutAreStored) {
  TransformerConfig config = small_config();
  config.positions = nn::PositionLayout::interleaved;
  const auto file = saved(config);
  const auto expected =
      nn::sinusoidal_positions<float>(arena_, 0, config.cap, config.d_model, nn::PositionLayout::interleaved);
  for (const char* name : {"model.encoder.embed_positions.weight", "model.decoder.embed_positions.weight"}) {
    ASSERT_TRUE(file.has(name)) << name;
    EXPECT_EQ(file.info(name).shape, (std::vector<int64_t>{config.cap, config.d_model}));
    EXPECT_TRUE(std::ranges::equal(file.read<float>(name, arena_).values(), expected.values())) << name;
  }
  expect_opens();
}

TEST_F(OtherPrograms, PreNormIsATypeOfItsOwn) {
  TransformerConfig config = small_config();
  saved(config);
  EXPECT_EQ(io::JsonObject::read(folder_ / "config.json").text("model_type"), "marian");
  config.pre_norm = true;
  saved(config);
  EXPECT_EQ(io::JsonObject::read(folder_ / "config.json").text("model_type"), "gloss_pre_norm");
  expect_opens();
}

// A folder of another program whose file holds positions means those, whatever its config.json does not say.
TEST_F(OtherPrograms, StoredPositionsTellTheLayout) {
  TransformerConfig config = small_config();
  config.positions = nn::PositionLayout::interleaved;
  saved(config);
  nlohmann::json json = io::read_json(folder_ / "config.json");
  json.erase("position_layout");
  io::write_json(folder_ / "config.json", json);
  const auto model = load_model(folder_, arena_);
  EXPECT_EQ(model->config_json().at("position_layout"), "interleaved");
}

TEST_F(OtherPrograms, LearnedPositionsAreRefused) {
  TransformerConfig config = small_config();
  config.positions = nn::PositionLayout::interleaved;
  const auto file = saved(config);
  io::SafetensorsWriter writer;
  for (const std::string& name : file.names()) {
    const Tensor<float> tensor = file.read<float>(name, arena_);
    if (name == "model.decoder.embed_positions.weight") tensor(3, 2) += 0.5F;
    std::vector<int64_t> shape = file.info(name).shape;
    writer.add<float>(name, shape, tensor.values());
    kept_.push_back(tensor);
  }
  writer.write(folder_ / "model.safetensors");
  try {
    load_model(folder_, arena_);
    FAIL() << "learned positions were taken for sinusoidal ones";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("model.decoder.embed_positions.weight"), std::string::npos);
  }
}

}  // namespace
}  // namespace gloss::models
