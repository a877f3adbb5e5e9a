// From options to a run: what presets fill in, what is checked before work starts, and what a run may change.
#pragma once

#include <memory>

#include "gloss/models/transformer_model.h"
#include "gloss/text/tokenizer.h"
#include "gloss/train/options.h"
#include "gloss/train/trainer.h"

namespace gloss::train {

// Presets and --paper fill in what was not typed. Throws UsageError for options that make no sense together.
TrainOptions resolve(Typed<TrainOptions> options);

models::TransformerConfig model_config(const TrainOptions& options, const text::Tokenizer& tokenizer);

// What a continued run has to have in common with its beginning, as a JSON text: every option, presets and
// --paper filled in, but limits, threads and file names, and fingerprints of both texts.
std::string identity(const TrainOptions& options, const std::string& corpus, const std::string& validation);

// Bytes that training takes, estimated: parameters with gradients and moments, and the activations of a
// batch.
uint64_t memory_estimate(const TrainOptions& options, const models::TransformerConfig& config, size_t values);

}  // namespace gloss::train
