// Punctuation marks of Unicode in UTF-8 text.
#pragma once

#include <string_view>

namespace gloss::text {

// Whether `text` is made of punctuation marks alone (Unicode's category P), and holds one. Those that are
// read as a word do not count: # % & @ § ¶ ‰ ‱ and their wide forms. `text` must be valid UTF-8.
bool is_punctuation(std::string_view text);

}  // namespace gloss::text
