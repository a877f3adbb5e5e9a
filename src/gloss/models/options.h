// What a user can say of the model to be made, whatever its architecture: presets and every number.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "gloss/base/options.h"
#include "gloss/kernels/matrix.h"
#include "gloss/models/model_config.h"
#include "gloss/nn/gru.h"
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

  // The recurrent model.
  int64_t embedding = 0, hidden = 0, attention = 0, maxout = 0;
  Transition transition = Transition::conditional;
  nn::ResetGate reset_gate = nn::ResetGate::after;
  bool layer_norm = false;
  double context_dropout = 0, output_dropout = 0;

  // The head that word links guide in training: no field of its own, training knows whether there are any.
  // Layer -1: the one that aligns best by itself.
  std::optional<AttentionHead> guided;

  static constexpr const char* kTransformerGroup = "Transformer";
  static constexpr const char* kRecurrentGroup = "Recurrent model";

  // Which architecture the preset is of.
  bool recurrent() const { return preset.starts_with("rnn-"); }

  template <class Self, class Visitor>
  static void fields(Self& self, Visitor&& visit) {
    using kernels::Activation;
    using nn::PositionLayout;
    using nn::ResetGate;
    const auto model = [](const char* name, const char* value, const char* text) {
      return Field(name, value, text).group("Model");
    };
    const auto transformer = [](const char* name, const char* value, const char* text) {
      return Field(name, value, text).group(kTransformerGroup);
    };
    const auto recurrent = [](const char* name, const char* value, const char* text) {
      return Field(name, value, text).group(kRecurrentGroup);
    };
    constexpr int64_t kWidest = 1 << 24;
    visit(model("preset", "NAME", "sizes: of a Transformer, or of a recurrent model")
              .one_of({"tiny", "small", "base", "big", "rnn-small", "rnn-paper"}),
          self.preset);
    visit(
        model("dropout", "P", "share of embeddings and of layers' outputs that is dropped").range_below(0, 1),
        self.dropout);
    visit(model("tie-output", "", "an output layer of its own, not the target embedding"), self.tie_output);

    visit(transformer("d-model", "N", "width of the model; 0: the preset's").range(0, kWidest), self.d_model);
    visit(transformer("encoder-layers", "N", "layers of the encoder; 0: the preset's").range(0, 1000),
          self.encoder_layers);
    visit(transformer("decoder-layers", "N", "layers of the decoder; 0: the preset's").range(0, 1000),
          self.decoder_layers);
    visit(transformer("encoder-heads", "N", "heads of an encoder layer; 0: the preset's").range(0, kWidest),
          self.encoder_heads);
    visit(transformer("decoder-heads", "N", "heads of a decoder layer; 0: the preset's").range(0, kWidest),
          self.decoder_heads);
    visit(transformer("encoder-ff", "N", "width of the encoder's feed-forward layers; 0: the preset's")
              .range(0, kWidest),
          self.encoder_ff);
    visit(transformer("decoder-ff", "N", "width of the decoder's; 0: the preset's").range(0, kWidest),
          self.decoder_ff);
    visit(transformer("activation", "F", "of the feed-forward layers")
              .template choices<Activation>(
                  {{Activation::relu, "relu"}, {Activation::swish, "swish"}, {Activation::gelu, "gelu"}}),
          self.activation);
    visit(transformer("positions", "P", "sinusoids (interleaved: the paper's), or a bias by distance")
              .template choices<PositionLayout>({{PositionLayout::halves, "halves"},
                                                 {PositionLayout::interleaved, "interleaved"},
                                                 {PositionLayout::relative, "relative"}}),
          self.positions);
    visit(transformer("pre-norm", "", "LayerNorm before each sub-layer"), self.pre_norm);
    visit(transformer("scale-embedding", "", "embeddings as they are, not times sqrt(d_model)"),
          self.scale_embedding);
    visit(
        transformer("attention-dropout", "P", "share of attention weights that is dropped").range_below(0, 1),
        self.attention_dropout);
    visit(
        transformer("activation-dropout", "P", "share of feed-forward layers' inner numbers that is dropped")
            .range_below(0, 1),
        self.activation_dropout);
    visit(transformer("paper", "", "every choice as in \"Attention Is All You Need\""), self.paper);

    visit(recurrent("embedding", "N", "width of embeddings; 0: the preset's").range(0, kWidest),
          self.embedding);
    visit(recurrent("hidden", "N", "width of a GRU; 0: the preset's").range(0, kWidest), self.hidden);
    visit(recurrent("attention", "N", "width d_a of the attention; 0: the preset's").range(0, kWidest),
          self.attention);
    visit(recurrent("maxout", "N", "width of the deep output; 0: the preset's").range(0, kWidest),
          self.maxout);
    visit(recurrent("transition", "T", "one a target token (single), or two around attention")
              .template choices<Transition>(
                  {{Transition::conditional, "conditional"}, {Transition::single, "single"}}),
          self.transition);
    visit(recurrent("reset-gate", "R", "after the recurrent product, or before it as first published")
              .template choices<ResetGate>({{ResetGate::after, "after"}, {ResetGate::before, "before"}}),
          self.reset_gate);
    visit(recurrent("layer-norm", "", "normalise the sums in each GRU"), self.layer_norm);
    visit(
        recurrent("context-dropout", "P", "share of the encoder's states that is dropped").range_below(0, 1),
        self.context_dropout);
    visit(recurrent("output-dropout", "P", "share of the deep output that is dropped").range_below(0, 1),
          self.output_dropout);
  }
};

// What the preset and --paper say where the user said nothing. Throws UsageError for a typed option that only
// the other architecture has.
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
