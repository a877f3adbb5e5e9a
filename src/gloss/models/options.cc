#include "gloss/models/options.h"

namespace gloss::models {

namespace {

// 0 stands for the preset's number, typed or not.
void fill(int64_t& field, int64_t value) {
  if (field == 0) field = value;
}

void refuse_others(const Typed<ModelOptions>& options) {
  const ModelOptions& o = options.value;
  const char* others = o.recurrent() ? ModelOptions::kTransformerGroup : ModelOptions::kRecurrentGroup;
  for_each_field(o, [&](const Field& field, const auto&) {
    if (field.group() != others || !options.typed.contains(field.name())) return;
    throw UsageError(fmt::format("--{} is for a {}, and the preset {} is none: leave out one of them",
                                 field.name(), o.recurrent() ? "Transformer" : "recurrent model", o.preset));
  });
}

void resolve_recurrent(Typed<ModelOptions>& options) {
  ModelOptions& o = options.value;
  const RnnSearchConfig preset = rnn_search_preset(o.preset);
  fill(o.embedding, preset.embedding);
  fill(o.hidden, preset.hidden);
  fill(o.attention, preset.attention);
  fill(o.maxout, preset.maxout);
  options.suggest(o.transition, preset.transition);
  options.suggest(o.reset_gate, preset.reset_gate);
  options.suggest(o.tie_output, preset.tie_output);
}

void resolve_transformer(Typed<ModelOptions>& options) {
  ModelOptions& o = options.value;
  const TransformerConfig preset = transformer_preset(o.preset);
  fill(o.d_model, preset.d_model);
  fill(o.encoder_layers, preset.encoder.layers);
  fill(o.decoder_layers, preset.decoder.layers);
  fill(o.encoder_heads, preset.encoder.heads);
  fill(o.decoder_heads, preset.decoder.heads);
  fill(o.encoder_ff, preset.encoder.d_ff);
  fill(o.decoder_ff, preset.decoder.d_ff);
  if (!o.paper) return;
  TransformerConfig paper;
  apply_paper(paper);
  options.suggest(o.positions, paper.positions);
  options.suggest(o.activation, paper.activation);
  options.suggest(o.pre_norm, paper.pre_norm);
  options.suggest(o.scale_embedding, paper.scale_embedding);
  options.suggest(o.dropout, paper.dropout);
  options.suggest(o.attention_dropout, paper.attention_dropout);
  options.suggest(o.activation_dropout, paper.activation_dropout);
}

TransformerConfig transformer(const ModelOptions& o, const Vocabularies& vocabularies) {
  TransformerConfig config;
  config.source_vocabulary = vocabularies.source;
  config.target_vocabulary = vocabularies.target;
  config.share_embeddings = vocabularies.shared;
  config.symbols = vocabularies.symbols;
  config.d_model = o.d_model;
  config.encoder = {o.encoder_layers, o.encoder_heads, o.encoder_ff};
  config.decoder = {o.decoder_layers, o.decoder_heads, o.decoder_ff};
  config.activation = o.activation;
  config.positions = o.positions;
  config.scale_embedding = o.scale_embedding;
  config.pre_norm = o.pre_norm;
  config.tie_output = o.tie_output;
  config.dropout = o.dropout;
  config.attention_dropout = o.attention_dropout;
  config.activation_dropout = o.activation_dropout;
  config.zero_start_embedding = true;
  if (o.guided) {
    const int64_t layer = o.guided->layer < 0 ? alignment_layer(config) : o.guided->layer;
    config.guided = {layer, o.guided->head};
  }
  return config;
}

RnnSearchConfig recurrent(const ModelOptions& o, const Vocabularies& vocabularies) {
  RnnSearchConfig config;
  config.source_vocabulary = vocabularies.source;
  config.target_vocabulary = vocabularies.target;
  config.share_embeddings = vocabularies.shared;
  config.symbols = vocabularies.symbols;
  config.embedding = o.embedding;
  config.hidden = o.hidden;
  config.attention = o.attention;
  config.maxout = o.maxout;
  config.transition = o.transition;
  config.reset_gate = o.reset_gate;
  config.layer_norm = o.layer_norm;
  config.tie_output = o.tie_output;
  config.dropout = o.dropout;
  config.context_dropout = o.context_dropout;
  config.output_dropout = o.output_dropout;
  if (o.guided && (o.guided->layer > 0 || o.guided->head > 0))
    throw UsageError("a recurrent model has one layer of attention with one head, 0: that one is guided");
  return config;
}

}  // namespace

void resolve(Typed<ModelOptions>& options) {
  refuse_others(options);
  if (options.value.recurrent()) {
    resolve_recurrent(options);
  } else {
    resolve_transformer(options);
  }
}

ModelConfig configure(const ModelOptions& options, const Vocabularies& vocabularies) {
  ModelConfig config;
  if (options.recurrent()) {
    config = recurrent(options, vocabularies);
  } else {
    config = transformer(options, vocabularies);
  }
  validate(config);
  return config;
}

}  // namespace gloss::models
