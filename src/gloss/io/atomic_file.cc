#include "gloss/io/atomic_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "gloss/base/error.h"
#include "gloss/io/unfinished.h"

namespace gloss::io {
namespace {

constexpr size_t kBufferBytes = size_t{1} << 18;
constexpr int kLinksFollowed = 40;  // as many as Linux follows

// Where a chain of symbolic links ends, whether or not a file is there.
std::filesystem::path follow_links(std::filesystem::path path) {
  std::error_code error;
  for (int i = 0; i < kLinksFollowed && std::filesystem::is_symlink(path, error); ++i) {
    const std::filesystem::path next = std::filesystem::read_symlink(path, error);
    if (error) break;
    path = path.parent_path() / next;  // an absolute `next` replaces the whole
  }
  return path;
}

}  // namespace

AtomicFile::AtomicFile(std::filesystem::path path) : path_(std::move(path)), target_(follow_links(path_)) {
  struct stat status {};
  require(target_.has_filename(), "cannot write '{}': the name of a file is missing", path_.string());
  const bool exists = ::stat(path_.c_str(), &status) == 0;
  if (!exists && errno != ENOENT) fail_because(errno);
  if (exists && S_ISDIR(status.st_mode)) fail("cannot write {}: it is a folder; name a file", path_.string());
  if (exists && !S_ISREG(status.st_mode)) {
    // By its own name: the links of /dev/stdout end in names like "pipe:[17]" that cannot be opened.
    descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CLOEXEC);
    if (descriptor_ < 0) fail_because(errno);
    return;
  }
  // A read-only file is a wish to keep it, which rename() would not honour.
  if (exists && ::faccessat(AT_FDCWD, target_.c_str(), W_OK, AT_EACCESS) != 0) fail_because(errno);
  remove_unfinished(target_);
  open_temporary();
  if (exists) {
    // Best effort: a file system without permissions is no reason to fail.
    [[maybe_unused]] const int ignored = ::fchmod(descriptor_, status.st_mode & 0777);
  }
}

AtomicFile::~AtomicFile() {
  discard();
}

void AtomicFile::open_temporary() {
  while (true) {
    const std::filesystem::path name = unfinished_name(target_);
    const int descriptor = ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (descriptor < 0 && (errno == EEXIST || errno == EINTR)) continue;
    if (descriptor < 0) fail_because(errno);
    descriptor_ = descriptor;
    temporary_ = name;
    if (mark_alive(descriptor)) return;
    discard();  // another writer took it for abandoned before it was marked
  }
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  require(descriptor_ >= 0, "cannot write {}: it is already finished", path_.string());
  bytes_written_ += bytes.size();
  if (buffer_.size() + bytes.size() > kBufferBytes) {
    write_through(std::as_bytes(std::span(buffer_)));
    buffer_.clear();
  }
  if (bytes.size() > kBufferBytes) {
    write_through(bytes);
  } else {
    buffer_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
}

void AtomicFile::write_through(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(descriptor_, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail_because(errno);
    bytes = bytes.subspan(static_cast<size_t>(n));
  }
}

void AtomicFile::commit() {
  require(descriptor_ >= 0, "cannot write {}: it is already finished", path_.string());
  write_through(std::as_bytes(std::span(buffer_)));
  buffer_.clear();
  if (temporary_.empty()) {
    if (::close(std::exchange(descriptor_, -1)) != 0) fail_because(errno);
    return;
  }
  if (::fsync(descriptor_) != 0) fail_because(errno);
  // The lock must live until the rename, so the file is closed last; fsync has already told of late errors.
  if (::rename(temporary_.c_str(), target_.c_str()) != 0) fail_because(errno);
  temporary_.clear();
  ::close(std::exchange(descriptor_, -1));
  sync_folder(target_.parent_path());
}

void AtomicFile::discard() noexcept {
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
  temporary_.clear();
  if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
}

void AtomicFile::fail_because(int error) {
  discard();
  std::error_code ignored;
  std::filesystem::path folder = target_.parent_path();
  if (folder.empty()) folder = ".";
  if (error == ENOENT || error == ENOTDIR) {
    const std::filesystem::file_status status = std::filesystem::status(folder, ignored);
    if (std::filesystem::is_directory(status))
      fail("cannot write {}: no file can be made in {}; choose another folder", path_.string(),
           folder.string());
    if (error == ENOTDIR || std::filesystem::exists(status))
      fail("cannot write {}: {} is not a folder; choose another one", path_.string(), folder.string());
    fail("cannot write {}: the folder {} does not exist; make it and run again", path_.string(),
         folder.string());
  }
  const bool previous = std::filesystem::is_regular_file(target_, ignored);
  fail("cannot write {}: {}; {}; {}", path_.string(), std::generic_category().message(error),
       previous ? "the previous file is intact" : "no file was left behind", remedy(error));
}

void write_file_atomically(const std::filesystem::path& path, std::string_view contents) {
  AtomicFile file(path);
  file.write(contents);
  file.commit();
}

}  // namespace gloss::io
