// Model folders in the layout of Hugging Face's MarianMT: config.json, model.safetensors,
// generation_config.json.
#pragma once

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "gloss/models/model.h"

namespace gloss::models {

// Opens a folder strictly: a missing, extra or misshapen tensor is an Error that names it. Numbers are read
// into `arena`.
std::unique_ptr<Model> load_model(const std::filesystem::path& folder, Arena& arena);
// A model that can only translate, score and attend: its matrices are held once, packed for products in this
// precision, or in the one that they were rounded to in the folder (float32 as a rule). Throws UsageError for
// a precision that the CPU does not serve.
std::unique_ptr<Model> load_packed_model(const std::filesystem::path& folder, Arena& arena,
                                         std::optional<kernels::Precision> precision = std::nullopt);

// Writes the three files, config.json last: its presence says that the model is whole. Tensors may be
// replaced, e.g. by averaged ones: `values` is laid out as model.parameters().values(); empty takes those of
// the model.
void save_model(const std::filesystem::path& folder, const Model& model, std::span<const float> values = {});

// Writes model.safetensors with the matrices of products rounded to a precision, and config.json: `config`,
// the JSON of the folder that the model was read from, with the precision. Opened again in that precision the
// model computes, bit for bit, what the unrounded one opened in it does.
void save_rounded_model(const std::filesystem::path& folder, const Model& model,
                        const nlohmann::ordered_json& config, kernels::Precision precision);

}  // namespace gloss::models
