// Text that the model has no pieces for survives translation.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gloss/text/tokenizer.h"

namespace gloss::text {

// The text of target ids in which every unknown piece of the source has its copy. An <unk> that the model
// produced becomes what it is aligned to (Tokenizer::decode_target). A model that never met an <unk> in
// training produces none: what is unknown in the source and was not copied so is put between the words where
// attention passed it, a letter together with its word. `source` is what `line` was encoded to, `aligned_to`
// the source position that each target id looked at (-1: none).
std::string decode_with_unknowns(const Tokenizer& tokenizer, std::string_view line, const EncodedLine& source,
                                 std::span<const int32_t> ids, std::span<const int32_t> aligned_to);

}  // namespace gloss::text
