// Options of a benchmark's own beside Google Benchmark's.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>

#include "gloss/base/error.h"

namespace gloss::bench {

class Arguments {
 public:
  // Takes "--name value" of these names out of the arguments and leaves the rest. Throws Error for a name
  // without a value.
  Arguments(int& argc, char** argv, std::initializer_list<std::string_view> names) {
    int kept = 1;
    for (int i = 1; i < argc; ++i) {
      const std::string_view word = argv[i];
      if (std::ranges::find(names, word) == names.end()) {
        argv[kept++] = argv[i];
        continue;
      }
      require(i + 1 < argc, "{} wants a value", word);
      values_[std::string(word)] = argv[++i];
    }
    argc = kept;
  }

  std::string text(const std::string& name) const {
    const auto at = values_.find(name);
    return at == values_.end() ? "" : at->second;
  }

  // A number above 0, or `otherwise` where the option was not given.
  int64_t number(const std::string& name, int64_t otherwise) const {
    const std::string value = text(name);
    if (value.empty()) return otherwise;
    int64_t number = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
    require(error == std::errc() && end == value.data() + value.size() && number > 0,
            "{} is a number above 0, not '{}'", name, value);
    return number;
  }

 private:
  std::map<std::string, std::string> values_;
};

}  // namespace gloss::bench
