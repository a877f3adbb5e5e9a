#include "gloss/models/rnn_search_config.h"

#include <utility>

#include "gloss/base/error.h"

namespace gloss::models {
RnnSearchConfig rnn_search_preset(std::string_view name) {
  RnnSearchConfig config;
  if (name == "rnn-small") return config;
  if (name == "rnn-paper") {
    config.embedding = 620;
    config.hidden = config.attention = 1000;
    config.maxout = 500;
    config.transition = Transition::single;
    config.reset_gate = nn::ResetGate::before;
    return config;
  }
  throw UsageError(fmt::format("there is no recurrent preset '{}': choose rnn-small or rnn-paper", name));
}

void validate(const RnnSearchConfig& config) {
  const auto size = [](std::string_view name, int64_t value) {
    require(value >= 1 && value <= kLargest, "{} must be from 1 to {}, not {}", name, kLargest, value);
  };
  size("the source vocabulary", config.source_vocabulary);
  size("the target vocabulary", config.target_vocabulary);
  size("the width of embeddings", config.embedding);
  size("the width of a GRU", config.hidden);
  size("the width of the attention", config.attention);
  size("the width of the deep output", config.maxout);
  size("the longest translation", config.cap);
  for (const auto& [name, p] :
       {std::pair{"dropout", config.dropout}, std::pair{"context dropout", config.context_dropout},
        std::pair{"output dropout", config.output_dropout}}) {
    require_dropout(name, p);
  }
  require_one_vocabulary(config.share_embeddings, config.source_vocabulary, config.target_vocabulary);
  require(!config.tie_output || config.maxout == config.embedding,
          "an output layer that is the target embedding needs a deep output of the same width: {} and {}",
          config.maxout, config.embedding);
  require_symbols(config.symbols, config.target_vocabulary);
}

int64_t parameter_count(const RnnSearchConfig& c) {
  const int64_t e = c.embedding, h = c.hidden, a = c.attention, l = c.maxout, v = c.target_vocabulary;
  const auto gru = [&](int64_t d_in) { return 3 * h * (d_in + h) + 6 * h + (c.layer_norm ? 12 * h : 0); };
  int64_t count = v + (c.share_embeddings ? v : c.source_vocabulary + v) * e + (c.tie_output ? 0 : v * l);
  count += 2 * gru(e) + h * h + h;  // encoder, first state
  count += c.transition == Transition::conditional ? gru(e) + gru(2 * h) : gru(e + 2 * h);
  count += a * h + a * 2 * h + a;
  return count + 2 * l * (h + e + 2 * h) + 2 * l;
}

nlohmann::ordered_json to_json(const RnnSearchConfig& c) {
  nlohmann::ordered_json j;
  j["model_type"] = kRnnSearchType;
  j["vocab_size"] = c.source_vocabulary;
  j["decoder_vocab_size"] = c.target_vocabulary;
  j["embedding_size"] = c.embedding;
  j["hidden_size"] = c.hidden;
  j["attention_size"] = c.attention;
  j["maxout_size"] = c.maxout;
  j["transition"] = c.transition == Transition::conditional ? "conditional" : "single";
  j["reset_gate"] = c.reset_gate == nn::ResetGate::after ? "after" : "before";
  j["layer_norm"] = c.layer_norm;
  j["share_encoder_decoder_embeddings"] = c.share_embeddings;
  j["tie_word_embeddings"] = c.tie_output;
  j["dropout"] = c.dropout;
  j["context_dropout"] = c.context_dropout;
  j["output_dropout"] = c.output_dropout;
  j["max_position_embeddings"] = c.cap;
  j["eos_token_id"] = c.symbols.end;
  j["forced_eos_token_id"] = c.forced_end ? nlohmann::ordered_json(c.symbols.end) : nullptr;
  j["pad_token_id"] = c.symbols.pad >= 0 ? nlohmann::ordered_json(c.symbols.pad) : nullptr;
  j["decoder_start_token_id"] = c.symbols.start;
  return j;
}

RnnSearchConfig rnn_search_from_json(const io::JsonObject& json) {
  const io::JsonObject::Range size{1, kLargest};
  RnnSearchConfig c;
  c.source_vocabulary = json.whole("vocab_size", size);
  c.target_vocabulary = json.whole("decoder_vocab_size", size);
  c.embedding = json.whole("embedding_size", size);
  c.hidden = json.whole("hidden_size", size);
  c.attention = json.whole("attention_size", size);
  c.maxout = json.whole("maxout_size", size);
  const auto one_of = [&](const char* key, const char* yes, const char* no) {
    const std::string text = json.text(key);
    if (text != yes && text != no) json.reject(key, fmt::format("{} or {}", yes, no));
    return text == yes;
  };
  c.transition = one_of("transition", "conditional", "single") ? Transition::conditional : Transition::single;
  c.reset_gate = one_of("reset_gate", "after", "before") ? nn::ResetGate::after : nn::ResetGate::before;
  c.layer_norm = json.flag("layer_norm");
  c.share_embeddings = json.flag("share_encoder_decoder_embeddings");
  c.tie_output = json.flag("tie_word_embeddings");
  c.dropout = json.number("dropout", 0);
  c.context_dropout = json.number("context_dropout", 0);
  c.output_dropout = json.number("output_dropout", 0);
  c.cap = json.whole("max_position_embeddings", size, c.cap);
  const io::JsonObject::Range id{0, c.target_vocabulary - 1};
  c.symbols.end = static_cast<int32_t>(json.whole("eos_token_id", id));
  c.symbols.start = static_cast<int32_t>(json.whole("decoder_start_token_id", id));
  c.symbols.pad = static_cast<int32_t>(json.whole("pad_token_id", id, -1));
  c.forced_end = json.has("forced_eos_token_id") && json.whole("forced_eos_token_id", id) == c.symbols.end;
  try {
    validate(c);
  } catch (const Error& error) {
    fail("{}: {}", json.name(), error.what());
  }
  return c;
}

}  // namespace gloss::models
