// The tokenisers of machine translation metrics, equal to sacreBLEU's of the same names.
#pragma once

#include <string>
#include <string_view>

namespace gloss::evaluate {

enum class Tokenizer {
  v13a,  // mteval-v13a.pl, WMT's: ASCII punctuation apart, numbers whole, four HTML entities undone
  intl,  // mteval-v14.pl --international-tokenization: every Unicode punctuation mark and symbol apart
  none,  // the text is tokenised already: split at white space (what multi-bleu.perl does)
};

std::string_view tokenizer_name(Tokenizer tokenizer);  // as in signatures: "13a"

// The tokens of a line, separated by white space. `line` must be valid UTF-8.
std::string tokenize(Tokenizer tokenizer, std::string_view line);

}  // namespace gloss::evaluate
