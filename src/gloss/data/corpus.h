// ParallelCorpus: two text files whose lines translate each other, line by line.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "gloss/data/indexed_lines.h"
#include "gloss/text/lines.h"

namespace gloss::data {

// Two IndexedLines: 16 bytes a pair are held, lines are read when they are asked for, by any thread. Opening
// throws Error as they do, for files without lines and for different numbers of lines.
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
  IndexedLines source_, target_;
  std::string fingerprint_;
};

}  // namespace gloss::data
