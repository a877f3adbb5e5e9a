// JSON as it is made, without a tree of it in memory: for output that is large beside what it is made of.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace gloss::io {

// Writes one value, most often an object, in one line. Commas are set here; that what is opened is closed,
// and that each value of an object follows its key, is the caller's part.
class JsonWriter {
 public:
  using Sink = std::function<void(std::string_view)>;
  explicit JsonWriter(Sink sink) : sink_(std::move(sink)) {}

  void begin_object() { open('{'); }
  void end_object() { close('}'); }
  void begin_array() { open('['); }
  void end_array() { close(']'); }
  void key(std::string_view name);
  void text(std::string_view value);  // bytes that are no UTF-8 become U+FFFD
  void whole(int64_t value);
  void number(double value);  // as short as it reads back; null unless it is finite
  void boolean(bool value) { put(value ? "true" : "false"); }
  void null() { put("null"); }
  // Hands on what is left; to be called behind the last value.
  void flush();

 private:
  void comma();
  void put(std::string_view value);
  void open(char bracket);
  void close(char bracket);

  Sink sink_;
  std::string buffer_;
  bool follows_ = false;  // a value stands in front in the same object or array
};

}  // namespace gloss::io
