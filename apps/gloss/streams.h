// Where lines come from and results go to.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gloss/io/atomic_file.h"
#include "gloss/text/lines.h"

namespace gloss::cli {

// The lines of several files one after another, or of standard input.
class Inputs {
 public:
  // Opens every file at once, so that a missing one is known before the work begins. No files, or "-":
  // standard input.
  Inputs(const std::vector<std::string>& files, text::InvalidUtf8 invalid);
  bool next(text::Line& line);
  bool ready();
  int64_t replaced_lines() const;

 private:
  std::vector<std::unique_ptr<text::LineReader>> readers_;
  size_t current_ = 0;
};

// Two texts line by line, which must end together: fails with the numbers of lines of both.
class Pairs {
 public:
  Pairs(const std::string& source, const std::string& target, text::InvalidUtf8 invalid)
      : source_file_(source), target_file_(target), source_({source}, invalid), target_({target}, invalid) {}
  bool next(std::string& source, std::string& target);
  bool ready() { return source_.ready() && target_.ready(); }
  int64_t replaced_lines() const { return source_.replaced_lines() + target_.replaced_lines(); }

 private:
  std::string source_file_, target_file_;
  Inputs source_, target_;
  int64_t lines_ = 0;
};

// All lines of a file; says in how many bad bytes were replaced.
std::vector<std::string> read_lines(const std::string& file, text::InvalidUtf8 invalid);

// Throws UsageError where standard input is named for more than one of the files.
void refuse_one_input_for_many(const std::vector<std::string>& files);

// Writes to standard error. What nobody can read is no reason to fail: errors of writing are passed over. A
// signal handler may call it.
void tell(std::string_view text) noexcept;
// The same with a newline behind.
void say(std::string_view line);

// Says on standard error in how many lines bad bytes were replaced, if in any.
void report_replaced(int64_t lines);

// Standard output, or a file that is whole or absent.
class Output {
 public:
  // Fails now if the file cannot be written. An empty name or "-" is standard output.
  explicit Output(const std::string& file);
  void write(std::string_view text);
  void flush();   // to standard output; a file waits for commit()
  void commit();  // all was written

 private:
  std::optional<io::AtomicFile> file_;
  std::string buffer_;
};

}  // namespace gloss::cli
