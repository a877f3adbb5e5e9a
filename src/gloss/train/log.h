// train.jsonl: one JSON object a line, for programs.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>

namespace gloss::train {

class TrainLog {
 public:
  // Continues the file behind its first `lines` lines: what follows belongs to work that is done again.
  TrainLog(std::filesystem::path path, int64_t lines);
  // Appends a line. Throws Error when it cannot be written.
  void write(const nlohmann::ordered_json& entry);
  int64_t lines() const { return lines_; }

 private:
  std::filesystem::path path_;
  int64_t lines_ = 0;
};

}  // namespace gloss::train
