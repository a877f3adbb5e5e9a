// What a training run has to remember to go on as if it had never stopped.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "gloss/autograd/parameter.h"
#include "gloss/data/batches.h"

namespace gloss::train {

struct Progress {
  int64_t update = 0;
  data::StreamPosition position;  // of the next batch
  int64_t target_tokens = 0;      // seen in all
  double seconds = 0;             // of training in all
  int64_t validations = 0;
  int64_t last_validation = 0;     // the update of it
  int64_t bad_validations = 0;     // since the best one
  double best_metric = 0;          // as it is shown: perplexity (lower is better) or BLEU
  int64_t best_update = 0;         // 0: not validated yet
  int64_t bad_batches = 0;         // steps skipped for NaN or infinity, in a row
  int64_t skipped_batches = 0;     // the same in all
  std::vector<int64_t> validated;  // updates whose parameters are kept for averaging, oldest first
};

// Adam's moments and the moving average, as flat as the parameters.
struct OptimiserState {
  std::vector<float> first, second;
  std::vector<float> average;  // empty without --ema
};

// The `training` folder of a model folder:
//   state.safetensors        parameters, optimiser and Progress, one file: whole or absent
//   parameters-<update>.safetensors  parameters kept for averaging
class StateFolder {
 public:
  explicit StateFolder(std::filesystem::path folder) : folder_(std::move(folder)) {}

  bool exists() const;
  // Replaces the state; files of parameters that progress.validated does not name are removed afterwards.
  void save(const autograd::ParameterSet<float>& parameters, const OptimiserState& optimiser,
            const Progress& progress) const;
  // Throws Error for a damaged state or one of another model.
  void load(autograd::ParameterSet<float>& parameters, OptimiserState& optimiser, Progress& progress) const;

  void keep(int64_t update, std::span<const float> values) const;
  // The mean of kept parameters, summed in double precision in the order given.
  std::vector<float> mean(const std::vector<int64_t>& updates, size_t size) const;
  uint64_t bytes_needed(size_t values, int64_t kept) const;

 private:
  std::filesystem::path state_path() const { return folder_ / "state.safetensors"; }
  std::filesystem::path kept_path(int64_t update) const;
  std::filesystem::path folder_;
};

}  // namespace gloss::train
