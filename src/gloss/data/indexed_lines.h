// IndexedLines: a text file whose lines can be read in any order.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "gloss/io/input_file.h"
#include "gloss/text/lines.h"

namespace gloss::data {

// Holds where each line begins, 8 bytes a line, and reads a line from the file when it is asked for: the file
// is not mapped, so that resident memory stays what it is however much of it is read. Opening reads the file
// once and throws Error for all that LineReader refuses. A byte order mark, "\r\n" and a missing last newline
// are fine. Reading is const and may be done by several threads at the same time.
class IndexedLines {
 public:
  // Looks at each line on the way, with its number from 0.
  using Visitor = std::function<void(int64_t index, std::string_view line)>;
  explicit IndexedLines(const std::filesystem::path& path,
                        text::InvalidUtf8 invalid = text::InvalidUtf8::fail, const Visitor& visit = nullptr);

  int64_t lines() const { return lines_; }
  // Line `index` (from 0) without its ending. Throws when the file has changed since it was opened.
  std::string line(int64_t index) const;
  // Of all lines without their endings. Not cryptographic: it tells files apart that differ by accident.
  uint64_t hash() const { return hash_; }
  int64_t replaced() const { return replaced_; }  // lines in which invalid UTF-8 was
  const std::filesystem::path& path() const { return file_.path(); }

 private:
  void push(int64_t offset);
  int64_t offset(int64_t index) const {
    return blocks_[static_cast<size_t>(index / kBlock)][static_cast<size_t>(index % kBlock)];
  }

  static constexpr int64_t kBlock = 1 << 14;
  io::InputFile file_;
  // lines + 1 offsets in blocks: a growing vector would need thrice its size for a moment.
  std::vector<std::unique_ptr<int64_t[]>> blocks_;
  int64_t offsets_ = 0;
  int64_t lines_ = 0;
  int64_t replaced_ = 0;
  uint64_t hash_ = 0;
};

}  // namespace gloss::data
