// A regular file read at any offset.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

namespace gloss::io {

// Reads with pread and never maps: a file that is cut short while it is open gives an error, not SIGBUS.
// Threads may read at the same time.
class InputFile {
 public:
  // Throws for what is missing, unreadable or not a regular file.
  explicit InputFile(std::filesystem::path path);
  ~InputFile();
  InputFile(InputFile&& other) noexcept;
  InputFile& operator=(InputFile&& other) noexcept;

  const std::filesystem::path& path() const { return path_; }
  uint64_t size() const { return size_; }  // bytes, when it was opened
  // Fills `out` from byte `offset`; throws when the file ends before.
  void read_at(uint64_t offset, std::span<std::byte> out) const;

 private:
  std::filesystem::path path_;
  uint64_t size_ = 0;
  int descriptor_ = -1;
};

// Whether something stands at this path, or a folder. Throws Error where the system cannot tell (links that
// go round in a circle, a name that is too long, no permission).
bool exists(const std::filesystem::path& path);
bool is_folder(const std::filesystem::path& path);

// The whole file; throws when it holds more than `max_bytes`, before asking for memory.
std::string read_whole_file(const std::filesystem::path& path, uint64_t max_bytes);

}  // namespace gloss::io
