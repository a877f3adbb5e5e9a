#include "gloss/train/run.h"

#include <algorithm>
#include <cmath>

#include "gloss/io/atomic_file.h"
#include "gloss/io/json_file.h"
#include "gloss/kernels/adam.h"
#include "gloss/models/model_folder.h"
#include "gloss/text/training.h"
#include "gloss/train/schedule.h"
#include "gloss/train/setup.h"

namespace gloss::train {

namespace fs = std::filesystem;

namespace {

constexpr int64_t kBadBatches = 10;  // in a row, before training gives up
constexpr double kSaveSeconds = 300, kReportSeconds = 2;

text::InvalidUtf8 invalid(const TrainOptions& options) {
  return options.replace_invalid ? text::InvalidUtf8::replace : text::InvalidUtf8::fail;
}

std::string duration_text(double seconds) {
  const auto total = static_cast<int64_t>(seconds);
  if (total >= 3600) return fmt::format("{}h{:02}m", total / 3600, total / 60 % 60);
  return fmt::format("{}m{:02}s", total / 60, total % 60);
}

// The largest finite-or-not check that costs nothing: the norm of all gradients.
double norm_of(ThreadPool& pool, std::span<const float> gradients) {
  return std::sqrt(kernels::sum_of_squares<float>(pool, gradients));
}

}  // namespace

Run::Run(TrainOptions options, Reporter& reporter, const std::atomic<bool>& stop)
    : options_(std::move(options)),
      reporter_(reporter),
      stop_(stop),
      folder_(options_.output),
      context_(static_cast<int>(options_.threads)),
      corpus_(options_.train[0], options_.train[1], invalid(options_)),
      validation_corpus_(options_.valid[0], options_.valid[1], invalid(options_)),
      state_folder_(folder_ / "training") {
  identity_ = identity(options_, corpus_.fingerprint(), validation_corpus_.fingerprint());
  open_output();
  start_or_continue();
}

// Checks that the folder is this run's or free, and makes the tokenizer.
void Run::open_output() {
  io::writable_folder(folder_);
  const fs::path identity_path = folder_ / "training" / "run.json";
  const bool has_run = fs::exists(identity_path);
  if (!options_.overwrite) {
    if (has_run) {
      const nlohmann::json saved = io::read_json(identity_path), wanted = nlohmann::json::parse(identity_);
      for (const auto& [key, value] : wanted.items()) {
        if (saved.contains(key) && saved[key] == value) continue;
        fail(
            "{} holds a run with {} = {}, this command says {}: give the same command to go on, another "
            "--output, or "
            "--overwrite to start anew",
            folder_.string(), key, saved.contains(key) ? saved[key].dump() : "nothing", value.dump());
      }
    } else {
      require(!fs::exists(folder_ / "config.json"),
              "{} holds a model already: give another --output, or --overwrite to replace it",
              folder_.string());
    }
  }
  if (has_run && !options_.overwrite) {
    tokenizer_ = text::Tokenizer::load(folder_);
    return;
  }
  reporter_.message(
      fmt::format("making a vocabulary of {} pieces from {} pairs", options_.vocab_size, corpus_.pairs()));
  text::TokenizerOptions wanted;
  wanted.segmenter.kind = options_.segmentation;
  wanted.segmenter.character_coverage = options_.character_coverage;
  wanted.segmenter.seed = static_cast<uint64_t>(options_.seed);
  wanted.segmenter.invalid = invalid(options_);
  wanted.vocabulary_size = static_cast<int32_t>(options_.vocab_size);
  wanted.joint = options_.joint;
  text::TrainedTokenizer made = text::train_tokenizer(options_.train[0], options_.train[1], wanted);
  for (const std::string& message : made.messages) reporter_.message(message);
  tokenizer_ = std::move(made.tokenizer);
}

void Run::start_or_continue() {
  const models::TransformerConfig config = model_config(options_, *tokenizer_);
  model_ = std::make_unique<models::TransformerModel>(config, context_.arena);
  auto& parameters = model_->parameters();
  parameters.allocate_gradients(context_.arena);
  const size_t size = parameters.values().size();
  reporter_.message(
      fmt::format("{} parameters; about {} MB of memory; {} training and {} validation pairs; {} threads",
                  parameters.count(), memory_estimate(options_, config, size) >> 20, corpus_.pairs(),
                  validation_corpus_.pairs(), options_.threads));
  optimiser_.first.assign(size, 0);
  optimiser_.second.assign(size, 0);
  if (options_.ema > 0) optimiser_.average.assign(size, 0);

  data::BatchOptions batches;
  batches.target_tokens = options_.batch_tokens;
  batches.max_length = options_.max_length;
  batches.seed = static_cast<uint64_t>(options_.seed);
  stream_ = std::make_unique<data::BatchStream>(corpus_, *tokenizer_, batches);
  validation_ = std::make_unique<Validation>(validation_corpus_, *tokenizer_, options_.batch_tokens,
                                             options_.valid_metric == ValidMetric::bleu);

  const fs::path training = folder_ / "training";
  io::writable_folder(training, state_folder_.bytes_needed(size, options_.average));
  if (state_folder_.exists() && !options_.overwrite) {
    state_folder_.load(parameters, optimiser_, progress_);
    stream_->seek(progress_.position);
    seconds_before_ = progress_.seconds;
    reporter_.message(
        fmt::format("going on after update {} (epoch {})", progress_.update, progress_.position.epoch + 1));
  } else {
    // The old run goes before the new one begins, its model last of all.
    for (const char* file : {"state.safetensors", "run.json"}) fs::remove(training / file);
    model_->initialise(static_cast<uint64_t>(options_.seed));
    std::copy_n(parameters.values().data(), optimiser_.average.size(), optimiser_.average.data());
    tokenizer_->save(folder_);
    io::write_file_atomically(training / "run.json", identity_ + "\n");
  }
  log_ = std::make_unique<TrainLog>(folder_ / "train.jsonl", progress_.update);
}

double Run::seconds() const {
  return seconds_before_ + std::chrono::duration<double>(Clock::now() - started_).count();
}

std::optional<std::string> Run::reached_limit() const {
  const int64_t epochs = progress_.position.epoch;
  if (options_.max_updates > 0 && progress_.update >= options_.max_updates) {
    return fmt::format("{} updates (--max-updates)", progress_.update);
  }
  if (options_.max_epochs > 0 && epochs >= options_.max_epochs)
    return fmt::format("{} epochs (--max-epochs)", epochs);
  if (options_.minutes > 0 && seconds() >= 60 * options_.minutes) {
    return fmt::format("{:g} minutes (--minutes)", options_.minutes);
  }
  if (options_.patience > 0 && progress_.bad_validations >= options_.patience) {
    return fmt::format("{} validations without progress (--patience)", progress_.bad_validations);
  }
  return {};
}

Outcome Run::train() {
  started_ = last_report_ = last_save_ = Clock::now();
  Outcome outcome;
  std::vector<data::TokenBatch> batches;
  if (reached_limit()) {
    outcome.kind = Outcome::Kind::complete;
    outcome.reason = *reached_limit();
    finish(outcome);
    return outcome;
  }
  while (true) {
    if (stop_.load(std::memory_order_relaxed)) {
      save_state();
      outcome.kind = Outcome::Kind::interrupted;
      outcome.reason = fmt::format("update {}: the same command goes on from here", progress_.update);
      outcome.updates = progress_.update;
      return outcome;
    }
    const bool epoch_ended = !collect(batches);
    if (!batches.empty()) {
      update(batches);
      const bool time_to_save =
          std::chrono::duration<double>(Clock::now() - last_save_).count() > kSaveSeconds;
      const bool due = options_.save_every > 0 ? progress_.update % options_.save_every == 0 : time_to_save;
      if (options_.validate_every > 0 && progress_.update % options_.validate_every == 0) {
        validate(Keep::yes);
      } else if (due) {
        save_state();
      }
    }
    if (epoch_ended) {
      const data::SkipCounts& skipped = stream_->skipped_last_epoch();
      if (skipped.total() > 0 && progress_.position.epoch == 1) {
        reporter_.message(fmt::format("left out of each epoch: {} empty, {} too long and {} uneven pairs",
                                      skipped.empty, skipped.too_long, skipped.uneven));
      }
      if (options_.validate_every == 0) validate(Keep::yes);
    }
    if (const auto limit = reached_limit()) {
      outcome.reason = *limit;
      break;
    }
  }
  finish(outcome);
  return outcome;
}

bool Run::collect(std::vector<data::TokenBatch>& batches) {
  batches.clear();
  while (static_cast<int64_t>(batches.size()) < options_.accumulate) {
    std::optional<data::TokenBatch> batch = stream_->next();
    progress_.position = stream_->position();
    if (!batch) return false;
    batches.push_back(std::move(*batch));
  }
  return true;
}

void Run::update(const std::vector<data::TokenBatch>& batches) {
  auto& parameters = model_->parameters();
  std::ranges::fill(parameters.gradients(), 0.0f);
  int64_t tokens = 0;
  for (const data::TokenBatch& batch : batches) tokens += batch.target.offsets.total();
  const RandomKey key = RandomKey(static_cast<uint64_t>(options_.seed)).with("dropout");
  double loss = 0, nll = 0;
  for (size_t i = 0; i < batches.size(); ++i) {
    // Skipped updates do not count, so the position in the text keys the masks of what follows.
    const RandomKey batch_key =
        key.with(static_cast<uint64_t>(progress_.update + progress_.skipped_batches)).with(i);
    autograd::Tape<float> tape(context_, autograd::Tape<float>::Mode::train, batch_key);
    const auto result = model_->loss(tape, batches[i].source, batches[i].target, options_.label_smoothing,
                                     1.0 / static_cast<double>(tokens));
    const Tensor<float> one(context_.arena, {1});
    one.fill(1);
    tape.backward(result.sum, one);
    loss += result.smoothed;
    nll += result.negative_log_likelihood;
  }
  const double norm = norm_of(context_.pool, std::as_const(parameters).gradients());
  if (!std::isfinite(norm) || !std::isfinite(loss)) {
    ++progress_.bad_batches;
    ++progress_.skipped_batches;
    const auto& lines = batches.front().line_numbers;
    const std::string what =
        fmt::format("the batch of lines {}{} after update {} gave {}", lines.empty() ? 0 : lines.front(),
                    lines.size() > 1 ? fmt::format(" and {} others", lines.size() - 1) : "", progress_.update,
                    std::isnan(loss) || std::isnan(norm) ? "NaN" : "infinity");
    require(progress_.bad_batches < kBadBatches,
            "{}, the tenth in a row: training stops. The last state is intact in {}; try a lower "
            "--learning-rate or a "
            "longer --warmup",
            what, (folder_ / "training").string());
    reporter_.message(what + ": skipped");
    return;
  }
  progress_.bad_batches = 0;
  ++progress_.update;
  kernels::Adam adam;
  adam.learning_rate = learning_rate(options_, options_.d_model, progress_.update);
  adam.beta1 = options_.adam_beta1;
  adam.beta2 = options_.adam_beta2;
  adam.epsilon = options_.adam_epsilon;
  adam.step = progress_.update;
  adam.gradient_scale = options_.clip_norm > 0 && norm > options_.clip_norm ? options_.clip_norm / norm : 1;
  kernels::adam<float>(context_.pool, adam, parameters.values(), std::as_const(parameters).gradients(),
                       optimiser_.first, optimiser_.second);
  if (options_.ema > 0) {
    kernels::moving_average<float>(context_.pool, options_.ema, std::as_const(parameters).values(),
                                   optimiser_.average);
  }
  progress_.target_tokens += tokens;
  loss_sum_ += loss;
  nll_sum_ += nll;
  tokens_sum_ += tokens;
  if (std::chrono::duration<double>(Clock::now() - last_report_).count() >= kReportSeconds) report_progress();
}

void Run::report_progress() {
  const double elapsed = std::chrono::duration<double>(Clock::now() - last_report_).count();
  if (tokens_sum_ == 0) return;
  const auto n = static_cast<double>(tokens_sum_);
  const double speed = n / elapsed, now = seconds();
  // Time left by the nearest limit that can be foreseen.
  double left = -1;
  const auto consider = [&](double remaining) {
    if (remaining >= 0 && (left < 0 || remaining < left)) left = remaining;
  };
  const double a_update = progress_.update > 0 ? now / static_cast<double>(progress_.update) : 0;
  if (options_.minutes > 0) consider(60 * options_.minutes - now);
  if (options_.max_updates > 0)
    consider(a_update * static_cast<double>(options_.max_updates - progress_.update));
  reporter_.progress(fmt::format("epoch {} update {} loss {:.4f} perplexity {:.2f} {:.0f} target tokens/s{}",
                                 progress_.position.epoch + 1, progress_.update, loss_sum_ / n,
                                 std::exp(nll_sum_ / n), speed,
                                 left >= 0 ? ", " + duration_text(left) + " left" : ""));
  nlohmann::ordered_json entry;
  entry["update"] = progress_.update;
  entry["epoch"] = progress_.position.epoch + 1;
  entry["loss"] = loss_sum_ / n;
  entry["perplexity"] = std::exp(nll_sum_ / n);
  entry["learning_rate"] = learning_rate(options_, options_.d_model, progress_.update);
  entry["target_tokens_per_second"] = speed;
  entry["seconds"] = now;
  log_->write(entry);
  loss_sum_ = nll_sum_ = 0;
  tokens_sum_ = 0;
  last_report_ = Clock::now();
}

std::span<const float> Run::shown_values() const {
  return optimiser_.average.empty() ? std::span<const float>(model_->parameters().values())
                                    : std::span<const float>(optimiser_.average);
}

double Run::metric(const ValidationScores& scores) const {
  return options_.valid_metric == ValidMetric::bleu ? scores.bleu : scores.perplexity;
}

bool Run::better(const ValidationScores& scores) const {
  if (progress_.best_update == 0) return true;
  return options_.valid_metric == ValidMetric::bleu ? scores.bleu > progress_.best_metric
                                                    : scores.perplexity < progress_.best_metric;
}

ValidationScores Run::judge(std::span<const float> values) {
  const std::span<float> own = model_->parameters().values();
  if (values.data() == own.data()) return (*validation_)(context_, *model_);
  const std::vector<float> training(own.begin(), own.end());
  std::ranges::copy(values, own.begin());
  const ValidationScores scores = (*validation_)(context_, *model_);
  std::ranges::copy(training, own.begin());
  return scores;
}

void Run::validate(Keep keep) {
  report_progress();
  const std::span<const float> values = shown_values();
  const ValidationScores scores = judge(values);
  ++progress_.validations;
  progress_.last_validation = progress_.update;
  const bool improved = better(scores);
  if (improved) {
    progress_.best_metric = metric(scores);
    progress_.best_update = progress_.update;
    progress_.bad_validations = 0;
    best_scores_ = scores;
    models::save_model(folder_, *model_, values);
    write_summary(scores, false);
  } else {
    ++progress_.bad_validations;
  }
  if (options_.average > 1) {
    state_folder_.keep(progress_.update, values);
    progress_.validated.push_back(progress_.update);
    const auto surplus = static_cast<int64_t>(progress_.validated.size()) - options_.average;
    if (surplus > 0)
      progress_.validated.erase(progress_.validated.begin(), progress_.validated.begin() + surplus);
  }
  const std::string bleu = scores.bleu >= 0 ? fmt::format(", BLEU {:.2f}", scores.bleu) : "";
  reporter_.message(fmt::format("epoch {} update {}: validation perplexity {:.3f}{}{} ({})",
                                progress_.position.epoch + (options_.validate_every > 0 ? 1 : 0),
                                progress_.update, scores.perplexity, bleu,
                                improved ? ", the best so far" : "", duration_text(seconds())));
  nlohmann::ordered_json entry;
  entry["update"] = progress_.update;
  entry["valid_perplexity"] = scores.perplexity;
  if (scores.bleu >= 0) entry["valid_bleu"] = scores.bleu;
  entry["best"] = improved;
  entry["seconds"] = seconds();
  log_->write(entry);
  if (keep == Keep::yes) save_state();
  last_report_ = Clock::now();
}

void Run::save_state() {
  progress_.seconds = seconds();
  state_folder_.save(model_->parameters(), optimiser_, progress_);
  last_save_ = Clock::now();
}

void Run::write_summary(const ValidationScores& scores, bool complete) {
  nlohmann::ordered_json j;
  j["program"] = "gloss";
  j["complete"] = complete;
  j["updates"] = progress_.update;
  j["epochs"] = progress_.position.epoch;
  j["target_tokens"] = progress_.target_tokens;
  j["minutes"] = seconds() / 60;
  j["valid_perplexity"] = scores.perplexity;
  if (scores.bleu >= 0) j["valid_bleu"] = scores.bleu;
  j["best_update"] = progress_.best_update;
  j["training_pairs"] = corpus_.pairs();
  j["training_text"] = corpus_.fingerprint();
  j["options"] = nlohmann::ordered_json::parse(identity_);
  io::write_json(folder_ / "gloss.json", j);
}

// The model is the mean of the last kept ones where that is better than the best single one.
void Run::finish(Outcome& outcome) {
  outcome.updates = progress_.update;
  if (outcome.kind == Outcome::Kind::complete && fs::exists(folder_ / "gloss.json")) {
    const auto summary = io::JsonObject::read(folder_ / "gloss.json");
    if (summary.flag("complete", false) && summary.whole("updates", {}) == progress_.update) {
      outcome.perplexity = summary.number("valid_perplexity");
      outcome.bleu = summary.number("valid_bleu", -1);
      return;
    }
  }
  outcome.kind = Outcome::Kind::trained;
  // A limit may come between validations: the newest parameters are judged too, for the model only. The state
  // stays as a run with a later limit would have it.
  save_state();
  const Progress before = progress_;
  if (progress_.update > progress_.last_validation) validate(Keep::no);
  if (best_scores_.perplexity == 0 && fs::exists(folder_ / "gloss.json")) {
    const auto summary = io::JsonObject::read(folder_ / "gloss.json");
    best_scores_ = {summary.number("valid_perplexity"), summary.number("valid_bleu", -1)};
  }
  if (progress_.validated.size() > 1) {
    const std::vector<float> mean =
        state_folder_.mean(progress_.validated, model_->parameters().values().size());
    const ValidationScores scores = judge(mean);
    const bool improved = better(scores);
    reporter_.message(fmt::format("the mean of the last {} models: validation perplexity {:.3f}{}{}",
                                  progress_.validated.size(), scores.perplexity,
                                  scores.bleu >= 0 ? fmt::format(", BLEU {:.2f}", scores.bleu) : "",
                                  improved ? "; it is the model now" : "; the best single one stays"));
    if (improved) {
      best_scores_ = scores;
      models::save_model(folder_, *model_, mean);
    }
  }
  write_summary(best_scores_, true);
  progress_ = before;
  outcome.perplexity = best_scores_.perplexity;
  outcome.bleu = best_scores_.bleu;
}

Outcome run(const Typed<TrainOptions>& options, Reporter& reporter, const std::atomic<bool>& stop) {
  return Run(resolve(options), reporter, stop).train();
}

}  // namespace gloss::train
