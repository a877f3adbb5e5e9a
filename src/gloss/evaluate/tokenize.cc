#include "gloss/evaluate/tokenize.h"

#include <unicode/uchar.h>

#include <array>
#include <utility>

#include "gloss/evaluate/unicode.h"

namespace gloss::evaluate {
namespace {

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  std::string out;
  size_t begin = 0;
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, begin)) {
    out.append(text, begin, at - begin).append(to);
    begin = at + from.size();
  }
  text = std::move(out.append(text, begin));
}

// Calls a rule for every pair of neighbours from left to right. Where it holds, both are written by `write`
// and consumed, as a regular expression of two characters would.
template <class Text, class Holds, class Write>
Text rewrite_pairs(const Text& text, Holds&& holds, Write&& write) {
  Text out;
  out.reserve(text.size() + text.size() / 4);
  size_t i = 0;
  while (i < text.size()) {
    if (i + 1 < text.size() && holds(text[i], text[i + 1])) {
      write(out, text[i], text[i + 1]);
      i += 2;
    } else {
      out.push_back(text[i++]);
    }
  }
  return out;
}

constexpr auto kSplitSecond = [](auto& out, auto first, auto second) {  // "a," -> "a , "
  out.push_back(first);
  out.push_back(' ');
  out.push_back(second);
  out.push_back(' ');
};
constexpr auto kSplitFirst = [](auto& out, auto first, auto second) {  // ",a" -> " , a"
  out.push_back(' ');
  out.push_back(first);
  out.push_back(' ');
  out.push_back(second);
};

bool digit(char c) {
  return c >= '0' && c <= '9';
}
bool period_or_comma(char c) {
  return c == '.' || c == ',';
}
// ASCII punctuation but ' , - .
bool always_apart(char c) {
  return (c >= '{' && c <= '~') || (c >= '[' && c <= '`') || (c >= ' ' && c <= '&') ||
         (c >= '(' && c <= '+') || (c >= ':' && c <= '@') || c == '/';
}

// Works on bytes: no rule tells one character beyond ASCII from another, and none splits one.
std::string tokenize_13a(std::string_view line) {
  std::string text(line);
  replace_all(text, "<skipped>", "");
  replace_all(text, "-\n", "");
  replace_all(text, "\n", " ");
  constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kEntities{
      {{"&quot;", "\""}, {"&amp;", "&"}, {"&lt;", "<"}, {"&gt;", ">"}}};
  for (const auto& [entity, character] : kEntities) replace_all(text, entity, character);
  std::string apart = " ";
  for (const char c : text) {
    if (always_apart(c)) {
      apart += ' ';
      apart += c;
      apart += ' ';
    } else {
      apart += c;
    }
  }
  apart += ' ';
  apart = rewrite_pairs(
      apart, [](char a, char b) { return !digit(a) && period_or_comma(b); }, kSplitSecond);
  apart = rewrite_pairs(
      apart, [](char a, char b) { return period_or_comma(a) && !digit(b); }, kSplitFirst);
  return rewrite_pairs(
      apart, [](char a, char b) { return digit(a) && b == '-'; }, kSplitSecond);
}

bool in(char32_t c, uint32_t categories) {
  return (U_GET_GC_MASK(static_cast<UChar32>(c)) & categories) != 0;
}

std::string tokenize_intl(std::string_view line) {
  std::u32string text = decode_utf8(line);
  text = rewrite_pairs(
      text, [](char32_t a, char32_t b) { return !in(a, U_GC_N_MASK) && in(b, U_GC_P_MASK); }, kSplitSecond);
  text = rewrite_pairs(
      text, [](char32_t a, char32_t b) { return in(a, U_GC_P_MASK) && !in(b, U_GC_N_MASK); }, kSplitFirst);
  std::u32string out;
  for (const char32_t c : text) {
    if (in(c, U_GC_S_MASK)) {
      out += U' ';
      out += c;
      out += U' ';
    } else {
      out += c;
    }
  }
  return encode_utf8(out);
}

}  // namespace

std::string_view tokenizer_name(Tokenizer tokenizer) {
  switch (tokenizer) {
    case Tokenizer::v13a:
      return "13a";
    case Tokenizer::intl:
      return "intl";
    case Tokenizer::none:
      break;
  }
  return "none";
}

std::string tokenize(Tokenizer tokenizer, std::string_view line) {
  switch (tokenizer) {
    case Tokenizer::v13a:
      return tokenize_13a(line);
    case Tokenizer::intl:
      return tokenize_intl(line);
    case Tokenizer::none:
      break;
  }
  return std::string(line);
}

}  // namespace gloss::evaluate
