// What a training run has to remember to go on as if it had never stopped.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "gloss/autograd/parameter.h"
#include "gloss/data/batches.h"
#include "gloss/io/safetensors.h"
#include "gloss/train/options.h"
#include "gloss/train/validation.h"

namespace gloss::train {

struct Progress {
  int64_t update = 0;               // made so far; skipped ones do not count
  data::StreamPosition position;    // of the next batch
  int64_t target_tokens = 0;        // learnt from in all
  double seconds = 0;               // of training in all
  int64_t log_lines = 0;            // of train.jsonl
  int64_t last_validation = -1;     // the update of it; -1: none yet
  bool validation_pending = false;  // of this update: it was stopped, and is the first thing to do
  int64_t bad_validations = 0;      // since the best one
  int64_t best_update = -1;         // the update of the best validation; -1: none yet
  ValidationScores best;
  int64_t bad_steps = 0;           // steps skipped for NaN or infinity, in a row
  int64_t skipped_steps = 0;       // the same in all
  std::vector<int64_t> validated;  // updates whose parameters are averaged, oldest first
};

// Adam's moments and the moving average, as flat as the parameters.
struct OptimiserState {
  std::vector<float> first, second;
  std::vector<float> average;  // empty without --ema
};

// The `training` folder of a model folder:
//   state.safetensors                parameters, optimiser and Progress, one file: whole or absent
//   parameters-<update>.safetensors  the best ones and those that are averaged
class StateFolder {
 public:
  explicit StateFolder(std::filesystem::path folder) : folder_(std::move(folder)) {}

  bool exists() const;
  // Replaces the state, then tidies: a state on disk has all it names, whenever the process dies.
  void save(const autograd::ParameterSet<float>& parameters, const OptimiserState& optimiser,
            const Progress& progress) const;
  // Throws Error for a damaged state or one of another model.
  void load(autograd::ParameterSet<float>& parameters, OptimiserState& optimiser, Progress& progress) const;
  // Forgets the run, the state first.
  void clear() const;

  // Stores the parameters that were validated at `update`.
  void keep(int64_t update, std::span<const float> values) const;
  // Removes what keep() stored for updates that progress does not name.
  void tidy(const Progress& progress) const;
  // The mean of kept parameters, summed in double precision in the order given; of one update, the same bits.
  std::vector<float> mean(const std::vector<int64_t>& updates, size_t size) const;
  // Disk space that a run takes, the model included.
  static uint64_t bytes_needed(size_t values, const TrainOptions& options);

 private:
  std::filesystem::path state_path() const { return folder_ / "state.safetensors"; }
  std::filesystem::path kept_path(int64_t update) const;
  std::string advice() const;  // what to do about a state that cannot be used
  io::SafetensorsFile opened(const std::filesystem::path& path) const;
  template <class Wanted>
  void remove_kept_unless(Wanted wanted) const;

  std::filesystem::path folder_;
};

}  // namespace gloss::train
