// One training run while it goes: the parts of train::run.
#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "gloss/data/batches.h"
#include "gloss/data/corpus.h"
#include "gloss/models/transformer_model.h"
#include "gloss/tensor/context.h"
#include "gloss/train/log.h"
#include "gloss/train/state.h"
#include "gloss/train/trainer.h"
#include "gloss/train/validation.h"

namespace gloss::train {

class Run {
 public:
  // Opens the texts, makes or loads the tokenizer and the model, and takes up a saved state.
  Run(TrainOptions options, Reporter& reporter, const std::atomic<bool>& stop);
  Outcome train();

 private:
  using Clock = std::chrono::steady_clock;

  void open_output();
  void start_or_continue();
  // A batch's loss and gradients, or several batches' for one update; false when an epoch ended before the
  // first.
  bool collect(std::vector<data::TokenBatch>& batches);
  void update(const std::vector<data::TokenBatch>& batches);
  // Whether a validation counts for the run that goes on, or only for the model that is left behind at its
  // end.
  enum class Keep : bool { no, yes };
  void validate(Keep keep);
  void save_state();
  void finish(Outcome& outcome);
  std::optional<std::string> reached_limit() const;
  double seconds() const;
  void report_progress();
  bool better(const ValidationScores& scores) const;
  double metric(const ValidationScores& scores) const;
  std::span<const float> shown_values() const;
  void write_summary(const ValidationScores& scores, bool complete);
  // Runs `judge` with other numbers in the model.
  ValidationScores judge(std::span<const float> values);

  TrainOptions options_;
  Reporter& reporter_;
  const std::atomic<bool>& stop_;
  std::filesystem::path folder_;
  Context context_;
  data::ParallelCorpus corpus_, validation_corpus_;
  std::optional<text::Tokenizer> tokenizer_;
  std::unique_ptr<models::TransformerModel> model_;
  std::unique_ptr<data::BatchStream> stream_;
  std::unique_ptr<Validation> validation_;
  std::string identity_;
  StateFolder state_folder_;
  OptimiserState optimiser_;
  Progress progress_;
  ValidationScores best_scores_;
  std::unique_ptr<TrainLog> log_;
  Clock::time_point started_, last_report_, last_save_;
  double seconds_before_ = 0;
  // Since the last report.
  double loss_sum_ = 0, nll_sum_ = 0;
  int64_t tokens_sum_ = 0;
};

}  // namespace gloss::train
