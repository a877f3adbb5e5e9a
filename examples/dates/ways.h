// The ways to write a date. A way is a pattern such as "the {day} of {month}, {year}"; words.h lists the
// parts.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "words.h"

namespace gloss::dates {

struct Way {
  Language language;
  std::string_view pattern;
  bool held_out = false;  // never in the training text; tested apart
};

// All ways, English before German.
std::span<const Way> ways();

// The day written this way: "the third of March, twenty twenty-one".
std::string write(const Way& way, Day day);

}  // namespace gloss::dates
