#include "gloss/inspect/svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <map>

#include "gloss/inspect/svg_path.h"

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

void erase_all(std::string& text, std::string_view what) {
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at))
    text.erase(at, what.size());
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

// Hundredths of a point, finer than any printer. Factors of a matrix multiply lengths and stay.
std::string with_short_numbers(std::string_view svg) {
  constexpr size_t kDecimals = 2;
  constexpr std::string_view kMatrix = "matrix(";
  std::string out;
  while (true) {
    const size_t point = svg.find('.'), matrix = svg.find(kMatrix);
    if (point == std::string_view::npos) return out.append(svg);
    if (matrix < point) {
      const size_t end = std::min(svg.find(')', matrix), svg.size());
      out.append(svg.substr(0, end));
      svg.remove_prefix(end);
      continue;
    }
    size_t begin = point, end = point + 1;
    while (begin > 0 && is_digit(svg[begin - 1])) --begin;
    while (end < svg.size() && is_digit(svg[end])) ++end;
    out.append(svg.substr(0, begin));
    const std::string_view number = svg.substr(begin, end - begin);
    if (begin < point && end - point - 1 > kDecimals) {
      double value = 0;
      std::from_chars(number.data(), number.data() + number.size(), value);
      std::string text = fmt::format("{:.{}f}", value, kDecimals);
      text.erase(text.find_last_not_of('0') + 1);
      if (text.ends_with('.')) text.pop_back();
      out += text;
    } else {
      out.append(number);
    }
    svg.remove_prefix(end);
  }
}

// rgb(100%,50%,0%) as #ff8000: exact, since the canvas rounds colours to eight bits.
std::string with_short_colours(std::string_view svg) {
  constexpr std::string_view kColour = "rgb(";
  std::string out;
  while (true) {
    const size_t at = svg.find(kColour);
    if (at == std::string_view::npos) return out.append(svg);
    out.append(svg.substr(0, at));
    svg.remove_prefix(at + kColour.size());
    out += '#';
    for (const char after : {',', ',', ')'}) {
      const size_t end = std::min(svg.find(after), svg.size());
      double percent = 0;
      std::from_chars(svg.data(), svg.data() + end, percent);
      out += fmt::format("{:02x}", std::lround(std::clamp(percent, 0.0, 100.0) * 2.55));
      svg.remove_prefix(std::min(end + 1, svg.size()));
    }
  }
}

// Applies `shortened` to what stands between `begin` and the next quotation mark.
template <class F>
std::string with_values(std::string_view svg, std::string_view begin, F shortened) {
  std::string out;
  while (true) {
    const size_t at = svg.find(begin);
    const size_t end = at == std::string_view::npos ? at : svg.find('"', at + begin.size());
    if (end == std::string_view::npos) return out.append(svg);
    out.append(svg.substr(0, at)).append(shortened(svg.substr(at + begin.size(), end - at - begin.size())));
    svg.remove_prefix(end + 1);
  }
}

std::string with_short_paths(std::string_view svg) {
  constexpr std::string_view kPath = " d=\"";
  return with_values(svg, kPath,
                     [&](std::string_view path) { return std::string(kPath) + short_path(path) + '"'; });
}

// A style of one property, such as style="fill:red;", as an attribute, fill="red"; one of none is left out.
std::string with_short_styles(std::string_view svg) {
  return with_values(svg, " style=\"", [&](std::string_view style) -> std::string {
    style.remove_prefix(std::min(style.find_first_not_of(' '), style.size()));
    if (style.empty()) return "";
    const size_t colon = style.find(':'), end = style.find(';');
    if (colon < end && end + 1 == style.size())
      return fmt::format(" {}=\"{}\"", style.substr(0, colon), style.substr(colon + 1, end - colon - 1));
    return fmt::format(" style=\"{}\"", style);
  });
}

// Cairo wraps the outline of each glyph in a <symbol>; an outline can be used as it is.
std::string with_bare_glyphs(std::string_view svg) {
  constexpr std::string_view kSymbol = "<symbol overflow=\"visible\"", kPath = ">\n<path",
                             kEnd = "/>\n</symbol>";
  std::string out;
  while (true) {
    const size_t at = svg.find(kSymbol);
    if (at == std::string_view::npos) return out.append(svg);
    const size_t begin = at + kSymbol.size();
    const size_t path = std::min(svg.find('>', begin), svg.size());
    const size_t end = std::min(svg.find("/>", path), svg.size());
    out.append(svg.substr(0, at));
    if (svg.substr(path).starts_with(kPath) && svg.substr(end).starts_with(kEnd)) {
      const size_t attributes = path + kPath.size();
      out.append("<path").append(svg.substr(begin, path - begin));
      out.append(svg.substr(attributes, end - attributes)).append("/>");
      svg.remove_prefix(end + kEnd.size());
    } else {
      out.append(kSymbol);
      svg.remove_prefix(begin);
    }
  }
}

// What cairo says of each shape though it goes without saying.
std::string without_defaults(std::string svg) {
  for (const std::string_view said : {"fill-rule:nonzero;", "fill-opacity:1;", "stroke:none;",
                                      "stroke-opacity:1;", "stroke-linecap:butt;", "stroke-linejoin:miter;"})
    erase_all(svg, said);
  return svg;
}

}  // namespace

std::string tidy_svg(std::string_view svg, std::string_view title) {
  std::string out = with_short_numbers(svg);
  // The hash is taken of what does not change from one run to the next.
  const std::string prefix = four_letters(renamed(out, "") + std::string(title));
  out = without_defaults(with_short_colours(renamed(out, prefix)));
  out = with_bare_glyphs(with_short_styles(with_short_paths(out)));
  const size_t root = out.find("<svg");
  const size_t end = root == std::string::npos ? root : out.find('>', root);
  if (end == std::string::npos || title.empty()) return out;
  out.insert(end + 1, fmt::format("\n<title>{}</title>", escaped(title)));
  out.insert(root + 4, " role=\"img\"");
  return out;
}

}  // namespace gloss::inspect
