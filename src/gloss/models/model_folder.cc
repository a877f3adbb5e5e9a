#include "gloss/models/model_folder.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <set>

#include "gloss/io/input_file.h"
#include "gloss/io/json_file.h"
#include "gloss/io/quote.h"
#include "gloss/io/safetensors.h"
#include "gloss/models/model_config.h"
#include "gloss/nn/positions.h"

namespace gloss::models {

using autograd::Holding;
using kernels::Precision;

namespace {

namespace fs = std::filesystem;

// The output bias is a row [1, V] in files and a vector [V] here.
std::vector<int64_t> file_shape(const std::string& name, const Tensor<float>& value) {
  if (name == "final_logits_bias") return {1, value.size()};
  std::vector<int64_t> shape;
  shape.reserve(static_cast<size_t>(value.shape().rank()));
  for (int i = 0; i < value.shape().rank(); ++i) shape.push_back(value.shape()[i]);
  return shape;
}

std::string shape_text(std::span<const int64_t> shape) {
  return shape.empty() ? "[]" : Shape(shape).text();
}

constexpr const char* kPositions[] = {"model.encoder.embed_positions.weight",
                                      "model.decoder.embed_positions.weight"};

// What the tensors say of the configuration. Positions that a file holds are what other programs add,
// whatever config.json says: they tell the layout.
void adapt(TransformerConfig& config, const io::SafetensorsFile& file, Arena& arena) {
  constexpr int64_t kRows = 64;        // that are looked at
  constexpr float kTolerance = 0.01F;  // bfloat16 keeps three digits
  for (const char* name : kPositions) {
    if (!file.has(name)) continue;
    require(nn::is_sinusoidal(config.positions),
            "{}: tensor '{}' has no place beside the relative positions that config.json describes",
            file.path().string(), name);
    const std::vector<int64_t>& shape = file.info(name).shape;
    require(shape.size() == 2 && shape[1] == config.d_model,
            "{}: tensor '{}' must have a row of {} numbers a position, not the shape {}",
            file.path().string(), name, config.d_model,
            shape.size() <= Shape::kMaxRank ? shape_text(shape) : "of more dimensions");
    const Tensor<float> stored = file.read<float>(name, arena);
    const int64_t rows = std::min(kRows, shape[0]);
    const auto agrees = [&](nn::PositionLayout layout) {
      const Tensor<float> made = nn::sinusoidal_positions<float>(arena, 0, rows, config.d_model, layout);
      return std::ranges::equal(made.values(), stored.values().first(made.values().size()),
                                [](float a, float b) { return std::abs(a - b) <= kTolerance; });
    };
    const auto other = config.positions == nn::PositionLayout::halves ? nn::PositionLayout::interleaved
                                                                      : nn::PositionLayout::halves;
    if (agrees(config.positions)) continue;
    require(
        agrees(other),
        "{}: the numbers of '{}' are no sinusoidal positions, and only those can be computed; models with "
        "learned positions cannot be opened",
        file.path().string(), name);
    config.positions = other;
  }
}

// Tensors that some writers store though the configuration makes them: sinusoids, and copies of a tied table.
bool is_redundant(const std::string& name, const io::SafetensorsFile& file) {
  if (std::ranges::find(kPositions, name) != std::end(kPositions)) return true;
  for (const char* tied :
       {"lm_head.weight", "model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight"}) {
    if (name != tied || !file.has("model.shared.weight")) continue;
    const io::TensorInfo &copy = file.info(name), &table = file.info("model.shared.weight");
    if (copy.dtype != table.dtype || copy.shape != table.shape) return false;
    std::vector<std::byte> a(copy.bytes), b(table.bytes);
    file.read_bytes(name, a);
    file.read_bytes("model.shared.weight", b);
    return a == b;
  }
  return false;
}

// Before memory is asked for: the file holds as many numbers as the configuration promises.
void require_count(const io::SafetensorsFile& file, int64_t expected) {
  int64_t found = 0;
  for (const std::string& name : file.names()) found += file.info(name).count();
  require(found >= expected, "{}: config.json describes a model of {} numbers, the file holds {}",
          file.path().string(), expected, found);
}

void load_tensors(const io::SafetensorsFile& file, autograd::ParameterSet<float>& parameters,
                  Precision precision) {
  const fs::path& path = file.path();
  std::set<std::string> used;
  const auto read = [&](const std::string& name, const Tensor<float>& value) {
    require(file.has(name), "{}: tensor '{}' is missing, though config.json asks for it", path.string(),
            name);
    const std::vector<int64_t> expected = file_shape(name, value);
    const std::vector<int64_t>& found = file.info(name).shape;
    require(found == expected, "{}: tensor '{}' must have shape {} by config.json, not {}", path.string(),
            name, shape_text(expected),
            found.size() <= Shape::kMaxRank ? shape_text(found) : "of more dimensions");
    file.read_into<float>(name, value.values());
    used.insert(name);
  };
  parameters.load(read, precision);
  for (const std::string& name : file.names()) {
    require(used.contains(name) || is_redundant(name, file),
            "{}: tensor '{}' has no place in the model that config.json describes", path.string(), name);
  }
}

// A recurrent model has no positions.
void adapt(RnnSearchConfig&, const io::SafetensorsFile&, Arena&) {}

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

}  // namespace

namespace {

std::unique_ptr<Model> load(const fs::path& folder, Arena& arena, Holding holding, Precision precision) {
  require(io::exists(folder), "there is no model folder {}: check the path", io::shown(folder));
  require(io::is_folder(folder), "{} is a file, but a model folder is expected: name the folder it is in",
          io::shown(folder));
  if (!io::exists(folder / "config.json")) {
    fail("{} does not exist: {}", io::shown(folder / "config.json"),
         io::exists(folder / "training")
             ? "a training into this folder has not come to its first validation; give its command again"
             : "this is no model folder");
  }
  const auto json = io::JsonObject::read(folder / "config.json");
  ModelConfig config = model_config_from_json(json);
  const auto file = io::SafetensorsFile::open(folder / "model.safetensors");
  require_count(file, parameter_count(config));
  std::visit([&](auto& own) { adapt(own, file, arena); }, config);
  auto model = make_model(config, arena, holding);
  load_tensors(file, model->parameters(), precision);
  return model;
}

}  // namespace

std::unique_ptr<Model> load_model(const fs::path& folder, Arena& arena) {
  return load(folder, arena, Holding::numbers, Precision::float32);
}

std::unique_ptr<Model> load_packed_model(const fs::path& folder, Arena& arena, Precision precision) {
  kernels::require_precision(precision);
  return load(folder, arena, Holding::packed, precision);
}

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
    writer.add<float>(name, file_shape(name, value), part);
    if (name == "model.shared.weight") shared = part;
  });
  const nlohmann::ordered_json config = model.config_json();
  Arena arena;
  add_for_other_programs(writer, config, shared, arena);
  writer.write(folder / "model.safetensors");
  io::write_json(folder / "generation_config.json", generation_json(model));
  io::write_json(folder / "config.json", config);
}

}  // namespace gloss::models
