#include "gloss/inspect/attended_pair.h"

#include <algorithm>
#include <cmath>

#include "gloss/decode/search.h"
#include "gloss/text/space.h"

namespace gloss::inspect {
namespace {

using Json = nlohmann::ordered_json;

Tokens one_sentence(const std::vector<int32_t>& ids) {
  return {ids, Offsets({0, static_cast<int64_t>(ids.size())})};
}

// Text that has no piece is shown as it stands in the line.
std::vector<std::string> spelled(const text::Vocabulary& vocabulary, std::string_view line,
                                 const text::EncodedLine& encoded) {
  std::vector<std::string> pieces;
  for (size_t i = 0; i < encoded.ids.size(); ++i) {
    const auto [begin, end, starts] = encoded.spans[i];
    const auto span = line.substr(static_cast<size_t>(begin), static_cast<size_t>(end - begin));
    pieces.push_back(encoded.ids[i] == vocabulary.unknown_id() ? std::string(text::trimmed(span))
                                                               : vocabulary.piece(encoded.ids[i]));
  }
  return pieces;
}

Side side_of(std::string_view line, text::EncodedLine encoded, const text::Vocabulary& vocabulary) {
  Side side;
  side.text = line;
  side.pieces = spelled(vocabulary, line, encoded);
  side.words = text::words_of(line, encoded.spans);
  side.ids = std::move(encoded.ids);
  return side;
}

Side forced_target(std::string_view line, const text::Tokenizer& tokenizer) {
  const text::Vocabulary& vocabulary = tokenizer.target_vocabulary();
  Side side = side_of(line, tokenizer.encode_target(line), vocabulary);
  const auto unknown = std::ranges::find(side.ids, vocabulary.unknown_id());
  require(unknown == side.ids.end(),
          "the vocabulary of the target cannot spell '{}' in '{}': force a translation without it",
          unknown == side.ids.end() ? "" : side.pieces[static_cast<size_t>(unknown - side.ids.begin())],
          line);
  return side;
}

Side found_target(const text::Tokenizer& tokenizer, const decode::Hypothesis& hypothesis) {
  Side side;
  const text::Vocabulary& vocabulary = tokenizer.target_vocabulary();
  side.text = tokenizer.decode_target(hypothesis.tokens);
  side.ids = hypothesis.tokens;
  for (const int32_t id : side.ids) side.pieces.push_back(vocabulary.piece(id));
  side.words = text::words_of(vocabulary, side.ids);
  return side;
}

// Eight decimals: more than a weight near 1 has, and short.
double rounded(float x) {
  return std::round(static_cast<double>(x) * 1e8) / 1e8;
}

// [heads][n_q][n_k] of one sentence.
Json heads_json(const float* numbers, int64_t heads, int64_t n_q, int64_t n_k) {
  Json out = Json::array();
  for (int64_t head = 0; head < heads; ++head) {
    Json rows = Json::array();
    for (int64_t i = 0; i < n_q; ++i) {
      Json row = Json::array();
      for (int64_t j = 0; j < n_k; ++j, ++numbers) {
        row.push_back(std::isfinite(*numbers) ? Json(rounded(*numbers)) : Json(nullptr));
      }
      rows.push_back(std::move(row));
    }
    out.push_back(std::move(rows));
  }
  return out;
}

Json with_shape(std::vector<int64_t> shape, Json values) {
  return {{"shape", std::move(shape)}, {"values", std::move(values)}};
}

// One matrix in between by its name.
Json tensor_json(const models::AttentionMap& map, const std::string& name, int64_t n_q, int64_t n_k) {
  if (name == "scores" || name == "weights") {
    const Tensor<float>& from = name == "scores" ? map.scores : map.weights;
    return with_shape({map.heads, n_q, n_k}, heads_json(from.data(), map.heads, n_q, n_k));
  }
  std::string there = "scores, weights";
  for (const auto& [known, matrix] : map.tensors) {
    there += ", " + known;
    if (known == "concat") there += ", heads";
    if (known == name)
      return with_shape({matrix.rows(), matrix.cols()},
                        heads_json(matrix.data(), 1, matrix.rows(), matrix.cols())[0]);
    if (known != "concat" || name != "heads") continue;
    // head_i is a slice of columns.
    const int64_t d_v = matrix.cols() / map.heads;
    std::vector<float> heads;
    for (int64_t head = 0; head < map.heads; ++head) {
      for (int64_t i = 0; i < matrix.rows(); ++i)
        heads.insert(heads.end(), matrix.row(i) + head * d_v, matrix.row(i) + (head + 1) * d_v);
    }
    return with_shape({map.heads, matrix.rows(), d_v},
                      heads_json(heads.data(), map.heads, matrix.rows(), d_v));
  }
  throw UsageError(fmt::format("there is no matrix '{}' in this attention: choose of {}", name, there));
}

Json words_json(const text::Words& words) {
  Json of = Json::array();
  for (const int32_t word : words.word_of) of.push_back(word < 0 ? Json(nullptr) : Json(word));
  return of;
}

Json side_json(const Side& side, int32_t end_id) {
  Json ends = Json::array();
  for (const int32_t id : side.ids) ends.push_back(id == end_id);
  return {{"text", side.text},
          {"pieces", side.pieces},
          {"words", side.words.texts},
          {"word_of_piece", words_json(side.words)},
          {"is_end_symbol", ends}};
}

}  // namespace

std::string_view kind_name(models::AttentionKind kind) {
  switch (kind) {
    case models::AttentionKind::cross:
      return "cross";
    case models::AttentionKind::encoder:
      return "encoder";
    case models::AttentionKind::decoder:
      return "decoder";
  }
  return "";
}

AttendedPair attend(const decode::Translator& translator, Context& context, std::string_view line,
                    const std::optional<std::string>& target, const AttendOptions& options) {
  require(!text::is_blank(line), "the sentence is empty: there is nothing to look at");
  const text::Tokenizer& tokenizer = translator.tokenizer();
  const models::Model& model = translator.model();
  AttendedPair pair;
  pair.source = side_of(line, tokenizer.encode_source(line), tokenizer.source_vocabulary());
  pair.start_piece = tokenizer.target_vocabulary().piece(model.symbols().start);
  pair.forced = target.has_value();
  const Tokens source = one_sentence(pair.source.ids);
  const decode::SearchOptions search = decode::search_options(options.translate, translator.own_end());
  if (target) {
    require(!text::is_blank(*target), "the given translation is empty: leave it out, and one is found");
    pair.target = forced_target(*target, tokenizer);
    autograd::Tape<float> tape(context);
    for (const float log_p : model.log_probabilities(tape, source, one_sentence(pair.target.ids)))
      pair.log_probability += static_cast<double>(log_p);
    pair.score =
        pair.log_probability / std::pow(static_cast<double>(pair.target.ids.size()), search.length_penalty);
  } else {
    const auto state = model.decoder_state(context, models::Caching::on);
    const decode::Hypothesis best = decode::search(context, *state, source, search).at(0).at(0);
    pair.target = found_target(tokenizer, best);
    pair.log_probability = static_cast<double>(best.log_probability);
    pair.score = static_cast<double>(best.score);
  }
  autograd::Tape<float> tape(context);
  pair.maps = model.attend(tape, source, one_sentence(pair.target.ids), options.request);
  return pair;
}

Json to_json(const AttendedPair& pair, std::span<const std::string> tensors) {
  const auto n = static_cast<int64_t>(pair.target.ids.size()),
             m = static_cast<int64_t>(pair.source.ids.size());
  const int32_t end_id = pair.source.ids.back();  // the same on both sides
  Json json = {{"source", side_json(pair.source, end_id)},
               {"target", side_json(pair.target, end_id)},
               {"forced", pair.forced},
               {"log_probability", pair.log_probability},
               {"score", pair.score}};
  json["decoder_input"] = Json::array({pair.start_piece});
  for (int64_t i = 0; i + 1 < n; ++i)
    json["decoder_input"].push_back(pair.target.pieces[static_cast<size_t>(i)]);
  Json kinds = Json::object();
  for (const models::AttentionMap& map : pair.maps) {
    const int64_t n_q = map.kind == models::AttentionKind::encoder ? m : n;
    const int64_t n_k = map.kind == models::AttentionKind::decoder ? n : m;
    Json& kind = kinds[std::string(kind_name(map.kind))];
    kind["layers"].push_back(map.layer);
    kind["weights"].push_back(heads_json(map.weights.data(), map.heads, n_q, n_k));
    if (tensors.empty()) continue;
    Json named = Json::object();
    for (const std::string& name : tensors) named[name] = tensor_json(map, name, n_q, n_k);
    kind["tensors"].push_back(std::move(named));
  }
  json["attention"] = std::move(kinds);
  return json;
}

}  // namespace gloss::inspect
