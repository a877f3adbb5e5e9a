// Every parser of files from outside has a target beside this file: any bytes must give a result or an Error,
// never a crash, and memory in proportion to the input. `./test` replays seeds and a fixed number of damaged
// ones (replay.cc); the preset `fuzz` makes endless searches of the same targets (libFuzzer;
// CONTRIBUTING.md).
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>

#include "gloss/base/error.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace gloss::fuzz {

inline std::string_view text_of(const uint8_t* data, size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

// A file that exists in memory only.
class MemoryFile {
 public:
  explicit MemoryFile(std::string_view bytes) : descriptor_(memfd_create("fuzz", MFD_CLOEXEC)) {
    if (descriptor_ < 0 || ftruncate(descriptor_, static_cast<off_t>(bytes.size())) != 0 ||
        pwrite(descriptor_, bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
      std::perror("memfd");
      std::abort();
    }
  }
  ~MemoryFile() { ::close(descriptor_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  std::filesystem::path path() const { return "/proc/self/fd/" + std::to_string(descriptor_); }
  int descriptor() const { return descriptor_; }

 private:
  int descriptor_;
};

// Unlike assert, in every build.
inline void check(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "does not hold: %s\n", what);
  std::abort();
}

// Runs what may refuse its input. An Error must be one line; whatever else is thrown ends the program.
template <class F>
bool accepts(F run) {
  try {
    run();
    return true;
  } catch (const Error& error) {
    const std::string_view text = error.what();
    check(!text.empty() && text.size() < 4096, "an error of a sensible length");
    check(text.find('\n') == std::string_view::npos, "an error of one line");
    return false;
  }
}

}  // namespace gloss::fuzz
