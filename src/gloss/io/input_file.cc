#include "gloss/io/input_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "gloss/base/error.h"
#include "gloss/io/quote.h"

namespace gloss::io {
namespace {

std::string reason(int error) {
  return std::generic_category().message(error);
}

[[noreturn]] void fail_opening(const std::filesystem::path& path, int error) {
  require(error != ENOENT, "{} does not exist: check the path", shown(path));
  fail("{} cannot be opened ({}): check the path and its permissions", shown(path), reason(error));
}

std::filesystem::file_status status_of(const std::filesystem::path& path) {
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path, error);
  if (status.type() == std::filesystem::file_type::none) fail_opening(path, error.value());
  return status;
}

}  // namespace

bool exists(const std::filesystem::path& path) {
  return std::filesystem::exists(status_of(path));
}
bool is_folder(const std::filesystem::path& path) {
  return std::filesystem::is_directory(status_of(path));
}

InputFile::InputFile(std::filesystem::path path) : path_(std::move(path)) {
  // O_NONBLOCK: opening a named pipe must not wait for a writer.
  descriptor_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor_ < 0) fail_opening(path_, errno);
  struct stat status {};
  const bool known = ::fstat(descriptor_, &status) == 0;
  if (!known || !S_ISREG(status.st_mode)) {
    ::close(std::exchange(descriptor_, -1));
    fail("cannot read {}: it is {}, and a regular file is needed", path_.string(),
         known && S_ISDIR(status.st_mode) ? "a folder" : "a device or pipe");
  }
  size_ = static_cast<uint64_t>(status.st_size);
}

InputFile::~InputFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

InputFile::InputFile(InputFile&& other) noexcept
    : path_(std::move(other.path_)), size_(other.size_), descriptor_(std::exchange(other.descriptor_, -1)) {}

InputFile& InputFile::operator=(InputFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(size_, other.size_);
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

void InputFile::read_at(uint64_t offset, std::span<std::byte> out) const {
  constexpr size_t kLargestRead = size_t{1} << 30;  // Linux reads at most 2 GiB a call
  while (!out.empty()) {
    const ssize_t n =
        ::pread(descriptor_, out.data(), std::min(out.size(), kLargestRead), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail("cannot read {}: {}", path_.string(), reason(errno));
    if (n == 0) fail("cannot read {}: it ends at byte {}, more was expected", path_.string(), offset);
    out = out.subspan(static_cast<size_t>(n));
    offset += static_cast<uint64_t>(n);
  }
}

std::string read_whole_file(const std::filesystem::path& path, uint64_t max_bytes) {
  const InputFile file(path);
  require(file.size() <= max_bytes, "cannot read {}: it holds {} bytes, at most {} are accepted here",
          path.string(), file.size(), max_bytes);
  std::string text(file.size(), '\0');
  file.read_at(0, std::as_writable_bytes(std::span(text)));
  return text;
}

}  // namespace gloss::io
