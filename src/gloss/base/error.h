// Errors a user can act on: what was expected, what came, which file and line, what to do.
#pragma once

#include <fmt/core.h>

#include <stdexcept>
#include <string>
#include <utility>

namespace gloss {

class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The command line itself is wrong (exit status 2 instead of 1).
class UsageError : public Error {
 public:
  using Error::Error;
};

// Throws Error with a formatted message.
template <class... Args>
[[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) {
  throw Error(fmt::format(format, std::forward<Args>(args)...));
}

// Throws Error with a formatted message unless `condition` holds.
template <class... Args>
void require(bool condition, fmt::format_string<Args...> format, Args&&... args) {
  if (!condition) throw Error(fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace gloss
