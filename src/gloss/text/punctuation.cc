#include "gloss/text/punctuation.h"

#include <unicode/uchar.h>
#include <unicode/utf8.h>

#include <algorithm>

namespace gloss::text {

bool is_punctuation(std::string_view text) {
  constexpr UChar32 kWords[] = {'#',    '%',    '&',    '@',    0xA7,   0xB6,
                                0x2030, 0x2031, 0xFF03, 0xFF05, 0xFF06, 0xFF20};
  const auto* bytes = reinterpret_cast<const uint8_t*>(text.data());
  const auto length = static_cast<int32_t>(text.size());
  for (int32_t i = 0; i < length;) {
    UChar32 c = 0;
    U8_NEXT(bytes, i, length, c);
    if (c < 0 || !u_ispunct(c) || std::ranges::find(kWords, c) != std::end(kWords)) return false;
  }
  return !text.empty();
}

}  // namespace gloss::text
