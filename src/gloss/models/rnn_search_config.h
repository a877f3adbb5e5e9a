// What a recurrent model is made of: every number of its config.json.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string_view>

#include "gloss/io/json_file.h"
#include "gloss/models/config.h"
#include "gloss/nn/gru.h"

namespace gloss::models {

// How the decoder gets from s_{i-1} to s_i.
enum class Transition {
  conditional,  // s'_i = GRU_1(y_{i-1}, s_{i-1}), attention by s'_i, s_i = GRU_2(c_i, s'_i)
  single,       // attention by s_{i-1}, s_i = GRU([y_{i-1}; c_i], s_{i-1}): as first published
};

struct RnnSearchConfig {
  int64_t source_vocabulary = 0, target_vocabulary = 0;
  int64_t embedding = 128;  // width of embeddings
  int64_t hidden = 256;     // of a GRU's state: the encoder's annotations have two of them
  int64_t attention = 256;  // d_a
  int64_t maxout = 128;     // of the deep output, that is of what the output layer reads
  Transition transition = Transition::conditional;
  nn::ResetGate reset_gate = nn::ResetGate::after;
  bool layer_norm = false;
  bool share_embeddings = false;                                // one table for source and target
  bool tie_output = false;                                      // the output layer is the target table
  double dropout = 0, context_dropout = 0, output_dropout = 0;  // of embeddings, annotations, deep output
  Symbols symbols;
  int64_t cap = 512;  // as TransformerConfig
  bool forced_end = true;

  bool operator==(const RnnSearchConfig&) const = default;
};

inline constexpr const char* kRnnSearchType = "rnn_search";

// rnn-small (conditional) or rnn-paper (Bahdanau et al. 2015); throws UsageError for any other name.
// Vocabulary and symbols are still to be set.
RnnSearchConfig rnn_search_preset(std::string_view name);
// Throws Error naming the first number that makes no sense.
void validate(const RnnSearchConfig& config);
int64_t parameter_count(const RnnSearchConfig& config);
nlohmann::ordered_json to_json(const RnnSearchConfig& config);
// Throws Error naming file and key for what is missing or wrong.
RnnSearchConfig rnn_search_from_json(const io::JsonObject& json);

}  // namespace gloss::models
