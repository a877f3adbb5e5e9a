#include "gloss/train/setup.h"

#include <unistd.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "gloss/io/options_json.h"

namespace gloss::train {

TrainOptions resolve(Typed<TrainOptions> options) {
  TrainOptions& o = options.value;
  check_options(o);  // the command line has done so, a program may not have
  if (o.train.size() != 2) throw UsageError("--train takes two files: the source text and its translation");
  if (o.valid.size() != 2) throw UsageError("--valid takes two files: the source text and its translation");
  if (o.output.empty()) throw UsageError("--output is missing: the folder to put the model in");
  kernels::require_precision(o.precision);
  Typed<models::ModelOptions> model{o, options.typed};
  models::resolve(model);
  static_cast<models::ModelOptions&>(o) = model.value;
  if (o.recurrent() && o.schedule == Schedule::paper)
    throw UsageError("--schedule paper counts with a Transformer's d_model: choose inverse-sqrt");
  if (o.paper) {
    options.suggest(o.schedule, Schedule::paper);
    options.suggest(o.label_smoothing, 0.1);
  }
  // A rate means something by its schedule alone: 1 is the paper's factor, and as a peak it would diverge.
  if (o.schedule == Schedule::paper) {
    options.suggest(o.learning_rate, 1.0);
    options.suggest(o.warmup, 4000);
    options.suggest(o.clip_norm, 0.0);
  } else if (o.preset != "tiny") {
    options.suggest(o.learning_rate, o.preset == "small" || o.preset == "rnn-small" ? 1e-3 : 5e-4);
  }
  if (!o.guided_alignment.empty()) o.guided = {o.guided_layer, o.guided_head};
  for (const char* name : {"guided-layer", "guided-head", "guided-weight"}) {
    if (options.typed.contains(name) && !o.guided)
      throw UsageError(
          fmt::format("--{} says how to learn word links: give --guided-alignment FILE too", name));
  }
  if (o.threads == 0) o.threads = std::max(1u, std::thread::hardware_concurrency());
  return o;
}

text::InvalidUtf8 invalid_utf8(const TrainOptions& options) {
  return options.replace_invalid ? text::InvalidUtf8::replace : text::InvalidUtf8::fail;
}

data::BatchOptions batch_options(const TrainOptions& options) {
  data::BatchOptions batches;
  batches.target_tokens = options.batch_tokens;
  batches.max_length = options.max_length;
  batches.seed = static_cast<uint64_t>(options.seed);
  return batches;
}

text::Tokenizer make_tokenizer(const TrainOptions& options, int64_t pairs, Reporter& reporter) {
  constexpr int64_t kManyPairs = 100'000;
  if (pairs >= kManyPairs)
    reporter.progress(
        fmt::format("making a vocabulary of {} pieces from {} pairs", options.vocab_size, pairs));
  text::TokenizerOptions wanted;
  wanted.segmenter.kind = options.segmentation;
  wanted.segmenter.character_coverage = options.character_coverage;
  wanted.segmenter.seed = static_cast<uint64_t>(options.seed);
  wanted.segmenter.invalid = invalid_utf8(options);
  wanted.vocabulary_size = static_cast<int32_t>(options.vocab_size);
  wanted.joint = options.joint;
  text::TrainedTokenizer made = text::train_tokenizer(options.train[0], options.train[1], wanted);
  for (const std::string& message : made.messages) reporter.message(message);
  return std::move(made.tokenizer);
}

models::ModelConfig model_config(const TrainOptions& options, const text::Tokenizer& tokenizer) {
  const text::Vocabulary& target = tokenizer.target_vocabulary();
  return models::configure(options, {tokenizer.source_vocabulary().size(),
                                     target.size(),
                                     tokenizer.shares_vocabulary(),
                                     {target.end_id(), target.pad_id(), target.pad_id()}});
}

std::string identity(const TrainOptions& options, const Fingerprints& texts) {
  nlohmann::ordered_json j = io::options_to_json(options);
  for (const char* may_change :
       {"train", "valid", "output", "overwrite", "replace_invalid", "minutes", "max_updates", "max_epochs",
        "patience", "save_every", "threads", "preset", "paper", "guided_alignment"}) {
    j.erase(may_change);
  }
  j["training_text"] = texts.training;
  j["validation_text"] = texts.validation;
  j[kWordLinks] = texts.links;
  return j.dump(2);
}

double memory_estimate(const TrainOptions& o, const models::ModelConfig& config, int64_t pairs) {
  // In floating point, because whatever can be asked for must not overflow.
  const models::KeptNumbers kept = models::kept_numbers(config);
  const double tokens = std::min(static_cast<double>(o.batch_tokens),
                                 static_cast<double>(pairs) * static_cast<double>(o.max_length + 1));
  // A quarter more: blocks come in sizes, and batches of other lengths ask for other sizes.
  const double activations = 1.25 * (tokens * kept.per_token + kept.besides);
  return sizeof(float) * (4 * static_cast<double>(models::parameter_count(config)) + activations);
}

models::ModelConfig affordable(const TrainOptions& options, models::ModelConfig config, int64_t pairs) {
  models::validate(config);
  const double bytes = memory_estimate(options, config, pairs);
  const double there =
      static_cast<double>(::sysconf(_SC_PHYS_PAGES)) * static_cast<double>(::sysconf(_SC_PAGE_SIZE));
  require(bytes <= there,
          "the training would take about {:.0f} MB of memory, and this machine has {:.0f}: ask for a smaller "
          "--batch-tokens (--accumulate makes up for it) or a smaller model",
          bytes / 0x1p20, there / 0x1p20);
  return config;
}

}  // namespace gloss::train
