// The progress line for people and the same for programs: means since the last line.
#pragma once

#include <chrono>
#include <optional>

#include "gloss/train/learner.h"
#include "gloss/train/log.h"
#include "gloss/train/trainer.h"

namespace gloss::train {

class Meter {
 public:
  Meter(Reporter& reporter, TrainLog& log) : reporter_(reporter), log_(log) {}

  void add(const Learner::Step& step);
  // Whether a new line is worth reading.
  bool due() const;
  // One line on the screen and in train.jsonl; nothing when nothing was added.
  void report(const Progress& progress, double rate, double seconds, std::optional<double> seconds_left);
  // The time since the last line does not count as training: a validation or a save took it.
  void forget_time() { since_ = Clock::now(); }

 private:
  using Clock = std::chrono::steady_clock;
  double elapsed() const { return std::chrono::duration<double>(Clock::now() - since_).count(); }

  Reporter& reporter_;
  TrainLog& log_;
  Clock::time_point since_ = Clock::now();
  double loss_ = 0, negative_log_likelihood_ = 0;
  int64_t tokens_ = 0;
};

// The epoch that people count: from 1, and the one that just ended at its end.
int64_t epoch_number(const Progress& progress);
// A line of train.jsonl begins with how far the run is.
nlohmann::ordered_json log_entry(const Progress& progress);

}  // namespace gloss::train
