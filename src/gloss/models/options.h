// What a user can say of the model to be made, whatever its architecture: presets and every number.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "gloss/base/options.h"
#include "gloss/kernels/matrix.h"
#include "gloss/models/model_config.h"
#include "gloss/nn/positions.h"

namespace gloss::models {

// 0 stands for the preset's number.
struct ModelOptions {
  std::string preset = "tiny";
  double dropout = 0.1;
  bool tie_output = true;

  // The Transformer.
  int64_t d_model = 0, encoder_layers = 0, decoder_layers = 0, encoder_heads = 0, decoder_heads = 0;
  int64_t encoder_ff = 0, decoder_ff = 0;
  kernels::Activation activation = kernels::Activation::relu;
  nn::PositionLayout positions = nn::PositionLayout::halves;
  bool pre_norm = false, scale_embedding = true;
  double attention_dropout = 0, activation_dropout = 0;
  bool paper = false;

  static constexpr const char* kTransformerGroup = "Transformer";

  template <class Self, class Visitor>
  static void fields(Self& self, Visitor&& visit) {
    using kernels::Activation;
    using nn::PositionLayout;
    const auto model = [](const char* name, const char* value, const char* text) {
      return Field(name, value, text).group("Model");
    };
    const auto transformer = [](const char* name, const char* value, const char* text) {
      return Field(name, value, text).group(kTransformerGroup);
    };
    constexpr int64_t kWidest = 1 << 24;
    visit(model("preset", "NAME", "size of the model").one_of({"tiny", "small", "base", "big"}), self.preset);
    visit(model("dropout", "P", "of embeddings and sub-layer outputs").range_below(0, 1), self.dropout);
    visit(model("tie-output", "", "an output layer of its own, not the target embedding"), self.tie_output);

    visit(transformer("d-model", "N", "width; 0: the preset's").range(0, kWidest), self.d_model);
    visit(transformer("encoder-layers", "N", "0: the preset's").range(0, 1000), self.encoder_layers);
    visit(transformer("decoder-layers", "N", "0: the preset's").range(0, 1000), self.decoder_layers);
    visit(transformer("encoder-heads", "N", "0: the preset's").range(0, kWidest), self.encoder_heads);
    visit(transformer("decoder-heads", "N", "0: the preset's").range(0, kWidest), self.decoder_heads);
    visit(
        transformer("encoder-ff", "N", "width of the feed-forward layer; 0: the preset's").range(0, kWidest),
        self.encoder_ff);
    visit(transformer("decoder-ff", "N", "0: the preset's").range(0, kWidest), self.decoder_ff);
    visit(transformer("activation", "F", "of the feed-forward layer")
              .template choices<Activation>(
                  {{Activation::relu, "relu"}, {Activation::swish, "swish"}, {Activation::gelu, "gelu"}}),
          self.activation);
    visit(transformer("positions", "P", "layout of the sinusoids; interleaved is the paper's")
              .template choices<PositionLayout>(
                  {{PositionLayout::halves, "halves"}, {PositionLayout::interleaved, "interleaved"}}),
          self.positions);
    visit(transformer("pre-norm", "", "LayerNorm before each sub-layer"), self.pre_norm);
    visit(transformer("scale-embedding", "", "embeddings as they are, not times sqrt(d_model)"),
          self.scale_embedding);
    visit(transformer("attention-dropout", "P", "of attention weights").range_below(0, 1),
          self.attention_dropout);
    visit(transformer("activation-dropout", "P", "inside feed-forward layers").range_below(0, 1),
          self.activation_dropout);
    visit(transformer("paper", "", "all as in \"Attention Is All You Need\""), self.paper);
  }
};

// What the preset and --paper say where the user said nothing.
void resolve(Typed<ModelOptions>& options);

// What the vocabulary has to say.
struct Vocabularies {
  int64_t source = 0, target = 0;  // pieces
  bool shared = true;              // one for both
  Symbols symbols;
};
// The configuration of a new model. Throws Error naming the first number that makes no sense.
ModelConfig configure(const ModelOptions& options, const Vocabularies& vocabularies);

}  // namespace gloss::models
