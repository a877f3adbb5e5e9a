#include "gloss/text/space.h"

#include "gloss/text/utf8.h"

namespace gloss::text {

size_t space_length(std::string_view text) {
  if (text.empty()) return 0;
  const auto first = static_cast<unsigned char>(text.front());
  if (first < 0x80) return first == ' ' || (first >= '\t' && first <= '\r') ? 1 : 0;
  constexpr std::string_view kSpaces[] = {
      "\u0085", "\u00A0", "\u1680", "\u2000", "\u2001", "\u2002", "\u2003", "\u2004", "\u2005", "\u2006",
      "\u2007", "\u2008", "\u2009", "\u200A", "\u2028", "\u2029", "\u202F", "\u205F", "\u3000"};
  for (const std::string_view space : kSpaces) {
    if (text.starts_with(space)) return space.size();
  }
  return 0;
}

size_t skip_spaces(std::string_view text, size_t at) {
  while (const size_t length = space_length(text.substr(at))) at += length;
  return at;
}

std::string_view trimmed(std::string_view text) {
  text.remove_prefix(skip_spaces(text, 0));
  while (!text.empty()) {
    const size_t last = floor_to_character(text, text.size() - 1);
    if (space_length(text.substr(last)) == 0) break;
    text.remove_suffix(text.size() - last);
  }
  return text;
}

}  // namespace gloss::text
