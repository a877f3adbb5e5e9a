#include "gloss/models/config.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "gloss/base/error.h"

namespace gloss::models {
namespace {

using kernels::Activation;
using nn::PositionLayout;

constexpr std::array<std::pair<std::string_view, Activation>, 4> kActivations{{{"relu", Activation::relu},
                                                                               {"swish", Activation::swish},
                                                                               {"silu", Activation::swish},
                                                                               {"gelu", Activation::gelu}}};
constexpr const char* kMarianType = "marian";
constexpr const char* kPreNormType = "gloss_pre_norm";   // the same but for normalize_before
constexpr const char* kRelativeType = "gloss_relative";  // the same but for position_layout

constexpr std::array<std::pair<std::string_view, PositionLayout>, 3> kLayouts{
    {{"halves", PositionLayout::halves},
     {"interleaved", PositionLayout::interleaved},
     {"relative", PositionLayout::relative}}};

}  // namespace

std::string_view activation_name(Activation activation) {
  for (const auto& [name, value] : kActivations) {
    if (value == activation) return name;
  }
  return "none";
}

std::string model_type(const TransformerConfig& config) {
  if (!nn::is_sinusoidal(config.positions)) return kRelativeType;
  return config.pre_norm ? kPreNormType : kMarianType;
}

TransformerConfig transformer_preset(std::string_view name) {
  struct Preset {
    std::string_view name;
    int64_t layers, d_model, d_ff, heads;
  };
  constexpr std::array<Preset, 4> kPresets{{{"tiny", 4, 128, 256, 4},
                                            {"small", 4, 256, 1024, 4},
                                            {"base", 6, 512, 2048, 8},
                                            {"big", 6, 1024, 4096, 16}}};
  for (const Preset& preset : kPresets) {
    if (preset.name != name) continue;
    TransformerConfig config;
    config.d_model = preset.d_model;
    config.encoder = config.decoder = {preset.layers, preset.heads, preset.d_ff};
    return config;
  }
  throw UsageError(fmt::format("there is no preset '{}': choose one of tiny, small, base, big", name));
}

void apply_paper(TransformerConfig& config) {
  config.positions = PositionLayout::interleaved;
  config.activation = Activation::relu;
  config.pre_norm = false;
  config.scale_embedding = true;
  config.dropout = 0.1;
  config.attention_dropout = config.activation_dropout = 0;
}

void require_dropout(std::string_view name, double p) {
  require(p >= 0 && p < 1, "{} is a probability from 0 to below 1, not {}", name, p);
}

void require_one_vocabulary(bool shared, int64_t source, int64_t target) {
  require(!shared || source == target,
          "shared embeddings need one vocabulary: source has {} pieces, target {}", source, target);
}

void require_symbols(const Symbols& symbols, int64_t vocabulary) {
  for (const auto& [name, id] :
       {std::pair{"</s>", symbols.end}, std::pair{"the start symbol", symbols.start}}) {
    require(id >= 0 && id < vocabulary, "the id {} of {} is outside the target vocabulary of {} pieces", id,
            name, vocabulary);
  }
  require(symbols.pad < vocabulary, "the id {} of <pad> is outside the target vocabulary of {} pieces",
          symbols.pad, vocabulary);
}

void validate(const TransformerConfig& config) {
  const auto size = [](std::string_view name, int64_t value, int64_t low) {
    require(value >= low && value <= kLargest, "{} must be from {} to {}, not {}", name, low, kLargest,
            value);
  };
  size("the source vocabulary", config.source_vocabulary, 1);
  size("the target vocabulary", config.target_vocabulary, 1);
  size("d_model", config.d_model, 1);
  require(config.d_model % 2 == 0 || !nn::is_sinusoidal(config.positions),
          "d_model must be even, not {}: sinusoidal positions come in pairs", config.d_model);
  if (!nn::is_sinusoidal(config.positions)) attention::validate(config.relative);
  for (const auto& [name, stack] :
       {std::pair{"encoder", config.encoder}, std::pair{"decoder", config.decoder}}) {
    size(fmt::format("{} layers", name), stack.layers, 0);
    require(stack.layers <= 1000, "{} layers must be at most 1000, not {}", name, stack.layers);
    size(fmt::format("{} heads", name), stack.heads, 1);
    size(fmt::format("{} d_ff", name), stack.d_ff, 1);
    require(config.d_model % stack.heads == 0, "d_model {} is not divisible by the {}'s {} heads",
            config.d_model, name, stack.heads);
  }
  for (const auto& [name, p] :
       {std::pair{"dropout", config.dropout}, std::pair{"attention dropout", config.attention_dropout},
        std::pair{"activation dropout", config.activation_dropout}}) {
    require_dropout(name, p);
  }
  require(config.layer_norm_epsilon > 0 && config.layer_norm_epsilon < 1,
          "the epsilon of layer normalisation must be above 0 and below 1, not {}",
          config.layer_norm_epsilon);
  size("the longest translation", config.cap, 1);
  if (config.guided) {
    const auto exists = [](std::string_view name, int64_t value, int64_t count) {
      require(value >= 0 && value<count, "there is no {} {} of cross-attention to guide: there are {}{}",
                                  name, value, count, count> 0
                  ? fmt::format(", 0 to {}", count - 1)
                  : "");
    };
    exists("layer", config.guided->layer, config.decoder.layers);
    exists("head", config.guided->head, config.decoder.heads);
  }
  require_one_vocabulary(config.share_embeddings, config.source_vocabulary, config.target_vocabulary);
  require_symbols(config.symbols, config.target_vocabulary);
}

int64_t alignment_layer(const TransformerConfig& config) {
  return config.guided ? config.guided->layer : std::max<int64_t>(0, config.decoder.layers - 2);
}

bool has_relative_bias(const TransformerConfig& config, const StackConfig& stack) {
  return !nn::is_sinusoidal(config.positions) && stack.layers > 0;
}

int64_t parameter_count(const TransformerConfig& config) {
  const int64_t d = config.d_model, v = config.target_vocabulary;
  const int64_t attention = 4 * (d * d + d), norm = 2 * d;
  const auto feed_forward = [&](const StackConfig& stack) { return 2 * stack.d_ff * d + stack.d_ff + d; };
  int64_t count = v + (config.share_embeddings ? v * d : (config.source_vocabulary + v) * d);
  if (!config.tie_output) count += v * d;
  count += config.encoder.layers * (attention + feed_forward(config.encoder) + 2 * norm);
  count += config.decoder.layers * (2 * attention + feed_forward(config.decoder) + 3 * norm);
  for (const StackConfig& stack : {config.encoder, config.decoder}) {
    if (has_relative_bias(config, stack)) count += config.relative.count * stack.heads;
  }
  return config.pre_norm ? count + 2 * norm : count;
}

nlohmann::ordered_json to_json(const TransformerConfig& c) {
  nlohmann::ordered_json j;
  // Marian of transformers and CTranslate2 is post-norm, with sinusoids: they must refuse the others rather
  // than misread them.
  if (model_type(c) == kMarianType) j["architectures"] = {"MarianMTModel"};
  j["model_type"] = model_type(c);
  j["vocab_size"] = c.source_vocabulary;
  j["decoder_vocab_size"] = c.target_vocabulary;
  j["d_model"] = c.d_model;
  j["encoder_layers"] = c.encoder.layers;
  j["decoder_layers"] = c.decoder.layers;
  j["encoder_attention_heads"] = c.encoder.heads;
  j["decoder_attention_heads"] = c.decoder.heads;
  j["encoder_ffn_dim"] = c.encoder.d_ff;
  j["decoder_ffn_dim"] = c.decoder.d_ff;
  j["activation_function"] = activation_name(c.activation);
  j["dropout"] = c.dropout;
  j["attention_dropout"] = c.attention_dropout;
  j["activation_dropout"] = c.activation_dropout;
  j["scale_embedding"] = c.scale_embedding;
  j["share_encoder_decoder_embeddings"] = c.share_embeddings;
  j["tie_word_embeddings"] = c.tie_output;
  j["max_position_embeddings"] = c.cap;
  j["bos_token_id"] = c.symbols.end;
  j["eos_token_id"] = c.symbols.end;
  j["forced_eos_token_id"] = c.forced_end ? nlohmann::ordered_json(c.symbols.end) : nullptr;
  j["pad_token_id"] = c.symbols.pad >= 0 ? nlohmann::ordered_json(c.symbols.pad) : nullptr;
  j["decoder_start_token_id"] = c.symbols.start;
  j["is_encoder_decoder"] = true;
  j["use_cache"] = true;
  j["dtype"] = "float32";
  // Ours; transformers ignores them.
  for (const auto& [name, layout] : kLayouts) {
    if (layout == c.positions) j["position_layout"] = name;
  }
  if (!nn::is_sinusoidal(c.positions)) {  // under T5's names
    j["relative_attention_num_buckets"] = c.relative.count;
    j["relative_attention_max_distance"] = c.relative.max_distance;
  }
  j["normalize_before"] = c.pre_norm;
  j["layer_norm_epsilon"] = c.layer_norm_epsilon;
  j["zero_start_embedding"] = c.zero_start_embedding;
  if (c.guided) {
    j["guided_layer"] = c.guided->layer;
    j["guided_head"] = c.guided->head;
  }
  return j;
}

TransformerConfig transformer_from_json(const io::JsonObject& json) {
  const std::string type = json.text("model_type", kMarianType);
  require(type == kMarianType || type == kPreNormType || type == kRelativeType,
          "{}: this is a model of type '{}', and only 'marian' can be opened as a Transformer", json.name(),
          type);
  const io::JsonObject::Range size{1, kLargest}, layers{0, 1000};
  TransformerConfig c;
  c.source_vocabulary = json.whole("vocab_size", size);
  c.target_vocabulary = json.whole("decoder_vocab_size", size, c.source_vocabulary);
  c.d_model = json.whole("d_model", size, 1024);
  c.encoder = {json.whole("encoder_layers", layers, 12), json.whole("encoder_attention_heads", size, 16),
               json.whole("encoder_ffn_dim", size, 4096)};
  c.decoder = {json.whole("decoder_layers", layers, 12), json.whole("decoder_attention_heads", size, 16),
               json.whole("decoder_ffn_dim", size, 4096)};
  const std::string activation = json.text("activation_function", "gelu");
  bool known = false;
  for (const auto& [name, value] : kActivations) {
    if (name != activation) continue;
    c.activation = value;
    known = true;
  }
  if (!known) json.reject("activation_function", "relu, swish, silu or gelu");
  c.dropout = json.number("dropout", 0.1);
  c.attention_dropout = json.number("attention_dropout", 0);
  c.activation_dropout = json.number("activation_dropout", 0);
  c.scale_embedding = json.flag("scale_embedding", false);
  c.share_embeddings = json.flag("share_encoder_decoder_embeddings", true);
  c.tie_output = json.flag("tie_word_embeddings", true);
  // `max_length` counts the start symbol too.
  c.cap = json.has("max_length") ? std::max<int64_t>(1, json.whole("max_length", size) - 1)
                                 : json.whole("max_position_embeddings", size, 1024);
  const io::JsonObject::Range id{0, c.target_vocabulary - 1};
  c.symbols.end = static_cast<int32_t>(json.whole("eos_token_id", id, 0));
  // MarianConfig's defaults are the last piece of its vocabulary; null means that there is none.
  const int64_t last = c.target_vocabulary - 1;
  const auto is_null = [&](const char* key) { return json.json().contains(key) && !json.has(key); };
  c.symbols.pad =
      is_null("pad_token_id") ? -1 : static_cast<int32_t>(json.whole("pad_token_id", {-1, last}, last));
  c.symbols.start = static_cast<int32_t>(
      json.whole("decoder_start_token_id", id, c.symbols.pad >= 0 ? c.symbols.pad : last));
  c.forced_end = !is_null("forced_eos_token_id") && json.whole("forced_eos_token_id", id, 0) == c.symbols.end;
  const std::string layout = json.text("position_layout", "halves");
  const auto found = std::ranges::find(kLayouts, layout, &decltype(kLayouts)::value_type::first);
  if (found == kLayouts.end()) json.reject("position_layout", "halves, interleaved or relative");
  c.positions = found->second;
  if (!nn::is_sinusoidal(c.positions)) {
    c.relative.count = json.whole("relative_attention_num_buckets", size, c.relative.count);
    c.relative.max_distance = json.whole("relative_attention_max_distance", size, c.relative.max_distance);
  }
  c.pre_norm = json.flag("normalize_before", false);
  c.layer_norm_epsilon = json.number("layer_norm_epsilon", 1e-5);
  c.zero_start_embedding = json.flag("zero_start_embedding", false);
  if (json.has("guided_layer")) {
    constexpr io::JsonObject::Range any{0, kLargest};
    c.guided = {json.whole("guided_layer", any), json.whole("guided_head", any, 0)};
  }
  try {
    validate(c);
  } catch (const Error& error) {
    fail("{}: {}", json.name(), error.what());
  }
  return c;
}

}  // namespace gloss::models
