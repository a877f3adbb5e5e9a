// What the tests of text and data share: files in a folder that goes away, messages of errors, real
// sentences.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "gloss/base/error.h"

namespace gloss::text {

class TemporaryFolder {
 public:
  TemporaryFolder() {
    static int count = 0;
    path_ = std::filesystem::path(testing::TempDir()) /
            ("gloss-text-" + std::to_string(::getpid()) + "-" + std::to_string(count++));
    std::filesystem::create_directories(path_);
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path write(const std::string& name, std::string_view bytes) const {
    std::ofstream(path_ / name, std::ios::binary) << bytes;
    return path_ / name;
  }

 private:
  std::filesystem::path path_;
};

// The message of the Error that `run` throws; a failure and "" when it throws none.
template <class Run>
std::string error_of(Run&& run) {
  try {
    run();
  } catch (const Error& error) {
    return error.what();
  }
  ADD_FAILURE() << "no Error was thrown";
  return "";
}

inline std::filesystem::path multi30k(const std::string& name) {
  return std::filesystem::path(GLOSS_TEST_SHARED) / "data" / "multi30k" / name;
}

// The first lines of a gzip file; none when it or zcat is absent.
inline std::vector<std::string> gzip_lines(const std::filesystem::path& file, size_t limit = SIZE_MAX) {
  std::vector<std::string> lines;
  if (!std::filesystem::exists(file)) return lines;
  FILE* pipe = ::popen(("zcat '" + file.string() + "'").c_str(), "r");
  if (pipe == nullptr) return lines;
  std::string line;
  for (int c; lines.size() < limit && (c = std::fgetc(pipe)) != EOF;) {
    if (c != '\n') {
      line.push_back(static_cast<char>(c));
    } else {
      lines.push_back(std::exchange(line, {}));
    }
  }
  ::pclose(pipe);
  return lines;
}

inline std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const auto& line : lines) text += line + "\n";
  return text;
}

// A corpus of short sentences that is always there: 12 x 12 x 12 of them, of which every `step`-th.
inline std::vector<std::string> small_sentences(size_t step = 1) {
  const std::vector<std::string> who = {"a man",        "the woman",    "two children", "my brother",
                                        "a dog",        "her cat",      "a singer",     "the baker",
                                        "some players", "an old horse", "a girl",       "his uncle"};
  const std::vector<std::string> what = {"walks",  "sleeps",     "is running", "sings loudly",
                                         "waits",  "jumps",      "looks up",   "laughs",
                                         "stands", "is reading", "plays",      "swims"};
  const std::vector<std::string> where = {
      "in the park.", "on a bridge.",  "near the river!", "at home.", "in 1984.",       "on the street.",
      "by the sea?",  "under a tree.", "in a café.",      "in Köln.", "over the hill.", "at the market."};
  std::vector<std::string> lines;
  for (size_t i = 0; i < who.size() * what.size() * where.size(); i += step)
    lines.push_back(who[i % 12] + " " + what[i / 12 % 12] + " " + where[i / 144]);
  return lines;
}

}  // namespace gloss::text
