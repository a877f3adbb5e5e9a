#include <algorithm>
#include <memory>
#include <vector>

#include "gloss/io/float16.h"
#include "gloss/io/json_file.h"
#include "gloss/io/safetensors.h"
#include "gloss/models/model_config.h"
#include "gloss/models/model_folder.h"
#include "gloss/models/model_format.h"
#include "gloss/nn/positions.h"

namespace gloss::models {

using kernels::Precision;

namespace {

namespace fs = std::filesystem;

// What transformers and CTranslate2 would make differently of config.json, so that they read it instead:
// positions in the paper's layout, and a shared table of embeddings beside an output layer of its own
// (transformers ties the three or none). Readers of ours skip both, as is_redundant says.
void add_for_other_programs(io::SafetensorsWriter& writer, const nlohmann::ordered_json& config,
                            std::span<const float> shared, Arena& arena) {
  if (config.at("model_type") == kRnnSearchType) return;  // no other program reads it
  const auto d = config.at("d_model").get<int64_t>();
  for (const char* side : {"model.encoder.", "model.decoder."}) {
    const std::string prefix = side;
    if (!shared.empty() && !config.at("tie_word_embeddings").get<bool>())
      writer.add<float>(prefix + "embed_tokens.weight", {static_cast<int64_t>(shared.size()) / d, d}, shared);
    if (config.at("position_layout") != "interleaved") continue;
    const auto rows = config.at("max_position_embeddings").get<int64_t>();
    writer.add(prefix + "embed_positions.weight",
               nn::sinusoidal_positions<float>(arena, 0, rows, d, nn::PositionLayout::interleaved));
  }
}

nlohmann::ordered_json generation_json(const Model& model) {
  nlohmann::ordered_json j;
  const Symbols& symbols = model.symbols();
  if (symbols.pad >= 0) j["bad_words_ids"] = {{symbols.pad}};
  j["bos_token_id"] = symbols.end;
  j["decoder_start_token_id"] = symbols.start;
  j["eos_token_id"] = symbols.end;
  if (model.forced_end()) j["forced_eos_token_id"] = symbols.end;
  if (symbols.pad >= 0) j["pad_token_id"] = symbols.pad;
  j["max_length"] = model.cap() + 1;  // with the start symbol
  j["num_beams"] = 5;
  j["length_penalty"] = 1.0;
  j["early_stopping"] = "never";
  return j;
}

// Bytes that the writer borrows.
template <class T>
std::shared_ptr<std::vector<T>> shared_numbers(int64_t count) {
  return std::make_shared<std::vector<T>>(static_cast<size_t>(count));
}

// A matrix as the products of this precision have it.
void add_rounded(io::SafetensorsWriter& writer, const std::string& name, const Tensor<float>& value,
                 Precision precision) {
  const kernels::PackedMatrix packed =
      kernels::pack(kernels::matrix(value), kernels::Transpose::yes, precision);
  const int64_t rows = value.rows(), cols = value.cols();
  if (precision == Precision::int8) {
    const auto numbers = shared_numbers<int8_t>(rows * cols);
    const auto scales = shared_numbers<float>(rows);
    kernels::unpack_int8(packed, {numbers->data(), rows, cols, cols}, *scales);
    writer.add_bytes(name, io::Dtype::kI8, {rows, cols}, std::as_bytes(std::span(*numbers)), numbers);
    writer.add_bytes(name + kScaleSuffix, io::Dtype::kF32, {rows}, std::as_bytes(std::span(*scales)), scales);
    return;
  }
  const auto halves = shared_numbers<uint16_t>(rows * cols);
  std::vector<float> row(static_cast<size_t>(cols));
  for (int64_t i = 0; i < rows; ++i) {
    kernels::unpack_row(packed, i, row.data());
    std::ranges::transform(row, halves->begin() + i * cols,
                           io::float_to_bfloat16);  // exact: they are rounded
  }
  writer.add_bytes(name, io::Dtype::kBF16, {rows, cols}, std::as_bytes(std::span(*halves)), halves);
}

}  // namespace

void save_model(const fs::path& folder, const Model& model, std::span<const float> values) {
  const auto& parameters = model.parameters();
  const float* base = parameters.values().data();
  require(values.empty() || values.size() == parameters.values().size(),
          "{} numbers do not fill a model of {}", values.size(), parameters.values().size());
  io::SafetensorsWriter writer;
  writer.set_metadata("format", "pt");
  std::span<const float> shared;
  parameters.each_part([&](const std::string& name, const Tensor<float>& value) {
    const float* from = values.empty() ? value.data() : values.data() + (value.data() - base);
    const std::span<const float> part(from, static_cast<size_t>(value.size()));
    writer.add<float>(name, file_shape(name, value.shape()), part);
    if (name == "model.shared.weight") shared = part;
  });
  const nlohmann::ordered_json config = model.config_json();
  Arena arena;
  add_for_other_programs(writer, config, shared, arena);
  writer.write(folder / "model.safetensors");
  io::write_json(folder / "generation_config.json", generation_json(model));
  io::write_json(folder / "config.json", config);
}

void save_rounded_model(const fs::path& folder, const Model& model, const nlohmann::ordered_json& config,
                        Precision precision) {
  io::SafetensorsWriter writer;
  writer.set_metadata("format", "pt");
  for (const autograd::Parameter<float>& parameter : model.parameters().all()) {
    autograd::ParameterSet<float>::each_part_of(
        parameter, parameter.value, [&](const std::string& name, const Tensor<float>& value) {
          if (parameter.multiplies && value.shape().rank() == 2 && precision != Precision::float32) {
            add_rounded(writer, name, value, precision);
          } else {
            writer.add<float>(name, file_shape(name, value.shape()), value.values());
          }
        });
  }
  writer.write(folder / "model.safetensors");
  nlohmann::ordered_json rounded = config;
  rounded[kPrecisionKey] = kernels::precision_name(precision);
  io::write_json(folder / "config.json", rounded);
}

}  // namespace gloss::models
