// A sentence, its translation and what attention did between them and within each.
#pragma once

#include <nlohmann/json.hpp>
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

// Encodes the line, finds its best translation, or takes the target that is given, and reads what attention
// did in the pass that forces it: the same numbers as in the search, but for rounding (1e-5). Throws Error
// where the line has no text or the target holds text that the vocabulary cannot spell.
AttendedPair attend(const decode::Translator& translator, Context& context, std::string_view line,
                    const std::optional<std::string>& target, const AttendOptions& options);

// The documented form, docs/attend.md: attention as [layer][head][query][key]. `tensors` names matrices in
// between to add: scores, weights, heads, and those of models::AttentionMap, which must have been asked for.
// Throws UsageError listing what exists for any other name.
nlohmann::ordered_json to_json(const AttendedPair& pair, std::span<const std::string> tensors = {});

std::string_view kind_name(models::AttentionKind kind);  // "cross", "encoder", "decoder"

}  // namespace gloss::inspect
