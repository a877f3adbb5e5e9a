// The model folder that a run writes into.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>

#include "gloss/models/model.h"
#include "gloss/text/tokenizer.h"
#include "gloss/train/options.h"
#include "gloss/train/state.h"

namespace gloss::train {

// gloss.json: what a model folder says of its training.
struct Summary {
  bool complete = false;  // the run reached a limit and the model is the final one
  Progress progress;
  ValidationScores scores;  // of the model
  int64_t training_pairs = 0;
};

// A lock that goes with the process, however that ends.
class FolderLock {
 public:
  // Throws Error when another process holds it; `folder` stands in the message.
  FolderLock(const std::filesystem::path& file, const std::filesystem::path& folder);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  int descriptor_ = -1;
};

// A process may die at any moment; what it leaves must go on, and no reader may take half a model for a whole
// one. Hence the order of writing:
//   a new run       config.json of an earlier model goes first, then its state, run.json last; then come the
//                   vocabularies, and run.json once they are whole, which notes whether --overwrite began the
//                   run, until the run has ended
//   a better model  kept parameters, model.safetensors, config.json, gloss.json, then the state; shapes and
//                   vocabularies never change within a run, so any model.safetensors fits them
class OutputFolder {
 public:
  // Makes the folder where it is missing, and holds a lock on it while this object lives. `identity`
  // (setup.h) is what this run may not change. Throws Error when nothing can be written there, when another
  // process trains into it, and, without options.overwrite, when it holds another run or a foreign model.
  // With options.overwrite only this run's own beginning stays, if that was made with it too and has not
  // ended: whoever gives an interrupted command again wants to go on.
  OutputFolder(const TrainOptions& options, std::string identity);

  // Whether the folder holds this very run already, its tokenizer at least.
  bool continues() const { return continues_; }
  // Replaces whatever run and model are there by the beginning of this run.
  void begin(const text::Tokenizer& tokenizer) const;
  // The run has ended and its model is final: from now on options.overwrite replaces it.
  void end() const;

  const std::filesystem::path& path() const { return path_; }
  const StateFolder& state() const { return state_; }
  // Throws Error when the disk has less room than that.
  void require_room(uint64_t bytes) const;
  void write_summary(const Summary& summary) const;
  // The scores of the final model when this run ended at `update` before.
  std::optional<ValidationScores> final_scores(int64_t update) const;

 private:
  std::filesystem::path training() const { return path_ / "training"; }
  std::filesystem::path run_file() const { return training() / "run.json"; }
  // There while the first files are written, before run.json is.
  std::filesystem::path begun_file() const { return training() / "begun"; }
  std::optional<std::string> difference(const nlohmann::json& saved) const;
  bool is_overwriting() const;
  void require_same_run() const;
  void require_no_foreign_model() const;

  std::filesystem::path path_;
  TrainOptions options_;
  std::string identity_;
  StateFolder state_;
  bool continues_ = false;
  std::optional<FolderLock> lock_;
};

}  // namespace gloss::train
