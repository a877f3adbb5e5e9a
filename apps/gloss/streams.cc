#include "streams.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "gloss/base/error.h"

namespace gloss::cli {
namespace {
constexpr size_t kBufferBytes = size_t{1} << 16;
}

Inputs::Inputs(const std::vector<std::string>& files, text::InvalidUtf8 invalid) {
  for (const std::string& file : files) {
    readers_.push_back(file == "-"
                           ? std::make_unique<text::LineReader>(STDIN_FILENO, "standard input", invalid)
                           : std::make_unique<text::LineReader>(file, invalid));
  }
  if (files.empty())
    readers_.push_back(std::make_unique<text::LineReader>(STDIN_FILENO, "standard input", invalid));
}

bool Inputs::next(text::Line& line) {
  for (; current_ < readers_.size(); ++current_) {
    if (readers_[current_]->next(line)) return true;
  }
  return false;
}

bool Inputs::ready() {
  return current_ == readers_.size() || readers_[current_]->ready();
}

int64_t Inputs::replaced_lines() const {
  int64_t lines = 0;
  for (const auto& reader : readers_) lines += reader->replaced_lines();
  return lines;
}

bool Pairs::next(std::string& source, std::string& target) {
  text::Line a, b;
  const bool more = source_.next(a), as_well = target_.next(b);
  if (more != as_well) {
    int64_t rest = 1;
    for (text::Line line; (more ? source_ : target_).next(line);) ++rest;
    fail("{} has {} lines and {} has {}: each line needs its translation", source_file_,
         lines_ + (more ? rest : 0), target_file_, lines_ + (more ? 0 : rest));
  }
  if (!more) return false;
  ++lines_;
  source = std::move(a.text);
  target = std::move(b.text);
  return true;
}

std::vector<std::string> read_lines(const std::string& file, text::InvalidUtf8 invalid) {
  Inputs input({file}, invalid);
  std::vector<std::string> lines;
  for (text::Line line; input.next(line);) lines.push_back(std::move(line.text));
  report_replaced(input.replaced_lines());
  return lines;
}

void refuse_one_input_for_many(const std::vector<std::string>& files) {
  const auto count =
      std::ranges::count_if(files, [](const auto& file) { return file == "-" || file == "/dev/stdin"; });
  if (count > 1) throw UsageError("standard input can be read once, but it is named for several files");
}

void tell(std::string_view text) noexcept {
  const int before = errno;  // of what a signal interrupted
  while (!text.empty()) {
    const ssize_t count = ::write(STDERR_FILENO, text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    text.remove_prefix(static_cast<size_t>(count));
  }
  errno = before;
}

void say(std::string_view line) {
  tell(std::string(line) + "\n");
}

void report_replaced(int64_t lines) {
  if (lines > 0)
    say(fmt::format("gloss: bytes that are not UTF-8 were replaced in {} line{}", lines,
                    lines == 1 ? "" : "s"));
}

Output::Output(const std::string& file) {
  if (!file.empty() && file != "-") file_.emplace(file);
}

void Output::write(std::string_view text) {
  if (file_) {
    file_->write(text);
    return;
  }
  buffer_ += text;
  if (buffer_.size() >= kBufferBytes) flush();
}

void Output::flush() {
  if (file_) return;
  size_t done = 0;
  while (done < buffer_.size()) {
    const ssize_t count = ::write(STDOUT_FILENO, buffer_.data() + done, buffer_.size() - done);
    if (count < 0 && errno == EINTR) continue;
    require(count >= 0, "standard output cannot be written ({}): what was written so far is incomplete",
            std::strerror(errno));
    done += static_cast<size_t>(count);
  }
  buffer_.clear();
}

void Output::commit() {
  flush();
  if (file_) file_->commit();
}

}  // namespace gloss::cli
