#include "gloss/train/output.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "gloss/io/atomic_file.h"
#include "gloss/io/json_file.h"
#include "gloss/io/options_json.h"
#include "gloss/train/setup.h"

namespace gloss::train {

namespace fs = std::filesystem;

namespace {

std::string option_name(std::string key) {
  std::ranges::replace(key, '_', '-');
  return "--" + key;
}

std::string value_text(const nlohmann::json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

constexpr const char* kChoices =
    "give the options of that run to go on with it, another --output, or --overwrite to start anew";

// What a run writes beside config.json and the folder of its state.
constexpr const char* kFiles[] = {"model.safetensors",    "generation_config.json",
                                  "gloss.json",           "train.jsonl",
                                  "source.spm",           "target.spm",
                                  "vocab.json",           "target_vocab.json",
                                  "tokenizer_config.json"};

// In run.json, besides what identity() says: --overwrite began the run, which has not ended.
constexpr const char* kOverwriting = "overwriting";

}  // namespace

FolderLock::FolderLock(const fs::path& file, const fs::path& folder)
    : descriptor_(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666)) {
  // A file system without locks is no reason not to train.
  if (descriptor_ < 0 || ::flock(descriptor_, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return;
  ::close(descriptor_);
  fail("another process is training into {}: wait for it to end, or give another --output", folder.string());
}

FolderLock::~FolderLock() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

OutputFolder::OutputFolder(const TrainOptions& options, std::string identity)
    : path_(options.output), options_(options), identity_(std::move(identity)), state_(training()) {
  io::writable_folder(path_);
  if (!options.overwrite && !fs::exists(run_file())) require_no_foreign_model();
  io::writable_folder(training());
  lock_.emplace(training() / "lock", path_);
  // Only now: another process may have begun a run before the lock.
  if (options.overwrite) {
    continues_ = is_overwriting();
  } else if (fs::exists(run_file())) {
    require_same_run();
    continues_ = true;
  } else {
    require_no_foreign_model();
  }
}

// The first thing that makes the run of run.json another one, in words; nothing when it is this one.
std::optional<std::string> OutputFolder::difference(const nlohmann::json& saved) const {
  const auto wanted = nlohmann::ordered_json::parse(identity_),
             built_in = io::options_to_json(TrainOptions());
  for (const auto& [key, value] : wanted.items()) {
    const nlohmann::json now(value);
    nlohmann::json before;
    if (saved.contains(key)) {
      before = saved.at(key);
    } else if (built_in.contains(key)) {  // an option newer than the run was at its built-in value then
      before = built_in.at(key);
    } else if (key == kWordLinks) {
      before = "";
    }
    if (before == now) continue;
    if (key == kWordLinks)
      return fmt::format("{} holds a run with other word links (--guided-alignment) than this command's",
                         path_.string());
    if (key.ends_with("_text"))
      return fmt::format("{} holds a run on another {} text than this command names (the lines differ)",
                         path_.string(), key.substr(0, key.find('_')));
    return fmt::format("{} holds a run with {} {}, and this command says {}", path_.string(),
                       option_name(key), value_text(before), value_text(now));
  }
  for (const auto& [key, value] : saved.items()) {
    if (!wanted.contains(key) && !built_in.contains(key) && key != kOverwriting)
      return fmt::format("{} holds a run with {} {}, an option that this version of gloss does not have",
                         path_.string(), option_name(key), value_text(value));
  }
  return std::nullopt;
}

bool OutputFolder::is_overwriting() const {
  if (!fs::exists(run_file())) return false;
  try {
    const auto saved = io::JsonObject::read(run_file());
    return saved.flag(kOverwriting, false) && !difference(saved.json());
  } catch (const Error&) {
    return false;  // what cannot be read is replaced like anything else
  }
}

void OutputFolder::require_same_run() const {
  nlohmann::json saved;
  try {
    saved = io::JsonObject::read(run_file()).json();
  } catch (const Error& error) {
    fail("{}; or give --overwrite to start anew", error.what());
  }
  if (const auto found = difference(saved)) fail("{}: {}", *found, kChoices);
}

void OutputFolder::require_no_foreign_model() const {
  require(!fs::exists(path_ / "config.json"),
          "{} holds a model already: give another --output, or --overwrite to replace it", path_.string());
  if (fs::exists(begun_file())) return;  // a run that died while it began left them
  for (const char* file : kFiles) {
    require(!fs::exists(path_ / file),
            "{} holds a file {} that no run put there: give another --output, or --overwrite to replace it",
            path_.string(), file);
  }
}

void OutputFolder::begin(const text::Tokenizer& tokenizer) const {
  io::write_file_atomically(begun_file(), "");
  fs::remove(path_ / "config.json");
  state_.clear();
  for (const char* file : kFiles) fs::remove(path_ / file);
  fs::remove(run_file());
  tokenizer.save(path_);
  auto run = nlohmann::ordered_json::parse(identity_);
  if (options_.overwrite) run[kOverwriting] = true;
  io::write_json(run_file(), run);
  fs::remove(begun_file());
}

void OutputFolder::end() const {
  if (io::JsonObject::read(run_file()).flag(kOverwriting, false))
    io::write_json(run_file(), nlohmann::ordered_json::parse(identity_));
}

void OutputFolder::require_room(uint64_t bytes) const {
  io::writable_folder(path_, bytes);
}

void OutputFolder::write_summary(const Summary& summary) const {
  const Progress& progress = summary.progress;
  nlohmann::ordered_json j;
  j["program"] = "gloss";
  j["complete"] = summary.complete;
  j["updates"] = progress.update;
  j["epochs"] = progress.position.epoch;
  j["target_tokens"] = progress.target_tokens;
  j["minutes"] = progress.seconds / 60;
  j["valid_perplexity"] = summary.scores.perplexity;
  if (summary.scores.bleu >= 0) j["valid_bleu"] = summary.scores.bleu;
  j["best_update"] = progress.best_update;
  j["skipped_steps"] = progress.skipped_steps;
  j["training_pairs"] = summary.training_pairs;
  j["options"] = io::options_to_json(options_);
  j["options"].update(nlohmann::ordered_json::parse(identity_));  // and the fingerprints of the texts
  io::write_json(path_ / "gloss.json", j);
}

std::optional<ValidationScores> OutputFolder::final_scores(int64_t update) const {
  if (!fs::exists(path_ / "config.json") || !fs::exists(path_ / "gloss.json")) return std::nullopt;
  const auto summary = io::JsonObject::read(path_ / "gloss.json");
  if (!summary.flag("complete", false) || summary.whole("updates", {}, -1) != update) return std::nullopt;
  return ValidationScores{summary.number("valid_perplexity", 0), summary.number("valid_bleu", -1)};
}

}  // namespace gloss::train
