#include "gloss/models/model_config.h"

#include "gloss/models/rnn_search_model.h"
#include "gloss/models/transformer_model.h"

namespace gloss::models {
namespace {

// Rows that backward keeps, a token and layer, in units of its width: fused projections, attention and its
// result, sums and results of two or three Add & Norms, the hidden layer. A block of logits besides, and the
// output layer's second gradient.
KeptNumbers numbers_of(const TransformerConfig& config) {
  // In floating point, because whatever can be asked for must not overflow.
  const auto d = static_cast<double>(config.d_model), v = static_cast<double>(config.target_vocabulary);
  const auto layers = [&](const StackConfig& stack, double attentions) {
    return static_cast<double>(stack.layers) *
           ((attentions * 6 + 4 * (attentions + 1)) * d + 2 * static_cast<double>(stack.d_ff));
  };
  // A bias by distance: its gradient is summed up a sequence at a time, over distances both ways.
  double relative = 0;
  for (const StackConfig& stack : {config.encoder, config.decoder}) {
    if (has_relative_bias(config, stack)) relative += 6 * static_cast<double>(stack.heads);
  }
  return {layers(config.encoder, 1) + layers(config.decoder, 2) + relative, 512 * v + v * d};
}

// Of a source token the embedding, both directions' gates, and states with U_a h_j; of a target token the
// embedding, the gates of two transitions with what they are made of, queries, contexts, the deep output. As
// many source tokens as target tokens.
KeptNumbers numbers_of(const RnnSearchConfig& config) {
  const auto e = static_cast<double>(config.embedding), h = static_cast<double>(config.hidden),
             a = static_cast<double>(config.attention), l = static_cast<double>(config.maxout),
             v = static_cast<double>(config.target_vocabulary);
  const double source = e + 2 * (3 + 4 + 1) * h + 4 * h + a;
  const double target = e + 2 * (6 + 4 + 1) * h + 2 * a + 4 * 2 * h + 2 * (3 * h + e) + 5 * l;
  return {source + target, 512 * v + v * l};
}

std::unique_ptr<Model> model_of(const RnnSearchConfig& config, Arena& arena, autograd::Holding holding) {
  return std::make_unique<RnnSearchModel>(config, arena, holding);
}
std::unique_ptr<Model> model_of(const TransformerConfig& config, Arena& arena, autograd::Holding holding) {
  return std::make_unique<TransformerModel>(config, arena, holding);
}

}  // namespace

ModelConfig model_config_from_json(const io::JsonObject& json) {
  if (json.text("model_type", "") == kRnnSearchType) return rnn_search_from_json(json);
  return transformer_from_json(json);
}

void validate(const ModelConfig& config) {
  std::visit([](const auto& own) { validate(own); }, config);
}

int64_t parameter_count(const ModelConfig& config) {
  return std::visit([](const auto& own) { return parameter_count(own); }, config);
}

KeptNumbers kept_numbers(const ModelConfig& config) {
  return std::visit([](const auto& own) { return numbers_of(own); }, config);
}

std::unique_ptr<Model> make_model(const ModelConfig& config, Arena& arena, autograd::Holding holding) {
  return std::visit([&](const auto& own) { return model_of(own, arena, holding); }, config);
}

}  // namespace gloss::models
