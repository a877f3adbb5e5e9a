// What the commands that translate ask of their options on the command line. What would play no part is
// refused: who types it believes that it does something.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <concepts>
#include <initializer_list>
#include <string>
#include <string_view>

#include "gloss/base/options.h"
#include "gloss/decode/translate_options.h"

namespace gloss::cli {

// "--name" as it was typed: "--no-name" where that sets a flag to false.
template <class T>
std::string flag_text(const Field& field, const T& value) {
  if constexpr (std::same_as<T, bool>) {
    if (!value) return "--no-" + field.name();
  }
  return "--" + field.name();
}

// Throws UsageError, "--name <why>", for the first of `names` that was typed.
template <class Command>
void refuse_typed(const Typed<Command>& typed, std::initializer_list<std::string_view> names,
                  std::string_view why) {
  for (const std::string_view name : names) {
    if (typed.has(name)) throw UsageError(fmt::format("--{} {}", name, why));
  }
}

// The same for every option of translating: "<why>--name".
template <class Command>
void refuse_translating(const Typed<Command>& typed, std::string_view why) {
  for_each_field(typed.value.translate, [&](const Field& field, const auto& value) {
    if (typed.has(std::string_view(field.name())))
      throw UsageError(fmt::format("{}{}", why, flag_text(field, value)));
  });
}

// Checks the options before a model is opened, and lets --n-best raise the beam. `scores_shown`: whether
// scores are printed beside the text of the best translation.
template <class Command>
void settle_translating(Typed<Command>& typed, bool scores_shown) {
  decode::TranslateOptions& options = typed.value.translate;
  if (options.sample) {
    refuse_typed(typed, {"beam", "patience"},
                 "plays no part in drawing at random: leave out that or --sample");
    if (options.search.n_best == 1 && !scores_shown)  // else it orders the draws
      refuse_typed(typed, {"length-penalty"},
                   "changes no text that is drawn at random: leave out that or --sample");
  } else {
    refuse_typed(typed, {"temperature", "top-k", "top-p", "seed"}, "is for drawing at random: add --sample");
  }
  if (options.shortlist.empty())
    refuse_typed(typed, {"shortlist-first", "shortlist-best"},
                 "is for choosing among likely pieces: add --shortlist TABLE");
  if (options.plain && options.copy_unknown)
    refuse_typed(typed, {"copy-unknown"}, "is what --plain switches off: leave out one of them");
  typed.suggest(options.search.beam, std::max(options.search.beam, options.search.n_best));
  decode::search_options(options);
}

}  // namespace gloss::cli
