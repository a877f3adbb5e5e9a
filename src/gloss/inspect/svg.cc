#include "gloss/inspect/svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <map>

namespace gloss::inspect {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

// A number as short as a thousandth of a point allows, or five digits where it is below one: a factor of a
// matrix.
std::string shortened(std::string_view digits) {
  double value = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), value);
  std::string text = fmt::format("{:.{}f}", value, value < 0.1 ? 5 : 3);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return text;
}

// FNV-1a; four letters tell the pictures of a page apart.
std::string four_letters(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  std::string out;
  for (int i = 0; i < 4; ++i, hash /= 26) out += static_cast<char>('a' + hash % 26);
  return out;
}

// Names in order of appearance: "surface17" is the first surface, so it becomes "surface0".
class Names {
 public:
  std::string renumbered(std::string_view name) {
    const size_t digits = name.find_first_of("0123456789");
    const std::string kind(name.substr(0, digits));
    // Glyphs are numbered by their picture already, and these are most of the names.
    if (kind == "glyph") return std::string("g").append(name.substr(digits));
    const auto [it, fresh] = numbers_.try_emplace(std::string(name), 0);
    if (fresh) it->second = counts_[kind]++;
    return kind + std::to_string(it->second);
  }

 private:
  std::map<std::string, int, std::less<>> numbers_, counts_;
};

std::string renamed(std::string_view svg, std::string_view prefix) {
  std::string out;
  Names names;
  while (true) {
    // id="name", xlink:href="#name", url(#name); base64 has neither quotes nor '#'.
    const size_t quoted = svg.find("id=\""), referred = svg.find('#');
    const size_t at = std::min(quoted, referred);
    if (at == std::string_view::npos) return out.append(svg);
    const size_t begin = at == referred ? at + 1 : at + 4;
    const size_t end = svg.find_first_of("\")", begin);
    if (end == std::string_view::npos) return out.append(svg);
    out.append(svg.substr(0, begin)).append(prefix).append("-");
    out += names.renumbered(svg.substr(begin, end - begin));
    svg.remove_prefix(end);
  }
}

std::string with_short_numbers(std::string_view svg) {
  std::string out;
  constexpr size_t kDecimals = 3;
  while (true) {
    const size_t point = svg.find('.');
    if (point == std::string_view::npos) return out.append(svg);
    size_t begin = point, end = point + 1;
    while (begin > 0 && is_digit(svg[begin - 1])) --begin;
    while (end < svg.size() && is_digit(svg[end])) ++end;
    out.append(svg.substr(0, begin));
    const std::string_view number = svg.substr(begin, end - begin);
    if (begin < point && end - point - 1 > kDecimals) {
      out += shortened(number);
    } else {
      out.append(number);
    }
    svg.remove_prefix(end);
  }
}

}  // namespace

std::string tidy_svg(std::string_view svg, std::string_view title) {
  std::string out = with_short_numbers(svg);
  // The hash is taken of what does not change from one run to the next.
  const std::string prefix = four_letters(renamed(out, "") + std::string(title));
  out = renamed(out, prefix);
  const size_t root = out.find("<svg");
  const size_t end = root == std::string::npos ? root : out.find('>', root);
  if (end == std::string::npos || title.empty()) return out;
  out.insert(end + 1, fmt::format("\n<title>{}</title>", escaped(title)));
  out.insert(root + 4, " role=\"img\"");
  return out;
}

}  // namespace gloss::inspect
