#include "gloss/inspect/attended_json.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace gloss::inspect {
namespace {

using io::JsonWriter;
using models::AttentionMap;

// Eight decimals: more than a weight near 1 has, and short.
double rounded(float x) {
  return std::round(static_cast<double>(x) * 1e8) / 1e8;
}

// Matrices beside each other in memory, a head each; or one, without heads.
struct Heads {
  const float* data = nullptr;
  int64_t heads = 1, rows = 0, columns = 0;
  int64_t head_step = 0, row_step = 0;  // from a head, a row to the next
  bool has_heads = true;
};

void write_values(JsonWriter& json, const Heads& from) {
  if (from.has_heads) json.begin_array();
  for (int64_t head = 0; head < from.heads; ++head) {
    json.begin_array();
    for (int64_t i = 0; i < from.rows; ++i) {
      const float* row = from.data + head * from.head_step + i * from.row_step;
      json.begin_array();
      for (int64_t j = 0; j < from.columns; ++j) json.number(rounded(row[j]));
      json.end_array();
    }
    json.end_array();
  }
  if (from.has_heads) json.end_array();
}

void write_with_shape(JsonWriter& json, const Heads& from) {
  json.begin_object();
  json.key("shape");
  json.begin_array();
  if (from.has_heads) json.whole(from.heads);
  json.whole(from.rows);
  json.whole(from.columns);
  json.end_array();
  json.key("values");
  write_values(json, from);
  json.end_object();
}

// [heads][n_q][n_k] of one sentence.
Heads square(const AttendedPair& pair, const AttentionMap& map, const Tensor<float>& from) {
  const auto n = static_cast<int64_t>(pair.target.ids.size()),
             m = static_cast<int64_t>(pair.source.ids.size());
  const int64_t n_q = map.kind == models::AttentionKind::encoder ? m : n;
  const int64_t n_k = map.kind == models::AttentionKind::decoder ? n : m;
  return {from.data(), map.heads, n_q, n_k, n_q * n_k, n_k};
}

// One matrix in between by its name.
Heads tensor_named(const AttendedPair& pair, const AttentionMap& map, const std::string& name) {
  if (name == "scores") return square(pair, map, map.scores);
  if (name == "weights") return square(pair, map, map.weights);
  std::string there = "scores, weights";
  for (const auto& [known, matrix] : map.tensors) {
    there += ", " + known;
    if (known == "concat") there += ", heads";
    if (known == name) return {matrix.data(), 1, matrix.rows(), matrix.cols(), 0, matrix.cols(), false};
    if (known != "concat" || name != "heads") continue;
    // head_i is a slice of columns.
    const int64_t d_v = matrix.cols() / map.heads;
    return {matrix.data(), map.heads, matrix.rows(), d_v, d_v, matrix.cols()};
  }
  throw UsageError(fmt::format("there is no matrix '{}' in this attention: choose of {}", name, there));
}

void write_texts(JsonWriter& json, std::string_view key, const std::vector<std::string>& texts) {
  json.key(key);
  json.begin_array();
  for (const std::string& text : texts) json.text(text);
  json.end_array();
}

void write_side(JsonWriter& json, const Side& side, int32_t end_id) {
  json.begin_object();
  json.key("text");
  json.text(side.text);
  write_texts(json, "pieces", side.pieces);
  write_texts(json, "words", side.words.texts);
  json.key("word_of_piece");
  json.begin_array();
  for (const int32_t word : side.words.word_of) {
    if (word < 0) {
      json.null();
    } else {
      json.whole(word);
    }
  }
  json.end_array();
  json.key("is_end_symbol");
  json.begin_array();
  for (const int32_t id : side.ids) json.boolean(id == end_id);
  json.end_array();
  json.end_object();
}

// The layers of one kind.
void write_kind(JsonWriter& json, const AttendedPair& pair, models::AttentionKind kind,
                std::span<const std::string> tensors) {
  const auto each_layer = [&](std::string_view key, const auto& write) {
    json.key(key);
    json.begin_array();
    for (const AttentionMap& map : pair.maps) {
      if (map.kind == kind) write(map);
    }
    json.end_array();
  };
  json.begin_object();
  each_layer("layers", [&](const AttentionMap& map) { json.whole(map.layer); });
  each_layer("weights", [&](const AttentionMap& map) { write_values(json, square(pair, map, map.weights)); });
  if (!tensors.empty()) {
    each_layer("tensors", [&](const AttentionMap& map) {
      json.begin_object();
      for (const std::string& name : tensors) {
        json.key(name);
        write_with_shape(json, tensor_named(pair, map, name));
      }
      json.end_object();
    });
  }
  json.end_object();
}

}  // namespace

void check_tensors(const AttendedPair& pair, std::span<const std::string> tensors) {
  for (const AttentionMap& map : pair.maps) {
    for (const std::string& name : tensors) tensor_named(pair, map, name);
  }
}

void write_json(const AttendedPair& pair, std::span<const std::string> tensors, io::JsonWriter& json) {
  const int32_t end_id = pair.source.ids.back();  // the same on both sides
  json.key("source");
  write_side(json, pair.source, end_id);
  json.key("target");
  write_side(json, pair.target, end_id);
  json.key("forced");
  json.boolean(pair.forced);
  json.key("log_probability");
  json.number(pair.log_probability);
  json.key("score");
  json.number(pair.score);
  std::vector<std::string> read{pair.start_piece};
  read.insert(read.end(), pair.target.pieces.begin(), pair.target.pieces.end() - 1);
  write_texts(json, "decoder_input", read);
  json.key("attention");
  json.begin_object();
  std::vector<models::AttentionKind> kinds;
  for (const AttentionMap& map : pair.maps) {
    if (std::ranges::find(kinds, map.kind) == kinds.end()) kinds.push_back(map.kind);
  }
  for (const models::AttentionKind kind : kinds) {
    json.key(kind_name(kind));
    write_kind(json, pair, kind, tensors);
  }
  json.end_object();
}

}  // namespace gloss::inspect
