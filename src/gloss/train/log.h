// train.jsonl: one JSON object a line, for programs.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>

namespace gloss::train {

class TrainLog {
 public:
  // Continues the file; lines of updates after `update` belong to work that is done again and are dropped.
  TrainLog(std::filesystem::path path, int64_t update);
  // Appends a line; `entry` has "update". Throws Error when it cannot be written.
  void write(const nlohmann::ordered_json& entry);

 private:
  std::filesystem::path path_;
};

}  // namespace gloss::train
