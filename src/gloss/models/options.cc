#include "gloss/models/options.h"

namespace gloss::models {

void resolve(Typed<ModelOptions>& options) {
  ModelOptions& o = options.value;
  const TransformerConfig preset = transformer_preset(o.preset);
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

ModelConfig configure(const ModelOptions& o, const Vocabularies& vocabularies) {
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
  validate(config);
  return config;
}

}  // namespace gloss::models
