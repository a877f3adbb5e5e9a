// From options to a run: what presets fill in, what is checked before work starts, and what a run may change.
#pragma once

#include <cstdint>
#include <string>

#include "gloss/data/batches.h"
#include "gloss/models/model_config.h"
#include "gloss/text/tokenizer.h"
#include "gloss/train/options.h"
#include "gloss/train/trainer.h"

namespace gloss::train {

// Presets, --paper and the schedule fill in what was not typed. Throws UsageError for a value that its field
// does not allow and for options that make no sense together.
TrainOptions resolve(Typed<TrainOptions> options);

text::InvalidUtf8 invalid_utf8(const TrainOptions& options);
data::BatchOptions batch_options(const TrainOptions& options);
// Trains the vocabulary on the training texts; tells where it came out smaller than asked for, and that it is
// being made where `pairs` are so many that somebody waits for it.
text::Tokenizer make_tokenizer(const TrainOptions& options, int64_t pairs, Reporter& reporter);
models::ModelConfig model_config(const TrainOptions& options, const text::Tokenizer& tokenizer);

struct Fingerprints {
  std::string training, validation, links;  // texts and word links; "" where there are none
};
inline constexpr const char* kWordLinks = "word_links";  // the key of theirs in what identity() writes
// What a continued run has to have in common with its beginning, as a JSON text: every option, presets and
// --paper filled in, but limits, threads and file names, and the fingerprints.
std::string identity(const TrainOptions& options, const Fingerprints& texts);

// Bytes that training on so many pairs takes, estimated: parameters with gradients and moments, and the
// activations of a batch.
double memory_estimate(const TrainOptions& options, const models::ModelConfig& config, int64_t pairs);
// The configuration; throws where training it takes more memory than the machine has at all.
models::ModelConfig affordable(const TrainOptions& options, models::ModelConfig config, int64_t pairs);

}  // namespace gloss::train
