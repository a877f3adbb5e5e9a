// gloss info: what a model folder holds, and the memory that translating with it takes.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "command.h"
#include "gloss/decode/translate_options.h"
#include "gloss/io/input_file.h"
#include "gloss/io/json_file.h"
#include "gloss/models/model_folder.h"
#include "gloss/models/model_format.h"
#include "option_table.h"
#include "streams.h"

namespace gloss::cli {
namespace {

using Json = nlohmann::ordered_json;

// What of config.json is shown, as far as a model has it.
constexpr const char* kArchitecture[] = {
    "model_type", "d_model", "encoder_layers", "decoder_layers", "encoder_attention_heads",
    "decoder_attention_heads", "encoder_ffn_dim", "decoder_ffn_dim", "activation_function", "position_layout",
    "relative_attention_num_buckets", "relative_attention_max_distance", "normalize_before",
    // of the recurrent model
    "embedding_size", "hidden_size", "attention_size", "maxout_size", "transition", "reset_gate",
    "layer_norm",
    // of both
    "tie_word_embeddings", "vocab_size", "decoder_vocab_size", models::kPrecisionKey};

struct InfoCommand {
  std::string model;
  int64_t source_length = 30, target_length = 30, batch = 64, beam = 5;
  models::CachePrecision cache_precision = models::CachePrecision::float32;
  bool json = false;

  template <class Self, class Visitor>
  static void fields(Self& self, Visitor&& visit) {
    visit(Field("source-length", "N", "pieces of a source sentence, for the memory of the cache")
              .range(1, 1 << 24),
          self.source_length);
    visit(Field("target-length", "N", "pieces of its translation").range(1, 1 << 24), self.target_length);
    visit(Field("batch", "N", "sentences that are translated at a time").range(1, 1 << 16), self.batch);
    visit(Field("beam", "N", "hypotheses of each").range(1, 4096), self.beam);
    visit(decode::cache_precision_field("of the keys and values that are kept"), self.cache_precision);
    visit(Field("json", "", "one JSON object instead of lines"), self.json);
  }
};

Json parameters_of(const models::Model& model) {
  int64_t embeddings = 0, encoder = 0, decoder = 0, output = 0;
  model.parameters().each_part([&](const std::string& name, const Tensor<float>& value) {
    if (name.find("embed_tokens") != std::string::npos || name == "model.shared.weight") {
      embeddings += value.size();
    } else if (name.starts_with("model.encoder.")) {
      encoder += value.size();
    } else if (name.starts_with("model.decoder.")) {
      decoder += value.size();
    } else {
      output += value.size();
    }
  });
  return {{"total", model.parameters().count()},
          {"embeddings", embeddings},
          {"encoder", encoder},
          {"decoder", decoder},
          {"output", output}};
}

Json cache_of(const models::Model& model, const InfoCommand& command) {
  const models::CacheCost cost = model.cache_cost(command.cache_precision);
  const models::CacheMemory memory =
      models::cache_memory(cost, {command.source_length, command.target_length, command.batch, command.beam});
  return {{"source_length", command.source_length},
          {"target_length", command.target_length},
          {"batch", command.batch},
          {"beam", command.beam},
          {"layers", cost.layers},
          {"precision", field_text(decode::cache_precision_field(""), command.cache_precision)},
          {"self_attention_bytes", memory.self_bytes},
          {"cross_attention_bytes", memory.memory_bytes},
          {"payload_bytes", memory.payload_bytes},
          {"shared_bytes", memory.shared_bytes},
          {"table_bytes", memory.table_bytes},
          {"spare_bytes", memory.spare_bytes}};
}

Json files_of(const std::filesystem::path& folder) {
  std::vector<std::pair<std::string, uint64_t>> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.is_regular_file()) files.emplace_back(entry.path().filename().string(), entry.file_size());
  }
  std::sort(files.begin(), files.end());
  Json json = Json::object();
  for (const auto& [name, bytes] : files) json[name] = bytes;
  return json;
}

std::string grouped(int64_t number) {  // 1,234,567
  std::string digits = std::to_string(number);
  for (auto at = static_cast<int64_t>(digits.size()) - 3; at > 0; at -= 3)
    digits.insert(static_cast<size_t>(at), 1, ',');
  return digits;
}

std::string text_of(const Json& value) {
  if (value.is_number_float()) return fmt::format("{:.4g}", value.get<double>());
  if (value.is_number_integer()) return grouped(value.get<int64_t>());
  return value.is_string() ? value.get<std::string>() : value.dump();
}

std::string text_of(const std::string& folder, const Json& info) {
  std::string out = fmt::format("{}\n\nparameters\n", folder);
  for (const auto& [part, count] : info["parameters"].items())
    out += fmt::format("  {:<24} {:>16}\n", part, grouped(count.get<int64_t>()));
  out += "\narchitecture\n";
  for (const char* key : kArchitecture) {
    if (info["config"].contains(key))
      out += fmt::format("  {:<24} {:>16}\n", key, text_of(info["config"][key]));
  }
  const Json& cache = info["cache"];
  const auto layers = cache["layers"].get<int64_t>();
  out += fmt::format("\nkey/value cache in bytes: {} layer{}, {} + {} pieces, batch {}, beam {}{}\n", layers,
                     layers == 1 ? "" : "s", cache["source_length"].get<int64_t>(),
                     cache["target_length"].get<int64_t>(), cache["batch"].get<int64_t>(),
                     cache["beam"].get<int64_t>(),
                     cache["precision"] == "float32" ? "" : ", " + cache["precision"].get<std::string>());
  const auto bytes = [&](const char* label, const char* key) {
    out += fmt::format("  {:<24} {:>16}\n", label, grouped(cache[key].get<int64_t>()));
  };
  const bool self_attention = cache["self_attention_bytes"].get<int64_t>() > 0;
  if (self_attention) bytes("self-attention", "self_attention_bytes");
  bytes("cross-attention", "cross_attention_bytes");
  if (self_attention) {
    bytes("together", "payload_bytes");
    bytes("less shared first tokens", "shared_bytes");
    out += fmt::format("  {:<24} {:>16} + {}\n", "tables + spare capacity",
                       grouped(cache["table_bytes"].get<int64_t>()),
                       grouped(cache["spare_bytes"].get<int64_t>()));
  }
  out += "\nfiles in bytes\n";
  for (const auto& [name, size] : info["files"].items())
    out += fmt::format("  {:<24} {:>16}\n", name, grouped(size.get<int64_t>()));
  if (info.contains("training")) {
    out += "\ntraining\n";
    for (const auto& [key, value] : info["training"].items()) {
      if (value.is_primitive()) out += fmt::format("  {:<24} {:>16}\n", key, text_of(value));
    }
  }
  return out;
}

int run(const InfoCommand& command) {
  const std::filesystem::path folder = command.model;
  Arena arena;
  const auto model = models::load_model(folder, arena);
  Json info = {{"parameters", parameters_of(*model)},
               {"config", model->config_json()},
               {"cache", cache_of(*model, command)},
               {"files", files_of(folder)}};
  const auto stored = io::read_json(folder / "config.json");
  if (stored.contains(models::kPrecisionKey))
    info["config"][models::kPrecisionKey] = stored[models::kPrecisionKey];
  if (io::exists(folder / "gloss.json")) info["training"] = io::read_json(folder / "gloss.json");
  Output output("");
  output.write(command.json ? info.dump(2) + "\n" : text_of(command.model, info));
  output.commit();
  return 0;
}

}  // namespace

Run add_info(CLI::App& program) {
  CLI::App& app = add_command(
      program,
      {"info", "MODEL [OPTIONS]", "what a model folder holds, and the memory of its cache",
       "Prints parameters by part, numbers of the architecture, files and their sizes, the training if\n"
       "the folder tells, and the bytes of the key/value cache for sentences of given lengths.",
       "gloss info models/en-de --source-length 30 --target-length 30 --batch 64 --beam 5"});
  auto typed = std::make_shared<Typed<InfoCommand>>();
  app.add_option("MODEL", typed->value.model, "model folder")->required();
  add_options(app, *typed);
  return [typed] { return run(typed->value); };
}

}  // namespace gloss::cli
