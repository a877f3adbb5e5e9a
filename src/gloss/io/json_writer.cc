#include "gloss/io/json_writer.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

namespace gloss::io {
namespace {

constexpr size_t kBuffer = size_t{1} << 16;

// A tree of one string takes no memory to destroy, as an object's would: none may be left.
std::string quoted(std::string_view text) {
  using nlohmann::json;
  return json(text).dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace

void JsonWriter::flush() {
  if (!buffer_.empty()) sink_(buffer_);
  buffer_.clear();
}

void JsonWriter::comma() {
  if (follows_) buffer_ += ',';
}

void JsonWriter::put(std::string_view value) {
  comma();
  buffer_ += value;
  follows_ = true;
  if (buffer_.size() >= kBuffer) flush();
}

void JsonWriter::open(char bracket) {
  comma();
  buffer_ += bracket;
  follows_ = false;
}

void JsonWriter::close(char bracket) {
  buffer_ += bracket;
  follows_ = true;
}

void JsonWriter::key(std::string_view name) {
  comma();
  buffer_ += quoted(name);
  buffer_ += ':';
  follows_ = false;
}

void JsonWriter::text(std::string_view value) {
  put(quoted(value));
}

void JsonWriter::whole(int64_t value) {
  put(fmt::format_int(value).c_str());
}

void JsonWriter::number(double value) {
  if (!std::isfinite(value)) return null();
  std::array<char, 40> digits{};
  char* end = fmt::format_to(digits.data(), "{}", value);
  std::string_view written(digits.data(), static_cast<size_t>(end - digits.data()));
  // 1.0, not 1: programs that read it see a number with a fraction everywhere.
  if (written.find_first_of(".e") == std::string_view::npos) {
    *end++ = '.';
    *end++ = '0';
    written = {digits.data(), static_cast<size_t>(end - digits.data())};
  }
  put(written);
}

}  // namespace gloss::io
