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
  const models::TransformerConfig preset = models::transformer_preset(o.preset);
  // 0 stands for the preset's number, typed or not.
  const auto fill = [](int64_t& field, int64_t value) {
    if (field == 0) field = value;
  };
  fill(o.d_model, preset.d_model);
  fill(o.encoder_layers, preset.encoder.layers);
  fill(o.decoder_layers, preset.decoder.layers);
  fill(o.encoder_heads, preset.encoder.heads);
  fill(o.decoder_heads, preset.decoder.heads);
  fill(o.encoder_ff, preset.encoder.d_ff);
  fill(o.decoder_ff, preset.decoder.d_ff);
  if (o.paper) {
    models::TransformerConfig paper;
    models::apply_paper(paper);
    options.suggest(o.positions, paper.positions);
    options.suggest(o.activation, paper.activation);
    options.suggest(o.pre_norm, paper.pre_norm);
    options.suggest(o.scale_embedding, paper.scale_embedding);
    options.suggest(o.dropout, paper.dropout);
    options.suggest(o.attention_dropout, paper.attention_dropout);
    options.suggest(o.activation_dropout, paper.activation_dropout);
    options.suggest(o.schedule, Schedule::paper);
    options.suggest(o.label_smoothing, 0.1);
  }
  // A rate means something by its schedule alone: 1 is the paper's factor, and as a peak it would diverge.
  if (o.schedule == Schedule::paper) {
    options.suggest(o.learning_rate, 1.0);
    options.suggest(o.warmup, 4000);
    options.suggest(o.clip_norm, 0.0);
  } else if (o.preset != "tiny") {
    options.suggest(o.learning_rate, o.preset == "small" ? 1e-3 : 5e-4);
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

models::TransformerConfig model_config(const TrainOptions& o, const text::Tokenizer& tokenizer) {
  models::TransformerConfig config;
  config.source_vocabulary = tokenizer.source_vocabulary().size();
  config.target_vocabulary = tokenizer.target_vocabulary().size();
  config.d_model = o.d_model;
  config.encoder = {o.encoder_layers, o.encoder_heads, o.encoder_ff};
  config.decoder = {o.decoder_layers, o.decoder_heads, o.decoder_ff};
  config.activation = o.activation;
  config.positions = o.positions;
  config.scale_embedding = o.scale_embedding;
  config.pre_norm = o.pre_norm;
  config.share_embeddings = tokenizer.shares_vocabulary();
  config.tie_output = o.tie_output;
  config.dropout = o.dropout;
  config.attention_dropout = o.attention_dropout;
  config.activation_dropout = o.activation_dropout;
  config.symbols.end = tokenizer.target_vocabulary().end_id();
  config.symbols.pad = tokenizer.target_vocabulary().pad_id();
  config.symbols.start = config.symbols.pad;
  config.zero_start_embedding = true;
  models::validate(config);
  return config;
}

std::string identity(const TrainOptions& options, const std::string& corpus, const std::string& validation) {
  nlohmann::ordered_json j = io::options_to_json(options);
  for (const char* may_change :
       {"train", "valid", "output", "overwrite", "replace_invalid", "minutes", "max_updates", "max_epochs",
        "patience", "save_every", "threads", "preset", "paper"}) {
    j.erase(may_change);
  }
  j["training_text"] = corpus;
  j["validation_text"] = validation;
  return j.dump(2);
}

double memory_estimate(const TrainOptions& o, const models::TransformerConfig& config, int64_t pairs) {
  // In floating point, because whatever can be asked for must not overflow. Rows that backward keeps, a token
  // and layer, in units of its width: fused projections, attention and its result, sums and results of two or
  // three Add & Norms, the hidden layer.
  const auto d = static_cast<double>(config.d_model), v = static_cast<double>(config.target_vocabulary);
  const auto layer = [&](const models::StackConfig& stack, double attentions) {
    return static_cast<double>(stack.layers) *
           ((attentions * 6 + 4 * (attentions + 1)) * d + 2 * static_cast<double>(stack.d_ff));
  };
  const double row = layer(config.encoder, 1) + layer(config.decoder, 2);
  const double tokens = std::min(static_cast<double>(o.batch_tokens),
                                 static_cast<double>(pairs) * static_cast<double>(o.max_length + 1));
  // A quarter more: blocks come in sizes, and batches of other lengths ask for other sizes.
  const double activations = 1.25 * (tokens * row + 512 * v + v * d);
  return sizeof(float) * (4 * static_cast<double>(models::parameter_count(config)) + activations);
}

models::TransformerConfig affordable(const TrainOptions& options, models::TransformerConfig config,
                                     int64_t pairs) {
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
