// One training run: takes up the state, updates, validates, saves, and leaves a model.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <filesystem>
#include <optional>
#include <utility>

#include "gloss/data/batches.h"
#include "gloss/data/corpus.h"
#include "gloss/models/model_folder.h"
#include "gloss/tensor/context.h"
#include "gloss/train/candidates.h"
#include "gloss/train/learner.h"
#include "gloss/train/limits.h"
#include "gloss/train/log.h"
#include "gloss/train/meter.h"
#include "gloss/train/output.h"
#include "gloss/train/schedule.h"
#include "gloss/train/setup.h"
#include "gloss/train/trainer.h"
#include "gloss/train/validation.h"

namespace gloss::train {
namespace {

constexpr int64_t kBadSteps = 10;  // in a row, before training gives up
constexpr double kSaveSeconds = 300;

// Lines that name a batch: "lines 4, 17, 9 and 61 others".
std::string lines_of(const std::vector<data::TokenBatch>& batches) {
  constexpr size_t kShown = 3;
  std::string text;
  size_t count = 0;
  for (const data::TokenBatch& batch : batches) {
    for (const int64_t line : batch.line_numbers) {
      if (count++ < kShown) text += fmt::format("{}{}", text.empty() ? "" : ", ", line);
    }
  }
  if (count > kShown) text += fmt::format(" and {} others", count - kShown);
  return (count == 1 ? "line " : "lines ") + text;
}

class Run {
 public:
  // Throws Error for all that can be wrong with options and texts before the folder changes; then takes up
  // the state that is there, or begins.
  Run(const TrainOptions& options, Reporter& reporter, const std::atomic<bool>& stop, Clock clock);
  Outcome train();

 private:
  void take_up_or_begin();
  bool next_batches(std::vector<data::TokenBatch>& batches);
  void update(const std::vector<data::TokenBatch>& batches);
  void skip(const Learner::Step& step, const std::vector<data::TokenBatch>& batches);
  void end_of_epoch();
  bool validation_due(bool epoch_ended) const;
  bool save_due() const;
  void validate();
  void save();
  void report();
  Outcome interrupted() const;
  Outcome finish(const std::string& limit);

  std::optional<ValidationScores> judge(std::span<const float> values);
  bool improves(const ValidationScores& scores, const Candidate& than) const;
  void tell(const ValidationScores& scores, bool best);
  double seconds() const { return seconds_before_ + clock_() - started_; }
  bool stopped() const { return stop_.load(std::memory_order_relaxed); }

  // What is given.
  const TrainOptions options_;
  Reporter& reporter_;
  const std::atomic<bool>& stop_;
  const Clock clock_;
  const data::ParallelCorpus corpus_, validation_corpus_;
  const std::optional<data::WordLinks> links_;
  OutputFolder output_;
  const text::Tokenizer tokenizer_;
  // What works.
  Context context_;
  Learner learner_;
  data::BatchStream stream_;
  const Validation validation_;
  // How far it is, and who is told.
  Progress progress_;
  std::optional<TrainLog> log_;  // from train() on: a finished run's log is not touched
  std::optional<Meter> meter_;
  int64_t epoch_batches_ = 0;  // in the last whole epoch that this process saw
  double seconds_before_ = 0;  // that earlier pieces of the run took
  double started_ = clock_(), last_save_ = started_;
};

std::optional<data::WordLinks> links_of(const TrainOptions& options, const data::ParallelCorpus& corpus) {
  if (!options.guided) return std::nullopt;
  return std::optional<data::WordLinks>(std::in_place, options.guided_alignment, corpus);
}

Run::Run(const TrainOptions& options, Reporter& reporter, const std::atomic<bool>& stop, Clock clock)
    : options_(options),
      reporter_(reporter),
      stop_(stop),
      clock_(std::move(clock)),
      corpus_(options_.train[0], options_.train[1], invalid_utf8(options_)),
      validation_corpus_(options_.valid[0], options_.valid[1], invalid_utf8(options_)),
      links_(links_of(options_, corpus_)),
      output_(options_, identity(options_, {corpus_.fingerprint(), validation_corpus_.fingerprint(),
                                            links_ ? links_->fingerprint() : ""})),
      tokenizer_(output_.continues() ? text::Tokenizer::load(output_.path())
                                     : make_tokenizer(options_, corpus_.pairs(), reporter)),
      context_(static_cast<int>(options_.threads)),
      learner_(options_, affordable(options_, model_config(options_, tokenizer_), corpus_.pairs()), context_),
      stream_(corpus_, tokenizer_, batch_options(options_), links_ ? &*links_ : nullptr),
      validation_(validation_corpus_, tokenizer_, options_.batch_tokens,
                  options_.valid_metric == ValidMetric::bleu) {
  const auto& parameters = learner_.model().parameters();
  const size_t size = parameters.values().size();
  const double bytes = memory_estimate(options_, model_config(options_, tokenizer_), corpus_.pairs());
  reporter_.message(fmt::format(
      "{} parameters; about {:.0f} MB of memory; {} training and {} validation pairs; {} pieces; {} threads",
      parameters.count(), bytes / 0x1p20, corpus_.pairs(), validation_corpus_.pairs(),
      tokenizer_.target_vocabulary().size(), options_.threads));
  reporter_.message("it ends " + foreseen_end(options_) + "; Ctrl-C saves, and the same command goes on");
  if (const int64_t replaced = corpus_.replaced_lines() + validation_corpus_.replaced_lines(); replaced > 0)
    reporter_.message(fmt::format("invalid UTF-8 was replaced in {} lines", replaced));
  output_.require_room(StateFolder::bytes_needed(size, options_));
  take_up_or_begin();
}

void Run::take_up_or_begin() {
  if (!output_.continues()) {
    // Throws where nothing can be trained on, while what the folder holds is still there.
    stream_.next();
    stream_.seek({});
    output_.begin(tokenizer_);
  }
  if (!output_.state().exists()) return;
  output_.state().load(learner_.model().parameters(), learner_.optimiser(), progress_);
  stream_.seek(progress_.position);
  seconds_before_ = progress_.seconds;
}

Outcome Run::train() {
  started_ = last_save_ = clock_();
  if (const auto limit = reached_limit(options_, progress_, seconds())) {
    if (const auto scores = output_.final_scores(progress_.update)) {
      output_.end();
      const std::string reason = fmt::format("nothing to do: {} holds this run, which ended {}: {}",
                                             output_.path().string(), *limit, text_of(*scores));
      return {Outcome::Kind::complete, reason, progress_.update, scores->perplexity, scores->bleu};
    }
  }
  log_.emplace(output_.path() / "train.jsonl", progress_.log_lines);
  meter_.emplace(reporter_, *log_, clock_);
  if (output_.state().exists()) {
    std::string message =
        fmt::format("going on after update {} (epoch {})", progress_.update, epoch_number(progress_));
    if (options_.overwrite)
      message += fmt::format(" of the run that --overwrite began; to begin it again, remove {} first",
                             (output_.path() / "training").string());
    reporter_.message(message);
  }

  std::vector<data::TokenBatch> batches;
  while (true) {
    if (stopped()) {
      save();
      return interrupted();
    }
    if (progress_.validation_pending) {
      validate();
      continue;
    }
    if (const auto limit = reached_limit(options_, progress_, seconds())) return finish(*limit);
    const bool epoch_ended = !next_batches(batches);
    if (!batches.empty()) update(batches);
    if (epoch_ended) end_of_epoch();
    // No state between the end of an epoch and its validation, which would be lost, unless it says so.
    if (validation_due(epoch_ended)) {
      validate();
    } else if (save_due()) {
      save();
    }
  }
}

// The batches of one update; false when the epoch ended before all of them were there.
bool Run::next_batches(std::vector<data::TokenBatch>& batches) {
  batches.clear();
  while (static_cast<int64_t>(batches.size()) < options_.accumulate) {
    std::optional<data::TokenBatch> batch = stream_.next();
    if (!batch) epoch_batches_ = progress_.position.batch;
    progress_.position = stream_.position();
    if (!batch) return false;
    batches.push_back(std::move(*batch));
  }
  return true;
}

void Run::update(const std::vector<data::TokenBatch>& batches) {
  const Learner::Step step =
      learner_.update(batches, progress_.update + 1, progress_.update + progress_.skipped_steps);
  if (step.finite()) {
    progress_.bad_steps = 0;
    ++progress_.update;
    progress_.target_tokens += step.tokens;
    meter_->add(step);
    if (meter_->due()) report();
  } else {
    skip(step, batches);
  }
}

void Run::skip(const Learner::Step& step, const std::vector<data::TokenBatch>& batches) {
  ++progress_.bad_steps;
  ++progress_.skipped_steps;
  const bool is_nan = std::isnan(step.loss) || std::isnan(step.gradient_norm);
  const std::string what = fmt::format("after update {} the {} of {} (epoch {}) is {}", progress_.update,
                                       std::isfinite(step.loss) ? "gradient" : "loss", lines_of(batches),
                                       epoch_number(progress_), is_nan ? "NaN" : "infinite");
  require(progress_.bad_steps < kBadSteps,
          "{}, the {}th step in a row: training stops; {}; try a lower --learning-rate or a longer --warmup",
          what, kBadSteps,
          output_.state().exists() ? "the last good state and model stay as they are"
                                   : "there is no good state yet");
  reporter_.message(what + ": the step is skipped");
}

void Run::end_of_epoch() {
  const data::SkipCounts& skipped = stream_.skipped_last_epoch();
  if (progress_.position.epoch != 1 || skipped.total() == 0) return;  // the same in every epoch
  reporter_.message(fmt::format("left out of each epoch: {} empty, {} too long and {} uneven pairs",
                                skipped.empty, skipped.too_long, skipped.uneven));
  nlohmann::ordered_json entry;
  entry["update"] = progress_.update;
  entry["skipped_empty"] = skipped.empty;
  entry["skipped_too_long"] = skipped.too_long;
  entry["skipped_uneven"] = skipped.uneven;
  log_->write(entry);
}

bool Run::validation_due(bool epoch_ended) const {
  if (options_.validate_every == 0) return epoch_ended;
  return progress_.update % options_.validate_every == 0 && progress_.update > progress_.last_validation;
}

bool Run::save_due() const {
  if (options_.save_every == 0) return clock_() - last_save_ > kSaveSeconds;
  return progress_.update % options_.save_every == 0;
}

void Run::report() {
  meter_->report(progress_, learning_rate(options_, progress_.update), seconds(),
                 seconds_left(options_, progress_, seconds(), epoch_batches_));
}

// A state that went wrong must not replace a good one: continued, it could only go wrong again.
void Run::save() {
  report();
  if (progress_.bad_steps > 0 || !learner_.sound()) return;
  progress_.seconds = seconds();
  progress_.log_lines = log_->lines();
  output_.state().save(learner_.model().parameters(), learner_.optimiser(), progress_);
  last_save_ = clock_();
  meter_->forget_time();
}

bool Run::improves(const ValidationScores& scores, const Candidate& than) const {
  return better(scores, than, options_.valid_metric);
}

// Scores of a model with other numbers; nothing when the run was stopped meanwhile.
std::optional<ValidationScores> Run::judge(std::span<const float> values) {
  const std::span<float> own = learner_.model().parameters().values();
  const auto asked = [this] { return stopped(); };
  if (values.data() == own.data()) return validation_(context_, learner_.model(), asked);
  const std::vector<float> training(own.begin(), own.end());
  std::ranges::copy(values, own.begin());
  const auto scores = validation_(context_, learner_.model(), asked);
  std::ranges::copy(training, own.begin());
  return scores;
}

void Run::tell(const ValidationScores& scores, bool best) {
  reporter_.message(fmt::format("epoch {} update {}: validation {}{} ({})", epoch_number(progress_),
                                progress_.update, text_of(scores), best ? ", the best so far" : "",
                                duration_text(seconds())));
  nlohmann::ordered_json entry = log_entry(progress_);
  entry["valid_perplexity"] = scores.perplexity;
  if (scores.bleu >= 0) entry["valid_bleu"] = scores.bleu;
  entry["best"] = best;
  entry["seconds"] = seconds();
  log_->write(entry);
}

void Run::validate() {
  report();
  const std::span<const float> values = learner_.shown();
  const std::optional<ValidationScores> judged = judge(values);
  progress_.validation_pending = !judged;
  if (!judged) return;
  const ValidationScores& scores = *judged;
  const bool improved = improves(scores, {progress_.best_update, progress_.best});
  progress_.last_validation = progress_.update;
  progress_.bad_validations = improved ? 0 : progress_.bad_validations + 1;
  note_validated(progress_.validated, progress_.update, scores, options_.average);
  if (std::isfinite(scores.perplexity)) output_.state().keep(progress_.update, values);
  if (improved) {
    progress_.best_update = progress_.update;
    progress_.best = scores;
    progress_.seconds = seconds();
    models::save_model(output_.path(), learner_.model(), values);
    output_.write_summary({false, progress_, scores, corpus_.pairs()});
  }
  tell(scores, improved);
  save();
}

Outcome Run::interrupted() const {
  return {Outcome::Kind::interrupted,
          fmt::format("interrupted after update {}: the same command goes on", progress_.update),
          progress_.update, progress_.best.perplexity, progress_.best.bleu};
}

// Leaves the best model: that of the best validation, or the mean of the last ones where it is better still.
// The state is saved before, and what is judged here does not count for it: given a later limit, the run goes
// on as if it had never stopped.
Outcome Run::finish(const std::string& limit) {
  save();
  const StateFolder& state = output_.state();
  Candidate best{progress_.best_update, progress_.best};
  std::vector<int64_t> averaged = progress_.validated;
  if (progress_.update > progress_.last_validation) {  // a limit came between two validations
    const std::optional<ValidationScores> judged = judge(learner_.shown());
    if (!judged) return interrupted();
    const ValidationScores& scores = *judged;
    const bool improved = improves(scores, best);
    state.keep(progress_.update, learner_.shown());
    note_validated(averaged, progress_.update, scores, options_.average);
    if (improved) best = {progress_.update, scores};
    tell(scores, improved);
  }
  require(best.update >= 0,
          "training ended {}, but no validation gave a finite perplexity, so there is no model: try a lower "
          "--learning-rate or a longer --warmup",
          limit);
  const size_t size = learner_.shown().size();
  std::vector<float> values = state.mean({best.update}, size);
  if (averaged.size() > 1) {
    std::vector<float> mean = state.mean(averaged, size);
    const std::optional<ValidationScores> judged = judge(mean);
    if (!judged) return interrupted();
    const ValidationScores& scores = *judged;
    const bool improved = improves(scores, best);
    reporter_.message(fmt::format("the mean of the last {} models: validation {}: {}", averaged.size(),
                                  text_of(scores),
                                  improved ? "it is the model now" : "the best single one stays"));
    if (improved) {
      best.scores = scores;
      values = std::move(mean);
    }
  }
  models::save_model(output_.path(), learner_.model(), values);
  Progress summary = progress_;
  summary.best_update = best.update;
  summary.seconds = seconds();
  output_.write_summary({true, summary, best.scores, corpus_.pairs()});
  output_.end();
  state.tidy(progress_);
  return {Outcome::Kind::trained, fmt::format("stopped {}: validation {}", limit, text_of(best.scores)),
          progress_.update, best.scores.perplexity, best.scores.bleu};
}

}  // namespace

Outcome run(const Typed<TrainOptions>& options, Reporter& reporter, const std::atomic<bool>& stop,
            const Clock& clock) {
  try {
    return Run(resolve(options), reporter, stop, clock).train();
  } catch (const std::filesystem::filesystem_error& error) {
    fail("cannot read or change {}: {}", error.path1().string(), error.code().message());
  }
}

}  // namespace gloss::train
