// A sentence, its translation and what attention did between them and within each.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gloss/decode/translator.h"
#include "gloss/models/attention_map.h"
#include "gloss/text/words.h"

namespace gloss::inspect {

// One side as the model sees it. Pieces and words stand beside each other: word_of says which belong
// together.
struct Side {
  std::string text;
  std::vector<int32_t> ids;         // with the end symbol, where there is one
  std::vector<std::string> pieces;  // as the vocabulary spells them; text without pieces as it stands
  text::Words words;
};

struct AttendedPair {
  Side source, target;
  bool forced = false;                    // the target was given, not found
  std::string start_piece;                // what the decoder reads before the target
  double log_probability = 0, score = 0;  // of the target; score is divided by length^alpha
  std::vector<models::AttentionMap> maps;
};

struct AttendOptions {
  decode::TranslateOptions translate;  // how the target is found where none is given
  models::AttentionRequest request;
};

// Weights are as many as the products of these, for each layer and head: beyond that nobody reads them, and
// memory ends. A source as long as gloss translate takes in one piece, and a translation as long as search
// finds.
inline constexpr int64_t kMostSourcePieces = 512, kMostTargetPieces = 2048;

// Encodes the line, finds its best translation, or takes the target that is given, and reads what attention
// did in the pass that forces it: the same numbers as in the search, but for rounding (1e-5). Throws Error
// where the line has no text, where a side has more than the pieces above, or where the target holds text
// that the vocabulary cannot spell.
AttendedPair attend(const decode::Translator& translator, Context& context, std::string_view line,
                    const std::optional<std::string>& target, const AttendOptions& options);

std::string_view kind_name(models::AttentionKind kind);  // "cross", "encoder", "decoder"

}  // namespace gloss::inspect
