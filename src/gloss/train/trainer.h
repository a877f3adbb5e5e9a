// Training a translation model from two parallel text files.
#pragma once

#include <atomic>
#include <string>
#include <string_view>

#include "gloss/base/options.h"
#include "gloss/train/clock.h"
#include "gloss/train/options.h"

namespace gloss::train {

// Who is told how training goes. The library itself never prints.
class Reporter {
 public:
  virtual ~Reporter() = default;
  virtual void message(std::string_view line) = 0;   // something to know: kept on the screen
  virtual void progress(std::string_view line) = 0;  // replaced by the next one
};

struct Outcome {
  enum class Kind {
    trained,      // a limit was reached or nothing improved any more
    interrupted,  // `stop` was set: saved, the same command goes on
    complete,     // the folder held a finished run of this very command: nothing was done
  };
  Kind kind = Kind::trained;
  std::string reason;  // for people: "stopped after 20 updates (--max-updates): validation perplexity 8.125"
  int64_t updates = 0;
  double perplexity = 0;  // of the model that the folder holds; 0: none yet
  double bleu = -1;       // the same; -1: not asked for
};

// Trains, or goes on with the run that options.output holds, bit for bit as if it had not stopped. The folder
// then has the best model so far in Hugging Face's layout, gloss.json (a summary), train.jsonl (a line every
// few updates and validations) and `training` (the state). `stop` is asked after each update and each batch
// of a validation. Throws UsageError for options that are not allowed, Error for bad input before any work,
// when ten batches in a row gave numbers that are none, and when something cannot be written; the last state
// stays as it was.
Outcome run(const Typed<TrainOptions>& options, Reporter& reporter, const std::atomic<bool>& stop,
            const Clock& clock = steady_seconds);

}  // namespace gloss::train
