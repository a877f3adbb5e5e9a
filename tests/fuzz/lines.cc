#include "gloss/text/lines.h"

#include <unistd.h>

#include "fuzz.h"
#include "gloss/text/utf8.h"

namespace {
using namespace gloss;

// All lines with their endings are the input again, unless something was replaced.
void read(std::string_view input, text::InvalidUtf8 invalid) {
  const fuzz::MemoryFile memory(input);
  text::LineReader reader(memory.path(), invalid);
  std::string joined;
  bool replaced = false;
  int64_t number = 0;
  for (text::Line line; reader.next(line);) {
    fuzz::check(text::is_utf8(line.text), "lines of valid UTF-8");
    fuzz::check(line.number == ++number, "numbers in order");
    joined.append(line.text).append(line.ending);
    replaced |= line.replaced;
  }
  if (input.starts_with("\xEF\xBB\xBF")) input.remove_prefix(3);
  fuzz::check(replaced || joined == input, "nothing lost");
}
}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input = fuzz::text_of(data, size);
  fuzz::accepts([&] { read(input, text::InvalidUtf8::fail); });
  fuzz::accepts([&] { read(input, text::InvalidUtf8::replace); });
  const std::string repaired = text::replace_invalid_utf8(input);
  fuzz::check(text::is_utf8(repaired), "a repaired text is valid");
  fuzz::check(!text::is_utf8(input) || repaired == input, "a valid text stays");
  return 0;
}
