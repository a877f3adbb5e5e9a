// The progress line for people and the same for programs: means since the last line.
#pragma once

#include <optional>
#include <utility>

#include "gloss/train/clock.h"
#include "gloss/train/learner.h"
#include "gloss/train/log.h"
#include "gloss/train/trainer.h"

namespace gloss::train {

class Meter {
 public:
  Meter(Reporter& reporter, TrainLog& log, Clock clock)
      : reporter_(reporter), log_(log), clock_(std::move(clock)) {}

  void add(const Learner::Step& step);
  // Whether a new line is worth reading.
  bool due() const;
  // One line on the screen and in train.jsonl; nothing when nothing was added.
  void report(const Progress& progress, double rate, double seconds, std::optional<double> seconds_left);
  // The time since the last line does not count as training: a validation or a save took it.
  void forget_time() { since_ = clock_(); }

 private:
  double elapsed() const { return clock_() - since_; }

  Reporter& reporter_;
  TrainLog& log_;
  const Clock clock_;
  double since_ = clock_();
  Learner::Step sum_;
};

// The epoch that people count: from 1, and the one that just ended at its end.
int64_t epoch_number(const Progress& progress);
// A line of train.jsonl begins with how far the run is.
nlohmann::ordered_json log_entry(const Progress& progress);

}  // namespace gloss::train
