#include "gloss/inspect/attended_pair.h"

#include <algorithm>
#include <cmath>

#include "gloss/decode/search.h"
#include "gloss/text/space.h"

namespace gloss::inspect {
namespace {

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

// The end symbol is no piece of the text.
void refuse_long(const Side& side, const char* what, int64_t most, int32_t end_id) {
  const auto pieces = static_cast<int64_t>(side.ids.size() - (side.ids.back() == end_id ? 1 : 0));
  require(pieces <= most,
          "the {} has {} pieces, and attention is shown of at most {}: give a part of it, a sentence say",
          what, pieces, most);
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
  const int32_t end_id = model.symbols().end;
  refuse_long(pair.source, "sentence", kMostSourcePieces, end_id);
  pair.start_piece = tokenizer.target_vocabulary().piece(model.symbols().start);
  pair.forced = target.has_value();
  const Tokens source = one_sentence(pair.source.ids);
  const decode::SearchOptions search = decode::search_options(options.translate, translator.own_end());
  if (target) {
    require(!text::is_blank(*target), "the given translation is empty: leave it out, and one is found");
    pair.target = forced_target(*target, tokenizer);
    refuse_long(pair.target, "given translation", kMostTargetPieces, end_id);
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

}  // namespace gloss::inspect
