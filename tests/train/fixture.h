// What the tests of training share: toy corpora, a model that trains in a second, and what a run leaves.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "gloss/base/random.h"
#include "gloss/io/safetensors.h"
#include "gloss/train/trainer.h"
#include "text/fixture.h"

namespace gloss::train {

namespace fs = std::filesystem;

// Lines of 1 to `longest` words from a small vocabulary.
inline std::vector<std::string> word_lines(size_t count, uint64_t seed, uint64_t longest = 6) {
  const std::vector<std::string> words = {"ape", "bee", "cat", "dog", "elk", "fox", "gnu", "hen"};
  const RandomKey key(seed);
  std::vector<std::string> lines;
  for (uint64_t i = 0; i < count; ++i) {
    std::string line;
    const uint64_t n = 1 + key.below(i, longest);
    for (uint64_t k = 0; k < n; ++k) line += (k > 0 ? " " : "") + words[key.with(i).below(k, words.size())];
    lines.push_back(line);
  }
  return lines;
}

// A folder with a task of copying, which a tiny model learns in a few hundred updates.
struct Task {
  text::TemporaryFolder folder;
  Typed<TrainOptions> options;

  explicit Task(size_t pairs = 200) {
    const std::string train = text::joined(word_lines(pairs, 1)), valid = text::joined(word_lines(20, 2));
    set("train", {folder.write("train.src", train).string(), folder.write("train.tgt", train).string()});
    set("valid", {folder.write("valid.src", valid).string(), folder.write("valid.tgt", valid).string()});
    options.set("output", (folder.path() / "model").string());
    for (const auto& [name, value] : std::map<std::string, std::string>{{"d-model", "16"},
                                                                        {"encoder-layers", "1"},
                                                                        {"decoder-layers", "1"},
                                                                        {"encoder-heads", "2"},
                                                                        {"decoder-heads", "2"},
                                                                        {"encoder-ff", "32"},
                                                                        {"decoder-ff", "32"},
                                                                        {"vocab-size", "100"},
                                                                        {"batch-tokens", "128"},
                                                                        {"warmup", "20"},
                                                                        {"learning-rate", "0.01"},
                                                                        {"threads", "1"}}) {
      options.set(name, value);
    }
  }
  // A flag takes "true" or "false".
  Task& set(const std::string& name, const std::string& value) {
    options.set(name, value);
    return *this;
  }
  Task& set(const std::string& name, const std::vector<std::string>& values) {
    options.set_values(name, values);
    return *this;
  }
  Task& into(const std::string& name) { return set("output", (folder.path() / name).string()); }
  fs::path output() const { return options.value.output; }
};

class Recorder : public Reporter {
 public:
  std::vector<std::string> messages, lines;
  std::function<void(const std::string&)> on_message = [](const std::string&) {};
  std::function<void()> on_progress = [] {};
  void message(std::string_view line) override {
    messages.emplace_back(line);
    on_message(messages.back());
  }
  void progress(std::string_view line) override {
    lines.emplace_back(line);
    on_progress();
  }
};

inline Outcome train(const Task& task, Recorder& recorder, const Clock& clock = steady_seconds) {
  const std::atomic<bool> stop{false};
  return run(task.options, recorder, stop, clock);
}
inline Outcome train(const Task& task) {
  Recorder recorder;
  return train(task, recorder);
}
inline std::string error_of_training(const Task& task) {
  return text::error_of([&] { train(task); });
}

inline std::string bytes_of(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  EXPECT_TRUE(in) << path << " is missing";
  return {std::istreambuf_iterator<char>(in), {}};
}

inline std::vector<float> floats(const fs::path& file, const std::string& name) {
  const auto opened = io::SafetensorsFile::open(file);
  std::vector<float> values(static_cast<size_t>(opened.info(name).count()));
  opened.read_into<float>(name, values);
  return values;
}

// Parameters, both moments, the moving average: name to bytes.
inline std::map<std::string, std::string> state_tensors(const fs::path& output) {
  const auto file = io::SafetensorsFile::open(output / "training" / "state.safetensors");
  std::map<std::string, std::string> tensors;
  for (const std::string& name : file.names()) {
    std::string bytes(file.info(name).bytes, '\0');
    file.read_bytes(name, std::as_writable_bytes(std::span(bytes)));
    tensors[name] = std::move(bytes);
  }
  return tensors;
}

// Progress without the time it took and the lines that depend on time.
inline nlohmann::json progress_of(const fs::path& output) {
  const auto file = io::SafetensorsFile::open(output / "training" / "state.safetensors");
  auto progress = nlohmann::json::parse(file.metadata().at("progress"));
  progress.erase("seconds");
  progress.erase("log_lines");
  return progress;
}

inline std::vector<nlohmann::json> log_of(const fs::path& output) {
  std::ifstream in(output / "train.jsonl");
  std::vector<nlohmann::json> entries;
  for (std::string line; std::getline(in, line);) {
    auto entry = nlohmann::json::parse(line, nullptr, false);
    EXPECT_TRUE(entry.is_object()) << line;
    entries.push_back(std::move(entry));
  }
  return entries;
}

// The validations of train.jsonl without their times.
inline std::vector<nlohmann::json> validations_of(const fs::path& output) {
  std::vector<nlohmann::json> found;
  for (nlohmann::json& entry : log_of(output)) {
    if (!entry.contains("valid_perplexity")) continue;
    entry.erase("seconds");
    found.push_back(entry);
  }
  return found;
}

// All that two runs which did the same must have in common, bit for bit.
inline void expect_same_run(const fs::path& a, const fs::path& b) {
  const auto x = state_tensors(a), y = state_tensors(b);
  ASSERT_EQ(x.size(), y.size());
  for (const auto& [name, bytes] : x) EXPECT_TRUE(bytes == y.at(name)) << name << " differs";
  EXPECT_EQ(progress_of(a), progress_of(b));
  EXPECT_TRUE(bytes_of(a / "model.safetensors") == bytes_of(b / "model.safetensors"));
  EXPECT_EQ(bytes_of(a / "config.json"), bytes_of(b / "config.json"));
  EXPECT_EQ(validations_of(a), validations_of(b));
}

}  // namespace gloss::train
