#include "gloss/io/unfinished.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <exception>
#include <system_error>
#include <vector>

namespace gloss::io {
namespace {

constexpr size_t kLongestName = 200;  // of 255 bytes a file name may have; the rest is for our suffix

std::filesystem::path folder_of(const std::filesystem::path& path) {
  const std::filesystem::path folder = path.parent_path();
  return folder.empty() ? std::filesystem::path(".") : folder;
}

std::string prefix_of(const std::filesystem::path& target) {
  return fmt::format(".{}.unfinished-", target.filename().string().substr(0, kLongestName));
}

}  // namespace

std::filesystem::path unfinished_name(const std::filesystem::path& target) {
  static std::atomic<uint64_t> counter{0};
  return folder_of(target) / fmt::format("{}{}-{}", prefix_of(target), ::getpid(), ++counter);
}

bool mark_alive(int descriptor) {
  // A file system without locks (some network ones) leaves the file unmarked, which costs only the tidying.
  [[maybe_unused]] const int ignored = ::flock(descriptor, LOCK_EX | LOCK_NB);
  struct stat status {};
  return ::fstat(descriptor, &status) == 0 && status.st_nlink > 0;
}

void remove_unfinished(const std::filesystem::path& target) noexcept {
  try {
    const std::string prefix = prefix_of(target);
    std::vector<std::filesystem::path> found;
    std::error_code error;
    for (std::filesystem::directory_iterator it(folder_of(target), error), end; !error && it != end;
         it.increment(error)) {
      if (it->path().filename().string().starts_with(prefix)) found.push_back(it->path());
    }
    for (const std::filesystem::path& path : found) {
      const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
      if (descriptor < 0) continue;
      if (::flock(descriptor, LOCK_EX | LOCK_NB) == 0) std::filesystem::remove_all(path, error);
      ::close(descriptor);
    }
  } catch (const std::exception&) {
    // Out of memory: the next writer tries again.
  }
}

void sync_folder(const std::filesystem::path& folder) {
  const int descriptor = ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return;
  ::fsync(descriptor);
  ::close(descriptor);
}

std::string remedy(int error) {
  switch (error) {
    case ENOSPC:
    case EDQUOT:
      return "free some space and run again";
    case EFBIG:
      return "raise the file size limit (ulimit -f) or write to another file system";
    case EACCES:
    case EPERM:
    case EROFS:
      return "choose a folder you can write to";
    case ELOOP:
      return "mend the symbolic links, which lead in a circle";
    case ENAMETOOLONG:
      return "choose a shorter name";
    default:
      return "check the disk and run again";
  }
}

}  // namespace gloss::io
