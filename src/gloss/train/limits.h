// When a run ends, and how long that will take.
#pragma once

#include <optional>
#include <string>

#include "gloss/train/options.h"
#include "gloss/train/state.h"

namespace gloss::train {

// The first limit that is reached, in words: "after 20 updates (--max-updates)".
std::optional<std::string> reached_limit(const TrainOptions& options, const Progress& progress,
                                         double seconds);

// What a user who waits wants to know: "after 60 minutes (--minutes) or 10 validations without progress
// (--patience), whichever is first".
std::string foreseen_end(const TrainOptions& options);

// By the nearest limit that can be foreseen, from the pace of the whole run; `epoch_batches` is the length of
// an epoch, 0 while it is unknown. Early stopping cannot be foreseen.
std::optional<double> seconds_left(const TrainOptions& options, const Progress& progress, double seconds,
                                   int64_t epoch_batches);

// "1h05m" or "3m20s".
std::string duration_text(double seconds);

}  // namespace gloss::train
