// What the log of a training (train.jsonl, docs/training.md) says, as curves.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace gloss::inspect {

// A value as it came, report by report. NaN where the log has null: a loss that was no number.
struct Curve {
  std::vector<double> update, seconds, value;
};

struct TrainingRun {
  std::string name;
  Curve loss, perplexity, learning_rate, speed;  // while training; speed in target tokens a second
  Curve valid_perplexity, valid_bleu;            // of validations
  int64_t damaged_lines = 0;                     // a process that was killed leaves half a line
};

// Reads the log text. Damaged lines are counted and passed over. Throws Error, naming `file`, where nothing
// else is there.
TrainingRun parse_training_log(std::string_view text, const std::string& file);

// Reads the output folder of `gloss train`, or a file of its kind of lines. Throws Error for a folder without
// log and a file that cannot be read.
TrainingRun read_training_run(const std::filesystem::path& path);

// A short name for each path: its folder's, with as much of the path before it as tells it from the others.
std::vector<std::string> names_apart(const std::vector<std::filesystem::path>& paths);

}  // namespace gloss::inspect
