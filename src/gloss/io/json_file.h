// JSON from files nobody vouches for: bounded, without duplicate keys, and with errors that name the file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gloss::io {

struct JsonLimits {
  uint64_t bytes = uint64_t{256} << 20;
  int depth = 64;  // objects and arrays inside each other
};

// Parses UTF-8 JSON. Throws "<name>: ..." for syntax (with line and column), invalid UTF-8, duplicate keys
// and for what exceeds the limits.
nlohmann::json parse_json(std::string_view text, const std::string& name, const JsonLimits& limits = {});
nlohmann::json read_json(const std::filesystem::path& path, const JsonLimits& limits = {});
// Indented by two, keys in the object's order, a final newline, atomically.
void write_json(const std::filesystem::path& path, const nlohmann::ordered_json& value);
void write_json(const std::filesystem::path& path, const nlohmann::json& value);

// A JSON object read key by key; every getter throws a sentence like
//   config.json: 'd_model' must be a whole number above 0, not "x"
// The two-argument getters require the key, those with a fallback also take a missing key or null.
class JsonObject {
 public:
  // `name` is the file as messages show it. Throws when `value` is not an object.
  JsonObject(nlohmann::json value, std::string name);
  static JsonObject read(const std::filesystem::path& path, const JsonLimits& limits = {});

  const std::string& name() const { return name_; }
  const nlohmann::json& json() const { return value_; }
  bool has(std::string_view key) const;  // present and not null

  struct Range {
    int64_t low = std::numeric_limits<int64_t>::min();
    int64_t high = std::numeric_limits<int64_t>::max();
  };
  static constexpr Range kPositive{1, std::numeric_limits<int64_t>::max()};
  static constexpr Range kNotNegative{0, std::numeric_limits<int64_t>::max()};

  // 6.0 counts as the whole number 6.
  int64_t whole(std::string_view key, Range range) const;
  int64_t whole(std::string_view key, Range range, int64_t fallback) const;
  double number(std::string_view key) const;
  double number(std::string_view key, double fallback) const;
  bool flag(std::string_view key) const;
  bool flag(std::string_view key, bool fallback) const;
  std::string text(std::string_view key) const;
  std::string text(std::string_view key, std::string_view fallback) const;
  std::vector<std::string> texts(std::string_view key) const;
  std::vector<int64_t> wholes(std::string_view key, Range range) const;
  JsonObject object(std::string_view key) const;  // named "config.json, 'key'" in messages

  // Throws "config.json: 'key' must be <expected>, not <value>" about a value the caller cannot accept.
  [[noreturn]] void reject(std::string_view key, std::string_view expected) const;

 private:
  const nlohmann::json& at(std::string_view key, std::string_view expected) const;

  nlohmann::json value_;
  std::string name_;
};

}  // namespace gloss::io
