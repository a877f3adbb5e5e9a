// Options described once: a struct with defaults and one table of its fields, which drives the command line,
// its help, the options as JSON and the checks.
//
//   struct PaintOptions {
//     int64_t coats = 2;
//     double shine = 0.1;
//     std::string colour = "red";
//     template <class Self, class Visitor>
//     static void fields(Self& self, Visitor&& visit) {
//       visit(Field("coats", "N", "of paint").range(1, 9), self.coats);
//       visit(Field("shine", "S", "of the last coat").range_below(0, 1), self.shine);
//       visit(Field("colour", "C", "of every coat").one_of({"red", "green"}), self.colour);
//     }
//   };
//
// A field is a bool, any integer, a double, a std::string, an enum with named values or a
// std::vector<std::string>. Tables nest: call OtherOptions::fields(self.other, visit) inside.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <limits>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "gloss/base/error.h"

namespace gloss {

// What is to be known about a field besides its type and default.
class Field {
 public:
  static constexpr int kAnyCount = -1;

  // `name` as on the command line, without dashes in front; `placeholder` stands for the value in the help.
  Field(std::string_view name, std::string_view placeholder, std::string_view help)
      : name_(name), placeholder_(placeholder), help_(help) {}

  // Numbers from low to high, both allowed.
  Field& range(double low, double high) {
    low_ = low;
    high_ = high;
    return *this;
  }
  Field& at_least(double low) { return range(low, std::numeric_limits<double>::infinity()); }
  // Numbers from low to below high.
  Field& range_below(double low, double high) {
    high_allowed_ = false;
    return range(low, high);
  }
  // The values of an enum by name.
  template <class E>
  requires std::is_enum_v<E> Field& choices(std::initializer_list<std::pair<E, std::string_view>> table) {
    for (const auto& [value, choice] : table)
      choices_.emplace_back(static_cast<int64_t>(value), std::string(choice));
    return *this;
  }
  // The texts that are allowed.
  Field& one_of(std::initializer_list<std::string_view> texts) {
    for (const std::string_view text : texts)
      choices_.emplace_back(static_cast<int64_t>(choices_.size()), std::string(text));
    return *this;
  }
  // How many values a list takes: `--train SRC TGT` takes two.
  Field& count(int values) {
    count_ = values;
    return *this;
  }
  // The heading of the help under which the field stands; "" hides it.
  Field& group(std::string_view heading) {
    group_ = heading;
    return *this;
  }

  const std::string& name() const { return name_; }
  const std::string& placeholder() const { return placeholder_; }
  const std::string& help() const { return help_; }
  const std::string& group() const { return group_; }
  int count() const { return count_; }
  const std::vector<std::pair<int64_t, std::string>>& choices() const { return choices_; }
  // `batch_tokens`, the name in JSON.
  std::string json_name() const;

  // Text to value and back; `who` names the field in messages: "--dropout must be ..., not 'x'".
  // Each throws UsageError for what the field does not allow.
  int64_t whole(std::string_view who, std::string_view text, int64_t low, int64_t high) const;
  double number(std::string_view who, std::string_view text) const;
  bool flag(std::string_view who, std::string_view text) const;
  int64_t choice(std::string_view who, std::string_view text) const;
  void check_whole(std::string_view who, int64_t value, int64_t low, int64_t high) const;
  void check_number(std::string_view who, double value) const;
  void check_text(std::string_view who, std::string_view value) const;
  void check_count(std::string_view who, size_t values) const;
  // Throws when the value of an enum has no name.
  const std::string& choice_name(int64_t value) const;

 private:
  [[noreturn]] void reject(std::string_view who, const std::string& expected, std::string_view came) const;
  bool in_range(double value) const;
  std::string expected_whole(int64_t low, int64_t high) const;
  std::string expected_number() const;
  std::string expected_choice() const;

  std::string name_, placeholder_, help_, group_ = "Options";
  double low_ = -std::numeric_limits<double>::infinity();
  double high_ = std::numeric_limits<double>::infinity();
  bool high_allowed_ = true;
  int count_ = kAnyCount;
  std::vector<std::pair<int64_t, std::string>> choices_;
};

template <class T>
concept WholeNumber = std::integral<T> && !std::same_as<T, bool>;

// The limits of T that a 64-bit whole number can reach.
template <WholeNumber T>
inline constexpr int64_t kHighest = sizeof(T) == 8 ? std::numeric_limits<int64_t>::max()
                                                   : static_cast<int64_t>(std::numeric_limits<T>::max());
template <WholeNumber T>
inline constexpr int64_t kLowest = static_cast<int64_t>(std::numeric_limits<T>::min());

// Sets `value` from text; throws UsageError.
template <class T>
void parse_field(const Field& field, std::string_view who, std::string_view text, T& value) {
  if constexpr (std::same_as<T, bool>) {
    value = field.flag(who, text);
  } else if constexpr (WholeNumber<T>) {
    value = static_cast<T>(field.whole(who, text, kLowest<T>, kHighest<T>));
  } else if constexpr (std::floating_point<T>) {
    value = static_cast<T>(field.number(who, text));
  } else if constexpr (std::is_enum_v<T>) {
    value = static_cast<T>(field.choice(who, text));
  } else {
    static_assert(std::same_as<T, std::string>, "a list is set as a whole");
    field.check_text(who, text);
    value = text;
  }
}

// Throws UsageError when the field does not allow `value`.
template <class T>
void check_field(const Field& field, std::string_view who, const T& value) {
  if constexpr (WholeNumber<T>) {
    field.check_whole(who, static_cast<int64_t>(value), kLowest<T>, kHighest<T>);
  } else if constexpr (std::floating_point<T>) {
    field.check_number(who, value);
  } else if constexpr (std::is_enum_v<T>) {
    field.choice_name(static_cast<int64_t>(value));
  } else if constexpr (std::same_as<T, std::string>) {
    field.check_text(who, value);
  } else if constexpr (std::same_as<T, std::vector<std::string>>) {
    field.check_count(who, value.size());
    for (const std::string& item : value) field.check_text(who, item);
  }
}

// The value as the help shows it; lists are joined with spaces.
template <class T>
std::string field_text(const Field& field, const T& value) {
  if constexpr (std::same_as<T, bool>) {
    return value ? "true" : "false";
  } else if constexpr (std::is_enum_v<T>) {
    return field.choice_name(static_cast<int64_t>(value));
  } else if constexpr (std::same_as<T, std::vector<std::string>>) {
    std::string text;
    for (const std::string& item : value) text += (text.empty() ? "" : " ") + item;
    return text;
  } else {
    return fmt::format("{}", value);
  }
}

// Calls visit(field, value) for every field of the table; `options` may be const.
template <class Options, class Visitor>
void for_each_field(Options& options, Visitor&& visit) {
  std::remove_const_t<Options>::fields(options, visit);
}

// Throws UsageError for the first value that its field does not allow: for options made by a program. An
// empty list passes, it was not given.
template <class Options>
void check_options(const Options& options) {
  for_each_field(options, [](const Field& field, const auto& value) {
    if constexpr (requires { value.empty(); }) {
      if (value.empty()) return;
    }
    check_field(field, field.name(), value);
  });
}

// Options and which of them the user typed, so that a preset or a saved run fills in the rest and never
// overrides what was typed.
template <class Options>
struct Typed {
  Options value;
  std::set<std::string, std::less<>> typed;  // names of fields

  bool has(std::string_view name) const { return typed.contains(name); }
  // The field of `value` given by reference: typed.has(typed.value.dropout).
  template <class T>
  requires(!std::convertible_to<const T&, std::string_view>) bool has(const T& field) const {
    return typed.contains(name_of(field));
  }

  // Sets a field from text as if typed. Throws UsageError, for an unknown name too, with `prefix` in front of
  // the name ("--" on the command line).
  void set(std::string_view name, std::string_view text, std::string_view prefix = "") {
    set_values(name, {std::string(text)}, prefix);
  }
  // The same for a field that is a list; any other takes the last value.
  void set_values(std::string_view name, const std::vector<std::string>& values,
                  std::string_view prefix = "") {
    const std::string who = fmt::format("{}{}", prefix, name);
    bool known = false;
    for_each_field(value, [&]<class T>(const Field& field, T& own) {
      if (field.name() != name || values.empty()) return;
      known = true;
      if constexpr (std::same_as<T, std::vector<std::string>>) {
        check_field(field, who, values);
        own = values;
      } else {
        parse_field(field, who, values.back(), own);
      }
    });
    if (!known) throw UsageError(fmt::format("there is no option {}", who));
    typed.emplace(name);
  }

  // Sets one field of `value` unless the user typed it.
  template <class T>
  void suggest(T& field, std::type_identity_t<T> suggestion) {
    if (!typed.contains(name_of(field))) field = std::move(suggestion);
  }

  // Every field that was not typed takes the value it has in `other`: a preset, a saved run.
  void fill_from(const Options& other) {
    Options mine = std::exchange(value, other);
    copy_fields(mine, value, [this](const std::string& name) { return typed.contains(name); });
  }

  // What was typed in `weaker` and not here counts as typed here.
  void merge_weaker(const Typed& weaker) {
    copy_fields(weaker.value, value,
                [&](const std::string& name) { return weaker.has(name) && !typed.contains(name); });
    typed.insert(weaker.typed.begin(), weaker.typed.end());
  }

 private:
  template <class T>
  std::string name_of(const T& wanted) const {
    std::string name;
    for_each_field(value, [&]<class U>(const Field& field, const U& own) {
      if constexpr (std::same_as<T, U>) {
        if (&own == &wanted) name = field.name();
      }
    });
    if (name.empty()) throw Error("this is no field of the options that were typed");
    return name;
  }

  // Copies the fields whose name `chosen` accepts. Both tables are walked in step: same type, same order.
  template <class Chosen>
  static void copy_fields(const Options& from, Options& to, Chosen&& chosen) {
    std::vector<const void*> sources;
    for_each_field(from, [&](const Field&, const auto& source) { sources.push_back(&source); });
    size_t next = 0;
    for_each_field(to, [&]<class T>(const Field& field, T& target) {
      const T& source = *static_cast<const T*>(sources[next++]);
      if (chosen(field.name())) target = source;
    });
  }
};

}  // namespace gloss
