// Model folders in the layout of Hugging Face's MarianMT: config.json, model.safetensors,
// generation_config.json.
#pragma once

#include <filesystem>
#include <memory>

#include "gloss/models/model.h"

namespace gloss::models {

// Opens a folder strictly: a missing, extra or misshapen tensor is an Error that names it. Numbers are read
// into `arena`; with Holding::packed the model can only translate, score and attend, and its matrices are
// held once, packed.
std::unique_ptr<Model> load_model(const std::filesystem::path& folder, Arena& arena,
                                  autograd::Holding holding = autograd::Holding::numbers);

// Writes the three files, config.json last: its presence says that the model is whole. Tensors may be
// replaced, e.g. by averaged ones: `values` is laid out as model.parameters().values(); empty takes those of
// the model.
void save_model(const std::filesystem::path& folder, const Model& model, std::span<const float> values = {});

}  // namespace gloss::models
