// Lines of text from files and pipes. A line is what stands before "\n" or "\r\n" or at the end of the input;
// no other character ends one, so that line counts agree with `wc -l` and every other tool of the field.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace gloss::text {

struct Line {
  std::string text;         // without its ending; valid UTF-8
  std::string_view ending;  // "\n", "\r\n", "" (a last line without newline) or "\r" (the same, after a CR)
  int64_t number = 0;       // from 1
  int64_t offset = 0;       // of its first byte in the input (behind a byte order mark)
  bool replaced = false;    // invalid UTF-8 was replaced by U+FFFD
};

// What to do about bytes that are not UTF-8.
enum class InvalidUtf8 {
  fail,     // an Error that names file, line and byte
  replace,  // put U+FFFD in their place; Line::replaced says so
};

// Reads line by line what comes from a file descriptor, as it comes: next() waits for one whole line and no
// more. A byte order mark at the start is dropped. Lines may have any length; memory is that of the longest.
// Throws Error, naming the input and the line, for what is no UTF-8 text: NUL bytes, UTF-16, compressed
// files, and invalid UTF-8 unless it shall be replaced.
class LineReader {
 public:
  // Opens a file, pipe or device.
  explicit LineReader(const std::filesystem::path& path, InvalidUtf8 invalid = InvalidUtf8::fail);
  // Reads a descriptor that stays the caller's; `name` stands in messages ("standard input").
  LineReader(int descriptor, std::string name, InvalidUtf8 invalid = InvalidUtf8::fail);
  ~LineReader();
  LineReader(const LineReader&) = delete;
  LineReader& operator=(const LineReader&) = delete;

  // False at the end of the input.
  bool next(Line& line);
  // Whether next() would return without waiting for more input to be written: a whole line is there, or the
  // end, or the beginning of a line beyond any measure.
  bool ready();
  // Lines in which something was replaced so far.
  int64_t replaced_lines() const { return replaced_lines_; }
  // The bytes before the next line.
  int64_t offset() const { return offset_; }
  const std::string& name() const { return name_; }

 private:
  bool fill();
  void check_start();

  std::string name_;
  InvalidUtf8 invalid_;
  int descriptor_ = -1;
  bool owned_ = false;
  bool started_ = false;
  bool ended_ = false;
  std::string buffer_;
  size_t begin_ = 0;    // of the next line in buffer_
  size_t scanned_ = 0;  // buffer_ before this holds no newline behind begin_
  int64_t offset_ = 0;  // of buffer_[begin_] in the input
  int64_t lines_ = 0;
  int64_t replaced_lines_ = 0;
};

// All lines of a file.
std::vector<Line> read_lines(const std::filesystem::path& path, InvalidUtf8 invalid = InvalidUtf8::fail);

// What the line between two newlines is without the CR of a "\r\n".
std::string_view without_line_ending(std::string_view line);

}  // namespace gloss::text
