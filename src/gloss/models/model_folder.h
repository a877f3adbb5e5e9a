// Model folders in the layout of Hugging Face's MarianMT: config.json, model.safetensors,
// generation_config.json.
#pragma once

#include <filesystem>
#include <memory>

#include "gloss/models/model.h"

namespace gloss::models {

// Opens a folder strictly: a missing, extra or misshapen tensor is an Error that names it. Numbers are read
// into `arena`.
std::unique_ptr<Model> load_model(const std::filesystem::path& folder, Arena& arena);
// A model that can only translate, score and attend: its matrices are held once, packed for products in this
// precision. Throws UsageError for a precision that the CPU does not serve.
std::unique_ptr<Model> load_packed_model(const std::filesystem::path& folder, Arena& arena,
                                         kernels::Precision precision = kernels::Precision::float32);

// Writes the three files, config.json last: its presence says that the model is whole. Tensors may be
// replaced, e.g. by averaged ones: `values` is laid out as model.parameters().values(); empty takes those of
// the model.
void save_model(const std::filesystem::path& folder, const Model& model, std::span<const float> values = {});

}  // namespace gloss::models
