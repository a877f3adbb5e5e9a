// ParallelCorpus: two text files whose lines translate each other, line by line.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "gloss/io/input_file.h"
#include "gloss/text/lines.h"

namespace gloss::data {

// Holds where each line begins, 16 bytes a pair, and reads a line from its file when it is asked for: files
// are not mapped, so that resident memory stays what it is however much of them is read. Opening reads both
// files once and throws Error for all that LineReader refuses, for files without lines and for different
// numbers of lines. Byte order marks, "\r\n" and a missing last newline are fine. Reading is const and may be
// done by several threads at the same time.
class ParallelCorpus {
 public:
  ParallelCorpus(const std::filesystem::path& source, const std::filesystem::path& target,
                 text::InvalidUtf8 invalid = text::InvalidUtf8::fail);

  int64_t pairs() const { return source_.lines(); }
  // Line `index` (from 0) without its ending. Throws when the file has changed since it was opened.
  std::string source_line(int64_t index) const { return source_.line(index); }
  std::string target_line(int64_t index) const { return target_.line(index); }

  // 32 hexadecimal digits that stand for the lines of both files: a checkpoint tells by them whether it goes
  // on with the same text. Line endings do not count.
  const std::string& fingerprint() const { return fingerprint_; }
  // Lines of both files in which invalid UTF-8 was replaced.
  int64_t replaced_lines() const { return source_.replaced() + target_.replaced(); }
  const std::filesystem::path& source_path() const { return source_.path(); }
  const std::filesystem::path& target_path() const { return target_.path(); }

 private:
  // One file and the offsets of its lines, in blocks: a growing vector would need thrice its size for a
  // moment.
  class Side {
   public:
    Side(const std::filesystem::path& path, text::InvalidUtf8 invalid);
    int64_t lines() const { return lines_; }
    int64_t replaced() const { return replaced_; }
    uint64_t hash() const { return hash_; }
    const std::filesystem::path& path() const { return file_.path(); }
    std::string line(int64_t index) const;

   private:
    static constexpr int64_t kBlock = 1 << 14;
    void push(int64_t offset);
    int64_t offset(int64_t index) const {
      return blocks_[static_cast<size_t>(index / kBlock)][static_cast<size_t>(index % kBlock)];
    }

    io::InputFile file_;
    std::vector<std::unique_ptr<int64_t[]>> blocks_;  // lines + 1 offsets
    int64_t offsets_ = 0;
    int64_t lines_ = 0;
    int64_t replaced_ = 0;
    uint64_t hash_ = 0;
  };

  Side source_;
  Side target_;
  std::string fingerprint_;
};

}  // namespace gloss::data
