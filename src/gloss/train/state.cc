#include "gloss/train/state.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "gloss/io/json_file.h"

namespace gloss::train {
namespace {

namespace fs = std::filesystem;

std::string progress_text(const Progress& p) {
  nlohmann::ordered_json j;
  j["update"] = p.update;
  j["position"] = p.position.text();
  j["target_tokens"] = p.target_tokens;
  j["seconds"] = p.seconds;
  j["log_lines"] = p.log_lines;
  j["last_validation"] = p.last_validation;
  j["validation_pending"] = p.validation_pending;
  j["bad_validations"] = p.bad_validations;
  j["best_update"] = p.best_update;
  j["best_perplexity"] = p.best.perplexity;
  j["best_bleu"] = p.best.bleu;
  j["bad_steps"] = p.bad_steps;
  j["skipped_steps"] = p.skipped_steps;
  j["validated"] = p.validated;
  return j.dump();
}

Progress parse_progress(const std::string& text, const std::string& name) {
  const io::JsonObject j(io::parse_json(text, name), name);
  constexpr auto count = io::JsonObject::kNotNegative;
  constexpr io::JsonObject::Range count_or_none{-1, count.high};
  Progress p;
  p.update = j.whole("update", count);
  p.position = data::StreamPosition::parse(j.text("position"));
  p.target_tokens = j.whole("target_tokens", count);
  p.seconds = j.number("seconds");
  p.log_lines = j.whole("log_lines", count);
  p.last_validation = j.whole("last_validation", count_or_none);
  p.validation_pending = j.flag("validation_pending", false);
  p.bad_validations = j.whole("bad_validations", count);
  p.best_update = j.whole("best_update", count_or_none);
  p.best = {j.number("best_perplexity"), j.number("best_bleu")};
  p.bad_steps = j.whole("bad_steps", count);
  p.skipped_steps = j.whole("skipped_steps", count);
  p.validated = j.wholes("validated", count);
  return p;
}

}  // namespace

bool StateFolder::exists() const {
  return fs::exists(state_path());
}

fs::path StateFolder::kept_path(int64_t update) const {
  return folder_ / fmt::format("parameters-{:08}.safetensors", update);
}

std::string StateFolder::advice() const {
  return fmt::format("remove the folder {} and give --overwrite to start anew", folder_.string());
}

io::SafetensorsFile StateFolder::opened(const fs::path& path) const {
  try {
    return io::SafetensorsFile::open(path);
  } catch (const Error& error) {
    fail("{}; where there is no copy of the file, {}", error.what(), advice());
  }
}

template <class Wanted>
void StateFolder::remove_kept_unless(Wanted wanted) const {
  for (const fs::directory_entry& entry : fs::directory_iterator(folder_)) {
    if (entry.path().filename().string().starts_with("parameters-") && !wanted(entry.path()))
      fs::remove(entry.path());
  }
}

void StateFolder::save(const autograd::ParameterSet<float>& parameters, const OptimiserState& optimiser,
                       const Progress& progress) const {
  io::SafetensorsWriter writer;
  const auto flat = [&](const char* name, std::span<const float> values) {
    writer.add<float>(name, {static_cast<int64_t>(values.size())}, values);
  };
  flat("parameters", parameters.values());
  flat("adam.first_moment", optimiser.first);
  flat("adam.second_moment", optimiser.second);
  if (!optimiser.average.empty()) flat("moving_average", optimiser.average);
  writer.set_metadata("progress", progress_text(progress));
  writer.write(state_path());
  tidy(progress);
}

void StateFolder::tidy(const Progress& progress) const {
  remove_kept_unless([&](const fs::path& path) {
    return path == kept_path(progress.best_update) ||
           std::ranges::any_of(progress.validated, [&](int64_t update) { return path == kept_path(update); });
  });
}

void StateFolder::load(autograd::ParameterSet<float>& parameters, OptimiserState& optimiser,
                       Progress& progress) const {
  const auto file = opened(state_path());
  const auto flat = [&](const char* name, std::span<float> values) {
    require(file.has(name) && file.info(name).count() == static_cast<int64_t>(values.size()),
            "{}: '{}' does not have the {} numbers of this model; {}", state_path().string(), name,
            values.size(), advice());
    file.read_into<float>(name, values);
  };
  const auto found = file.metadata().find("progress");
  require(found != file.metadata().end(), "{}: it does not say how far the run was; {}",
          state_path().string(), advice());
  progress = parse_progress(found->second, state_path().string());
  // Needed at the very end, which is no time to find that they are gone.
  std::vector<int64_t> kept = progress.validated;
  if (progress.best_update >= 0) kept.push_back(progress.best_update);
  for (const int64_t update : kept) opened(kept_path(update));
  flat("parameters", parameters.values());
  flat("adam.first_moment", optimiser.first);
  flat("adam.second_moment", optimiser.second);
  if (!optimiser.average.empty()) flat("moving_average", optimiser.average);
}

void StateFolder::clear() const {
  fs::remove(state_path());
  remove_kept_unless([](const fs::path&) { return false; });
}

void StateFolder::keep(int64_t update, std::span<const float> values) const {
  io::SafetensorsWriter writer;
  writer.add<float>("parameters", {static_cast<int64_t>(values.size())}, values);
  writer.write(kept_path(update));
}

std::vector<float> StateFolder::mean(const std::vector<int64_t>& updates, size_t size) const {
  std::vector<double> sum(size);
  std::vector<float> values(size);
  for (const int64_t update : updates) {
    const auto file = opened(kept_path(update));
    require(file.has("parameters") && file.info("parameters").count() == static_cast<int64_t>(size),
            "{} does not have the {} numbers of this model; {}", kept_path(update).string(), size, advice());
    file.read_into<float>("parameters", values);
    for (size_t i = 0; i < size; ++i) sum[i] += static_cast<double>(values[i]);
  }
  for (size_t i = 0; i < size; ++i)
    values[i] = static_cast<float>(sum[i] / static_cast<double>(updates.size()));
  return values;
}

uint64_t StateFolder::bytes_needed(size_t values, const TrainOptions& options) {
  const uint64_t state = options.ema > 0 ? 4 : 3;
  const auto kept = static_cast<uint64_t>(options.average + 1);
  const uint64_t model = 1, replacing = state;  // the new file beside the old one
  return values * sizeof(float) * (state + kept + model + replacing);
}

}  // namespace gloss::train
