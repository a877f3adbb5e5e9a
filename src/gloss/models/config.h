// What a Transformer is made of: every number of its config.json.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "gloss/attention/relative_bias.h"
#include "gloss/io/json_file.h"
#include "gloss/kernels/matrix.h"
#include "gloss/nn/positions.h"

namespace gloss::models {

// Tokens with a role. -1: the vocabulary has none.
struct Symbols {
  int32_t end = 0;     // </s>
  int32_t pad = -1;    // <pad>: never produced
  int32_t start = -1;  // what the decoder reads first; <pad> in the models we train
  bool operator==(const Symbols&) const = default;
};

// A head of a layer of cross-attention.
struct AttentionHead {
  int64_t layer = 0, head = 0;
  bool operator==(const AttentionHead&) const = default;
};

struct StackConfig {
  int64_t layers = 4, heads = 4, d_ff = 256;
  bool operator==(const StackConfig&) const = default;
};

struct TransformerConfig {
  int64_t source_vocabulary = 0, target_vocabulary = 0;
  int64_t d_model = 128;
  StackConfig encoder, decoder;
  kernels::Activation activation = kernels::Activation::relu;
  nn::PositionLayout positions = nn::PositionLayout::halves;
  attention::RelativeBuckets relative;  // where positions are relative
  bool scale_embedding = true;          // by sqrt(d_model)
  bool pre_norm = false;                // LayerNorm before each sub-layer, and a last one behind each stack
  bool share_embeddings = true;         // one table for source and target
  bool tie_output = true;               // the output layer is the target table
  double layer_norm_epsilon = 1e-5;
  double dropout = 0.1;  // of embeddings + positions and of every sub-layer's output
  double attention_dropout = 0, activation_dropout = 0;
  Symbols symbols;
  // The start symbol's embedding stays zero (the models we train); a loaded one keeps what its file says.
  bool zero_start_embedding = false;
  // Of the model's own files: the longest translation in tokens with its end symbol, and whether one that
  // reaches it gets the end symbol at no cost.
  int64_t cap = 512;
  bool forced_end = true;
  // The head of cross-attention that was guided by word links in training, if one was.
  std::optional<AttentionHead> guided;

  bool operator==(const TransformerConfig&) const = default;
};

// tiny, small, base or big; throws UsageError naming them. Vocabulary and symbols are still to be set.
TransformerConfig transformer_preset(std::string_view name);
// Sets what "Attention Is All You Need" says: interleaved positions, ReLU, post-norm, dropout 0.1.
void apply_paper(TransformerConfig& config);
// Throws Error naming the first number that makes no sense.
void validate(const TransformerConfig& config);

// What the configurations of all architectures check alike. Each throws Error that names the numbers.
inline constexpr int64_t kLargest = int64_t{1} << 24;  // of any size: a bound before memory is asked for
void require_dropout(std::string_view name, double p);
void require_one_vocabulary(bool shared, int64_t source, int64_t target);
void require_symbols(const Symbols& symbols, int64_t vocabulary);

// The layer of cross-attention that aligns words: the guided one, or the last but one (Garg et al. 2019,
// section 4.1); the last in a model of one layer.
int64_t alignment_layer(const TransformerConfig& config);
// Whether a stack has a table of relative positions, which its layers share.
bool has_relative_bias(const TransformerConfig& config, const StackConfig& stack);
// How many numbers a model of this configuration has, without making it.
int64_t parameter_count(const TransformerConfig& config);

// "marian" for what Hugging Face's MarianConfig describes; models with pre-norm or relative positions, which
// it does not, have types of their own, so that other programs refuse them rather than misread them.
std::string model_type(const TransformerConfig& config);
// Hugging Face's MarianConfig, with our own keys for what it cannot say.
nlohmann::ordered_json to_json(const TransformerConfig& config);
// Missing keys have MarianConfig's defaults. Throws Error naming file and key for what is wrong, and for
// another model_type.
TransformerConfig transformer_from_json(const io::JsonObject& json);

std::string_view activation_name(kernels::Activation activation);

}  // namespace gloss::models
