#include "gloss/text/lines.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>

#include "gloss/base/error.h"
#include "gloss/io/quote.h"
#include "gloss/text/utf8.h"

namespace gloss::text {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
constexpr size_t kReadBytes = size_t{1} << 16;

std::string reason(int error) {
  return std::strerror(error);
}

// Formats that are given as text by mistake, by first bytes that no text has, and what to do about each.
struct Foreign {
  std::string_view magic, what, remedy;
};
constexpr size_t kLongestMagic = 10;
constexpr Foreign kForeign[] = {
    {"\x1F\x8B", "is compressed with gzip", "unpack it first (gunzip)"},
    {"\xFD\x37zXZ", "is compressed with xz", "unpack it first (unxz)"},
    {"BZh91AY&SY", "is compressed with bzip2", "unpack it first (bunzip2)"},
    {"\x28\xB5\x2F\xFD", "is compressed with zstd", "unpack it first (unzstd)"},
    {"PK\x03\x04", "is a zip archive", "unpack it first (unzip)"},
    {"\xFF\xFE", "is UTF-16 text", "convert it first (iconv -f UTF-16 -t UTF-8)"},
    {"\xFE\xFF", "is UTF-16 text", "convert it first (iconv -f UTF-16 -t UTF-8)"},
};

}  // namespace

LineReader::LineReader(const std::filesystem::path& path, InvalidUtf8 invalid)
    : name_(path.string()), invalid_(invalid), owned_(true) {
  descriptor_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor_ < 0) {
    const int error = errno;
    require(error != ENOENT, "the text file {} does not exist: check the path", io::shown(path));
    fail("the text file {} cannot be opened ({}): check the path and its permissions", io::shown(path),
         reason(error));
  }
  struct stat status {};
  if (::fstat(descriptor_, &status) == 0 && S_ISDIR(status.st_mode)) {
    ::close(descriptor_);
    fail("{} is a folder, but a text file is expected: name a file; a model folder comes before the texts",
         io::shown(path));
  }
}

LineReader::LineReader(int descriptor, std::string name, InvalidUtf8 invalid)
    : name_(std::move(name)), invalid_(invalid), descriptor_(descriptor) {}

LineReader::~LineReader() {
  if (owned_) ::close(descriptor_);
}

// Appends what can be read now; false at the end.
bool LineReader::fill() {
  if (ended_) return false;
  if (begin_ > 0) {  // what was handed out makes room
    buffer_.erase(0, begin_);
    scanned_ -= begin_;
    begin_ = 0;
  }
  const size_t size = buffer_.size();
  buffer_.resize(size + kReadBytes);
  ssize_t count;
  do {
    count = ::read(descriptor_, buffer_.data() + size, kReadBytes);
  } while (count < 0 && errno == EINTR);
  const int error = errno;
  buffer_.resize(size + static_cast<size_t>(count > 0 ? count : 0));
  if (count < 0) fail("{} cannot be read behind line {}: {}", name_, lines_, reason(error));
  ended_ = count == 0;
  return !ended_;
}

void LineReader::check_start() {
  started_ = true;
  while (buffer_.size() < kLongestMagic && buffer_.find('\n') == std::string::npos && fill()) {
  }
  for (const Foreign& foreign : kForeign) {
    require(!buffer_.starts_with(foreign.magic), "{} {}, but plain UTF-8 text is expected: {}", name_,
            foreign.what, foreign.remedy);
  }
  if (buffer_.starts_with(kByteOrderMark)) {
    begin_ = scanned_ = kByteOrderMark.size();
    offset_ = static_cast<int64_t>(kByteOrderMark.size());
  }
}

bool LineReader::next(Line& line) {
  if (!started_) check_start();
  size_t newline;
  for (;;) {
    newline = buffer_.find('\n', scanned_);
    // Looked for before the line is whole: a device full of zeros must not fill the memory first.
    const size_t end = newline == std::string::npos ? buffer_.size() : newline;
    if (std::memchr(buffer_.data() + scanned_, 0, end - scanned_) != nullptr)
      fail("line {} of {} holds a NUL byte, as binary files do: plain UTF-8 text is expected", lines_ + 1,
           name_);
    scanned_ = end;
    if (newline != std::string::npos || !fill()) break;
  }
  const bool last = newline == std::string::npos;
  if (last && begin_ == buffer_.size()) return false;
  size_t end = last ? buffer_.size() : newline;
  line.ending = last ? "" : "\n";
  if (end > begin_ && buffer_[end - 1] == '\r') {
    --end;
    line.ending = last ? "\r" : "\r\n";
  }
  line.number = ++lines_;
  line.offset = offset_;
  line.replaced = false;
  const std::string_view text(buffer_.data() + begin_, end - begin_);
  const size_t bad = first_invalid_utf8(text);
  if (bad == std::string_view::npos) {
    line.text.assign(text);
  } else {
    require(invalid_ == InvalidUtf8::replace,
            "line {} of {} is not valid UTF-8 (byte {} of the line is 0x{:02X}): convert the file; train, "
            "translate, "
            "score and evaluate can put U+FFFD in place of bad bytes with --replace-invalid",
            lines_, name_, bad + 1, static_cast<unsigned char>(text[bad]));
    line.text = replace_invalid_utf8(text);
    line.replaced = true;
    ++replaced_lines_;
  }
  const size_t consumed = end + line.ending.size() - begin_;
  begin_ += consumed;
  scanned_ = begin_;
  offset_ += static_cast<int64_t>(consumed);
  return true;
}

bool LineReader::ready() {
  // A line that is longer than this is on its way, and has to be waited for some time.
  constexpr size_t kLongLine = size_t{1} << 20;
  while (!ended_ && buffer_.size() - begin_ < kLongLine &&
         buffer_.find('\n', std::max(begin_, scanned_)) == std::string::npos) {
    struct pollfd poll_descriptor {
      descriptor_, POLLIN, 0
    };
    if (::poll(&poll_descriptor, 1, 0) <= 0) return false;
    try {
      fill();  // there is something, or the end: it does not wait
    } catch (const Error&) {
      return true;  // next() will meet it, and say so
    }
  }
  return true;
}

std::vector<Line> read_lines(const std::filesystem::path& path, InvalidUtf8 invalid) {
  LineReader reader(path, invalid);
  std::vector<Line> lines;
  for (Line line; reader.next(line);) lines.push_back(line);
  return lines;
}

std::string_view without_line_ending(std::string_view line) {
  if (line.ends_with('\n')) line.remove_suffix(1);
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

}  // namespace gloss::text
