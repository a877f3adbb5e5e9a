#include "gloss/io/quote.h"

#include <fmt/core.h>

namespace gloss::io {

std::string printable(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7F) {
      out += fmt::format("\\x{:02X}", byte);
    } else {
      out += c;
    }
  }
  return out;
}

std::string abridged(std::string_view text) {
  constexpr size_t kShown = 80;
  size_t end = text.size();
  if (end > kShown) {
    end = kShown;
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  }
  return printable(text.substr(0, end)) + (end < text.size() ? "..." : "");
}

std::string in_quotes(std::string_view text) {
  return fmt::format("'{}'", abridged(text));
}

std::string shown(const std::filesystem::path& path) {
  constexpr size_t kLongest = 300, kKept = 120;
  const std::string text = path.string();
  if (text.empty()) return "''";
  return text.size() <= kLongest ? text : text.substr(0, kKept) + "..." + text.substr(text.size() - kKept);
}

}  // namespace gloss::io
