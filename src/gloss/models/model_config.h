// The configuration of a model of any architecture.
#pragma once

#include <cstdint>
#include <memory>
#include <variant>

#include "gloss/io/json_file.h"
#include "gloss/models/config.h"
#include "gloss/models/model.h"
#include "gloss/models/rnn_search_config.h"

namespace gloss::models {

using ModelConfig = std::variant<TransformerConfig, RnnSearchConfig>;

// By model_type. Throws Error naming file and key for what is wrong, and for a type that is none of ours.
ModelConfig model_config_from_json(const io::JsonObject& json);
// Throws Error naming the first number that makes no sense.
void validate(const ModelConfig& config);
// How many numbers a model of this configuration has, without making it.
int64_t parameter_count(const ModelConfig& config);
// Numbers that training keeps of a batch until the backward pass: of each token, and besides.
struct KeptNumbers {
  double per_token = 0, besides = 0;
};
KeptNumbers kept_numbers(const ModelConfig& config);
// A model of zeros, or one that waits for ParameterSet::load.
std::unique_ptr<Model> make_model(const ModelConfig& config, Arena& arena,
                                  autograd::Holding holding = autograd::Holding::numbers);

}  // namespace gloss::models
