#include "gloss/data/indexed_lines.h"

#include <cstring>
#include <span>

#include "gloss/base/error.h"
#include "gloss/base/random.h"
#include "gloss/text/utf8.h"

namespace gloss::data {
namespace {

uint64_t hash_line(uint64_t hash, std::string_view text) {
  const auto add = [&hash](uint64_t word) { hash = RandomKey(hash).bits(word); };
  add(text.size());
  for (; text.size() >= 8; text.remove_prefix(8)) {
    uint64_t word;
    std::memcpy(&word, text.data(), 8);
    add(word);
  }
  uint64_t rest = 0;
  for (const char c : text) rest = rest << 8 | static_cast<unsigned char>(c);
  add(rest);
  return hash;
}

}  // namespace

IndexedLines::IndexedLines(const std::filesystem::path& path, text::InvalidUtf8 invalid, const Visitor& visit)
    : file_(path) {
  text::LineReader reader(path, invalid);
  int64_t end = 0;
  for (text::Line line; reader.next(line);) {
    push(line.offset);
    hash_ = hash_line(hash_, line.text);
    if (visit) visit(offsets_ - 1, line.text);
    end = reader.offset();
  }
  push(end);
  lines_ = offsets_ - 1;
  replaced_ = reader.replaced_lines();
}

void IndexedLines::push(int64_t offset) {
  if (offsets_ % kBlock == 0) blocks_.push_back(std::make_unique<int64_t[]>(static_cast<size_t>(kBlock)));
  blocks_.back()[static_cast<size_t>(offsets_++ % kBlock)] = offset;
}

std::string IndexedLines::line(int64_t index) const {
  require(index >= 0 && index < lines_, "there is no line {} in {}, which has {}", index + 1, path().string(),
          lines_);
  const int64_t begin = offset(index);
  std::string bytes(static_cast<size_t>(offset(index + 1) - begin), '\0');
  file_.read_at(static_cast<uint64_t>(begin), std::as_writable_bytes(std::span(bytes)));
  const bool last = index == lines_ - 1;
  const std::string_view line = text::without_line_ending(bytes);
  if ((!last && !bytes.ends_with('\n')) || line.find('\n') != std::string_view::npos)
    fail("{} has changed since it was opened (line {} is not where it was): run again", path().string(),
         index + 1);
  if (replaced_ > 0 && !text::is_utf8(line)) return text::replace_invalid_utf8(line);
  bytes.resize(line.size());
  return bytes;
}

}  // namespace gloss::data
