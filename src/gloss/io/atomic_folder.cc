#include <fcntl.h>
#include <fmt/core.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "gloss/base/error.h"
#include "gloss/io/atomic_file.h"
#include "gloss/io/unfinished.h"

namespace gloss::io {
namespace {

// "models/run/" and "models/run" name the same folder.
std::filesystem::path without_trailing_slash(std::filesystem::path path) {
  path = path.lexically_normal();
  return path.has_filename() ? path : path.parent_path();
}

[[noreturn]] void fail_folder(const std::filesystem::path& folder, int error) {
  fail("cannot write the folder {}: {}; what was there is intact; {}", folder.string(),
       std::generic_category().message(error), remedy(error));
}

// Where the former folder stands between the two renames of a file system that cannot exchange.
std::filesystem::path kept_aside(const std::filesystem::path& target) {
  return target.parent_path() / fmt::format(".{}.previous", target.filename().string());
}

// Puts `working` where `target` is; the former contents, if any, then stand under `working`.
int exchange(const std::filesystem::path& working, const std::filesystem::path& target) {
  if (::renameat2(AT_FDCWD, working.c_str(), AT_FDCWD, target.c_str(), RENAME_NOREPLACE) == 0) return 0;
  const int without = errno;
  if (without != EEXIST && without != EINVAL && without != ENOSYS) return without;
  if (without != EEXIST && ::rename(working.c_str(), target.c_str()) == 0) return 0;
  if (::renameat2(AT_FDCWD, working.c_str(), AT_FDCWD, target.c_str(), RENAME_EXCHANGE) == 0) return 0;
  if (errno != EINVAL && errno != ENOSYS) return errno;
  const std::filesystem::path aside = kept_aside(target);
  if (::rename(target.c_str(), aside.c_str()) != 0) return errno;
  if (::rename(working.c_str(), target.c_str()) != 0) {
    const int error = errno;
    ::rename(aside.c_str(), target.c_str());
    return error;
  }
  ::rename(aside.c_str(), working.c_str());
  return 0;
}

}  // namespace

AtomicFolder::AtomicFolder(std::filesystem::path target)
    : target_(without_trailing_slash(std::move(target))) {
  std::error_code status;
  require(!std::filesystem::exists(target_, status) || std::filesystem::is_directory(target_, status),
          "cannot write the folder {}: a file of this name is in the way", target_.string());
  // A process killed between the two renames left the former folder aside.
  if (!std::filesystem::exists(target_, status)) ::rename(kept_aside(target_).c_str(), target_.c_str());
  remove_unfinished(target_);
  while (true) {
    const std::filesystem::path name = unfinished_name(target_);
    if (::mkdir(name.c_str(), 0777) != 0) {
      if (errno == EEXIST) continue;
      if (errno == ENOENT)
        fail("cannot write the folder {}: the folder above it does not exist; make it and run again",
             target_.string());
      fail_folder(target_, errno);
    }
    lock_ = ::open(name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const int error = errno;
    if (lock_ < 0 && error != ENOENT) {  // not another writer's sweep, but something that lasts
      std::error_code ignored;
      std::filesystem::remove(name, ignored);
      fail_folder(target_, error);
    }
    working_ = name;
    if (lock_ >= 0 && mark_alive(lock_)) return;
    if (lock_ >= 0) ::close(std::exchange(lock_, -1));
  }
}

AtomicFolder::~AtomicFolder() {
  std::error_code ignored;
  if (!working_.empty()) std::filesystem::remove_all(working_, ignored);
  if (lock_ >= 0) ::close(lock_);
}

void AtomicFolder::commit() {
  require(!working_.empty(), "cannot write the folder {}: it is already finished", target_.string());
  sync_folder(working_);
  if (const int error = exchange(working_, target_); error != 0) fail_folder(target_, error);
  sync_folder(target_.parent_path());
  std::error_code ignored;
  std::filesystem::remove_all(working_, ignored);  // the former contents
  working_.clear();
  ::close(std::exchange(lock_, -1));
}

void writable_folder(const std::filesystem::path& folder, uint64_t bytes_needed) {
  std::error_code error;
  require(!std::filesystem::exists(folder, error) || std::filesystem::is_directory(folder, error),
          "cannot write into {}: it is a file, and a folder is needed", folder.string());
  std::filesystem::create_directories(folder, error);
  if (error)
    fail("cannot make the folder {}: {}; {}", folder.string(), error.message(), remedy(error.value()));
  const std::filesystem::path probe = unfinished_name(folder / "probe");
  const int descriptor = ::open(probe.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (descriptor < 0) {
    const int reason = errno;
    fail("cannot write into the folder {}: {}; {}", folder.string(), std::generic_category().message(reason),
         remedy(reason));
  }
  const bool wrote = ::write(descriptor, "x", 1) == 1;
  const int reason = errno;
  ::close(descriptor);
  ::unlink(probe.c_str());
  if (!wrote) {
    fail("cannot write into the folder {}: {}; {}", folder.string(), std::generic_category().message(reason),
         remedy(reason));
  }
  struct statvfs space {};
  if (bytes_needed == 0 || ::statvfs(folder.c_str(), &space) != 0) return;
  const uint64_t available = static_cast<uint64_t>(space.f_bavail) * space.f_frsize;
  require(available >= bytes_needed,
          "the folder {} has {} MB free and {} MB are needed; free some space or choose another folder",
          folder.string(), available >> 20, (bytes_needed >> 20) + 1);
}

}  // namespace gloss::io
