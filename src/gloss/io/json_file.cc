#include "gloss/io/json_file.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <unordered_set>
#include <utility>

#include "gloss/base/error.h"
#include "gloss/io/atomic_file.h"
#include "gloss/io/input_file.h"
#include "gloss/io/quote.h"

namespace gloss::io {
namespace {

using Json = nlohmann::json;

// Where a byte stands, as an editor counts: "line 3, column 14".
std::string place_of(std::string_view text, size_t byte) {
  const std::string_view before = text.substr(0, std::min(byte, text.size()));
  const size_t newline = before.rfind('\n');
  return fmt::format("line {}, column {}", std::ranges::count(before, '\n') + 1,
                     before.size() - (newline == std::string_view::npos ? 0 : newline + 1) + 1);
}

// What is wrong with JSON that nlohmann's parser refuses, in our words: its own name the parser's states.
[[noreturn]] void fail_parsing(std::string_view text, const std::string& name, const Json::exception& error) {
  if (const auto* parse = dynamic_cast<const Json::parse_error*>(&error)) {
    const size_t at = parse->byte > 0 ? parse->byte - 1 : 0;
    const bool ended = text.find_first_not_of(" \t\r\n", at) == std::string_view::npos;
    fail("{}: not valid JSON: {} {}; if nobody edited it, the file is damaged: copy it again", name,
         ended ? "it ends too soon, at" : "it cannot be read on from", place_of(text, at));
  }
  fail("{}: not valid JSON: it holds a number that is too large or text that is no UTF-8", name);
}

std::string shown(const Json& value) {
  if (value.is_object()) return "an object";
  if (value.is_array()) return "a list";
  const std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  return abridged(text);
}

std::string whole_expectation(JsonObject::Range range) {
  constexpr JsonObject::Range kAny;
  if (range.low == kAny.low && range.high == kAny.high) return "a whole number";
  if (range.high == kAny.high) {
    return range.low == 1 ? "a whole number above 0"
                          : fmt::format("a whole number of at least {}", range.low);
  }
  return fmt::format("a whole number from {} to {}", range.low, range.high);
}

// The whole number in `value`, if it is one.
std::optional<int64_t> whole_of(const Json& value, JsonObject::Range range) {
  std::optional<int64_t> number;
  if (value.is_number_unsigned()) {
    const uint64_t n = value.get<uint64_t>();
    if (n <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) number = static_cast<int64_t>(n);
  } else if (value.is_number_integer()) {
    number = value.get<int64_t>();
  } else if (value.is_number_float()) {
    const double n = value.get<double>();
    if (n == std::floor(n) && std::abs(n) < 0x1p53) number = static_cast<int64_t>(n);
  }
  if (number && (*number < range.low || *number > range.high)) number.reset();
  return number;
}

}  // namespace

Json parse_json(std::string_view text, const std::string& name, const JsonLimits& limits) {
  require(text.size() <= limits.bytes, "{}: {} bytes of JSON, at most {} are accepted here", name,
          text.size(), limits.bytes);
  require(!text.empty(), "{}: the file is empty, JSON was expected", name);
  std::vector<std::unordered_set<std::string>> keys;  // of every open object
  const Json::parser_callback_t check = [&](int depth, Json::parse_event_t event, Json& parsed) {
    switch (event) {
      case Json::parse_event_t::object_start:
        keys.emplace_back();
        [[fallthrough]];
      case Json::parse_event_t::array_start:
        require(depth < limits.depth, "{}: JSON nested deeper than {} levels", name, limits.depth);
        break;
      case Json::parse_event_t::object_end:
        keys.pop_back();
        break;
      case Json::parse_event_t::key:
        if (!keys.back().insert(parsed.get<std::string>()).second)
          fail("{}: the name {} stands twice", name, in_quotes(parsed.get_ref<const std::string&>()));
        break;
      default:
        break;
    }
    return true;
  };
  // The parser takes a NUL for the end and would not look at what follows.
  if (const size_t nul = text.find('\0'); nul != std::string_view::npos)
    fail("{}: not valid JSON: a NUL byte at {}; the file is damaged: copy it again", name,
         place_of(text, nul));
  try {
    return Json::parse(text, check);
  } catch (const Json::exception& error) {
    fail_parsing(text, name, error);
  }
}

Json read_json(const std::filesystem::path& path, const JsonLimits& limits) {
  return parse_json(read_whole_file(path, limits.bytes), path.string(), limits);
}

namespace {

template <class AnyJson>
void write_any_json(const std::filesystem::path& path, const AnyJson& value) {
  std::string text;
  try {
    text = value.dump(2) + "\n";
  } catch (const Json::exception& error) {
    fail("cannot write {}: {}", path.string(), abridged(error.what()));
  }
  write_file_atomically(path, text);
}

}  // namespace

void write_json(const std::filesystem::path& path, const nlohmann::ordered_json& value) {
  write_any_json(path, value);
}

void write_json(const std::filesystem::path& path, const Json& value) {
  write_any_json(path, value);
}

JsonObject::JsonObject(Json value, std::string name) : value_(std::move(value)), name_(std::move(name)) {
  require(value_.is_object(), "{}: a JSON object was expected, not {}", name_, shown(value_));
}

JsonObject JsonObject::read(const std::filesystem::path& path, const JsonLimits& limits) {
  return JsonObject(read_json(path, limits), path.string());
}

bool JsonObject::has(std::string_view key) const {
  const auto it = value_.find(key);
  return it != value_.end() && !it->is_null();
}

const Json& JsonObject::at(std::string_view key, std::string_view expected) const {
  const auto it = value_.find(key);
  require(it != value_.end(), "{}: {} is missing; it must be {}", name_, in_quotes(key), expected);
  return *it;
}

void JsonObject::reject(std::string_view key, std::string_view expected) const {
  fail("{}: {} must be {}, not {}", name_, in_quotes(key), expected, shown(at(key, expected)));
}

int64_t JsonObject::whole(std::string_view key, Range range) const {
  const std::string expected = whole_expectation(range);
  const std::optional<int64_t> number = whole_of(at(key, expected), range);
  if (!number) reject(key, expected);
  return *number;
}

int64_t JsonObject::whole(std::string_view key, Range range, int64_t fallback) const {
  return has(key) ? whole(key, range) : fallback;
}

double JsonObject::number(std::string_view key) const {
  const Json& value = at(key, "a number");
  if (!value.is_number()) reject(key, "a number");
  return value.get<double>();
}

double JsonObject::number(std::string_view key, double fallback) const {
  return has(key) ? number(key) : fallback;
}

bool JsonObject::flag(std::string_view key) const {
  const Json& value = at(key, "true or false");
  if (!value.is_boolean()) reject(key, "true or false");
  return value.get<bool>();
}

bool JsonObject::flag(std::string_view key, bool fallback) const {
  return has(key) ? flag(key) : fallback;
}

std::string JsonObject::text(std::string_view key) const {
  const Json& value = at(key, "a text in quotes");
  if (!value.is_string()) reject(key, "a text in quotes");
  return value.get<std::string>();
}

std::string JsonObject::text(std::string_view key, std::string_view fallback) const {
  return has(key) ? text(key) : std::string(fallback);
}

std::vector<std::string> JsonObject::texts(std::string_view key) const {
  constexpr std::string_view kExpected = "a list of texts";
  const Json& value = at(key, kExpected);
  if (!value.is_array()) reject(key, kExpected);
  std::vector<std::string> out;
  for (const Json& item : value) {
    if (!item.is_string())
      fail("{}: {} must be {}, not of {}", name_, in_quotes(key), kExpected, shown(item));
    out.push_back(item.get<std::string>());
  }
  return out;
}

std::vector<int64_t> JsonObject::wholes(std::string_view key, Range range) const {
  const std::string expected = "a list, each item " + whole_expectation(range);
  const Json& value = at(key, expected);
  if (!value.is_array()) reject(key, expected);
  std::vector<int64_t> out;
  for (const Json& item : value) {
    const std::optional<int64_t> number = whole_of(item, range);
    if (!number) fail("{}: {} must be {}, not {}", name_, in_quotes(key), expected, shown(item));
    out.push_back(*number);
  }
  return out;
}

JsonObject JsonObject::object(std::string_view key) const {
  const Json& value = at(key, "an object");
  if (!value.is_object()) reject(key, "an object");
  return JsonObject(value, fmt::format("{}, {}", name_, in_quotes(key)));
}

}  // namespace gloss::io
