// Option structs (base/options.h) as JSON: what a run remembers of its options.
#pragma once

#include <string>
#include <vector>

#include "gloss/base/options.h"
#include "gloss/io/json_file.h"
#include "gloss/io/quote.h"

namespace gloss::io {

// Every field under its name with underscores, in the order of the table.
template <class Options>
nlohmann::ordered_json options_to_json(const Options& options) {
  nlohmann::ordered_json out = nlohmann::ordered_json::object();
  for_each_field(options, [&]<class T>(const Field& field, const T& value) {
    if constexpr (std::is_enum_v<T>) {
      out[field.json_name()] = field.choice_name(static_cast<int64_t>(value));
    } else {
      out[field.json_name()] = value;
    }
  });
  return out;
}

// Starts from `base` and counts every key of the object as typed. Throws for unknown keys, wrong types and
// values that the field does not allow: "train.json: 'dropout' must be a number from 0 to below 1, not '2'".
template <class Options>
Typed<Options> options_from_json(const JsonObject& object, Options base = {}) {
  Typed<Options> out{std::move(base), {}};
  std::set<std::string> known;
  for_each_field(out.value, [&]<class T>(const Field& field, T& value) {
    const std::string key = field.json_name();
    known.insert(key);
    if (!object.json().contains(key)) return;
    const std::string who = fmt::format("{}: {}", object.name(), in_quotes(key));
    if constexpr (std::same_as<T, bool>) {
      value = object.flag(key);
    } else if constexpr (WholeNumber<T>) {
      const int64_t number = object.whole(key, {});
      field.check_whole(who, number, kLowest<T>, kHighest<T>);
      value = static_cast<T>(number);
    } else if constexpr (std::floating_point<T>) {
      value = static_cast<T>(object.number(key));
    } else if constexpr (std::is_enum_v<T>) {
      value = static_cast<T>(field.choice(who, object.text(key)));
    } else if constexpr (std::same_as<T, std::string>) {
      value = object.text(key);
    } else {
      value = object.texts(key);
    }
    check_field(field, who, value);
    out.typed.insert(field.name());
  });
  for (const auto& [key, value] : object.json().items()) {
    if (!known.contains(key)) fail("{}: there is no option {}", object.name(), in_quotes(key));
  }
  return out;
}

}  // namespace gloss::io
