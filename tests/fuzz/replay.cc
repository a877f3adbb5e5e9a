// Runs a fuzz target on seed files and on copies of them damaged in many ways, the same ones each time.
// Usage: fuzz_<target> COPIES SEED...
#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>

#include "fuzz.h"
#include "gloss/base/random.h"

namespace {
using gloss::RandomKey;

// What parsers stumble over: limits of numbers, brackets, ends.
constexpr std::string_view kMorsels[] = {"0",        "-1",   "18446744073709551616",
                                         "1e400",    "null", "[[[[[[[[",
                                         "{\"a\":",  "\"",   "\\u0000",
                                         "\xFF\xFE", "}",    "\xED\xA0\x80",
                                         "\r",       "\n\n", "\xEF\xBB\xBF",
                                         "\xC0\x80", "]",    "\xF0\x9F\x98"};

// One to four injuries: a bit, a byte, a morsel put in or written over, a piece cut out, doubled or moved, an
// end.
std::string damaged(std::string bytes, RandomKey key) {
  uint64_t draw = 0;
  const auto below = [&](size_t bound) {
    return bound == 0 ? 0 : static_cast<size_t>(key.below(draw++, bound));
  };
  for (size_t injuries = 1 + below(4); injuries > 0; --injuries) {
    // Most of what decides anything stands in front.
    const size_t reach = below(2) == 0 ? std::min<size_t>(bytes.size(), 512) : bytes.size();
    const size_t at = below(reach + 1), length = std::min(below(64), bytes.size() - at);
    const std::string_view morsel = kMorsels[below(std::size(kMorsels))];
    switch (below(8)) {
      case 0:
        if (at < bytes.size()) bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(8)));
        break;
      case 1:
        if (at < bytes.size()) bytes[at] = static_cast<char>(below(256));
        break;
      case 2:
        bytes.insert(at, morsel);
        break;
      case 3:
        bytes.replace(at, std::min(morsel.size(), bytes.size() - at), morsel);
        break;
      case 4:
        bytes.erase(at, length);
        break;
      case 5:
        bytes.insert(at, bytes.substr(at, length));
        break;
      case 6:
        bytes.insert(below(bytes.size() + 1), bytes.substr(at, length));
        break;
      case 7:
        bytes.resize(at);
        break;
    }
  }
  return bytes;
}

void run(const std::string& bytes) {
  LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
}
}  // namespace

int main(int argc, char** argv) {
  uint64_t copies = 0;
  const std::string_view count = argc > 2 ? argv[1] : "";
  if (std::from_chars(count.begin(), count.end(), copies).ec != std::errc()) {
    std::fprintf(stderr, "usage: %s COPIES SEED...\n", argv[0]);
    return 2;
  }
  run("");
  for (int i = 2; i < argc; ++i) {
    std::ifstream in(argv[i], std::ios::binary);
    const std::string seed{std::istreambuf_iterator<char>(in), {}};
    if (!in || seed.empty()) {
      std::fprintf(stderr, "%s cannot be read\n", argv[i]);
      return 1;
    }
    run(seed);
    for (uint64_t copy = 0; copy < copies; ++copy) {
      const std::string bytes = damaged(seed, RandomKey(copy).with(static_cast<uint64_t>(i)));
      // A crash leaves its input behind.
      std::ofstream("last-input", std::ios::binary) << bytes;
      run(bytes);
    }
  }
  std::remove("last-input");
  std::printf("%llu damaged copies of %d seeds\n", static_cast<unsigned long long>(copies), argc - 2);
}
