// Option structs (gloss/base/options.h) on the command line.
#pragma once

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string>
#include <vector>

#include "gloss/base/options.h"

namespace gloss::cli {

namespace detail {

// By its placeholder.
inline bool names_folder(const Field& field) {
  return field.placeholder() == "MODEL" || field.placeholder() == "DIR";
}
inline bool names_file(const Field& field) {
  return field.placeholder().starts_with("FILE") || field.placeholder() == "SRC TGT" ||
         field.placeholder() == "GOLD" || names_folder(field);
}

// An empty name stands for "not given" in options, and a script whose variable is empty would not hear of it.
inline void refuse_empty_name(const Field& field, const std::vector<std::string>& values) {
  if (names_file(field) && std::ranges::find(values, "") != values.end())
    throw UsageError(fmt::format("--{} is given an empty name: name a {}, or leave the option out",
                                 field.name(), names_folder(field) ? "folder" : "file"));
}

template <class Options>
void add_flag(CLI::App& app, const Field& field, const bool& value, Typed<Options>& options) {
  const std::string name = field.name();
  const auto sets = [&options, name](const char* text) {
    return [&options, name, text](int64_t times) {
      if (times > 0) options.set(name, text);
    };
  };
  // Both spellings work, so that a script can say either whatever the default is; the help shows the one that
  // changes the default.
  CLI::Option* on = app.add_flag_function("--" + name, sets("true"), field.help())->disable_flag_override();
  CLI::Option* off =
      app.add_flag_function("--no-" + name, sets("false"), field.help())->disable_flag_override();
  on->excludes(off);
  on->group(value ? "" : field.group());
  off->group(value ? field.group() : "");
}

template <class Options>
void add_list(CLI::App& app, const Field& field, Typed<Options>& options) {
  const std::string name = field.name();
  CLI::Option* option = app.add_option_function<std::vector<std::string>>(
      "--" + name,
      [&options, name, field](const std::vector<std::string>& values) {
        refuse_empty_name(field, values);
        options.set_values(name, values, "--");
      },
      field.help());
  option->type_name(field.placeholder())->group(field.group());
  if (field.count() == Field::kAnyCount) {
    option->expected(1, CLI::detail::expected_max_vector_size);
  } else {
    option->expected(field.count());
  }
}

}  // namespace detail

// Adds every field of `options` to `app` as --name, with its help and default, and fills `options` as the
// command line is parsed, recording what was typed. `options` must outlive the parsing. A value that a field
// does not allow throws UsageError.
template <class Options>
void add_options(CLI::App& app, Typed<Options>& options) {
  for_each_field(options.value, [&]<class T>(const Field& field, T& value) {
    if constexpr (std::same_as<T, bool>) {
      detail::add_flag(app, field, value, options);
    } else if constexpr (std::same_as<T, std::vector<std::string>>) {
      detail::add_list(app, field, options);
    } else {
      const std::string name = field.name();
      CLI::Option* option = app.add_option_function<std::string>(
          "--" + name,
          [&options, name, field](const std::string& text) {
            detail::refuse_empty_name(field, {text});
            options.set(name, text, "--");
          },
          field.help());
      std::string type = field.placeholder();
      if (!field.choices().empty()) {
        type.clear();
        for (const auto& [number, choice] : field.choices())
          type.append(type.empty() ? "" : "|").append(choice);
      }
      option->type_name(type)->group(field.group());
      if (const std::string text = field_text(field, value); !text.empty()) option->default_str(text);
    }
  });
}

}  // namespace gloss::cli
