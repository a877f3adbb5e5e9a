// One of several that are counted from 0, or a word: what --layer and --head take.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include "gloss/base/error.h"

namespace gloss::cli {

enum class Which { untold, one, mean, each };
struct Choice {
  Which which = Which::untold;
  int64_t number = 0;
  std::optional<int64_t> one() const { return which == Which::one ? std::optional(number) : std::nullopt; }
};

inline std::string counted(int64_t count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

// A number below `count`, "mean" or "all", where these are allowed. Throws UsageError that says what there is
// (`there`).
inline Choice parse_choice(std::string_view option, const std::string& text, int64_t count,
                           std::initializer_list<Which> allowed, const std::string& there) {
  std::string words;
  size_t left = allowed.size();
  for (const Which which : allowed) {
    const std::string_view word = which == Which::mean ? "mean" : "all";
    if (text == word) return {which, 0};
    words += fmt::format("{}{}", --left > 0 ? ", " : " or ", word);
  }
  const bool digits =
      !text.empty() && text.size() < 10 && text.find_first_not_of("0123456789") == std::string::npos;
  const int64_t number = digits ? std::stoll(text) : count;
  if (number < count) return {Which::one, number};
  throw UsageError(fmt::format("--{} must be {}{}, not '{}': {}", option,
                               count == 1 ? "0" : fmt::format("a number from 0 to {}", count - 1), words,
                               text, there));
}

}  // namespace gloss::cli
