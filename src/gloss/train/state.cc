#include "gloss/train/state.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "gloss/io/json_file.h"
#include "gloss/io/safetensors.h"

namespace gloss::train {
namespace {

namespace fs = std::filesystem;

std::string progress_text(const Progress& p) {
  nlohmann::ordered_json j;
  j["update"] = p.update;
  j["position"] = p.position.text();
  j["target_tokens"] = p.target_tokens;
  j["seconds"] = p.seconds;
  j["validations"] = p.validations;
  j["last_validation"] = p.last_validation;
  j["bad_validations"] = p.bad_validations;
  j["best_metric"] = p.best_metric;
  j["best_update"] = p.best_update;
  j["bad_batches"] = p.bad_batches;
  j["skipped_batches"] = p.skipped_batches;
  j["validated"] = p.validated;
  return j.dump();
}

Progress parse_progress(const std::string& text, const std::string& name) {
  const io::JsonObject j(io::parse_json(text, name), name);
  constexpr auto count = io::JsonObject::kNotNegative;
  Progress p;
  p.update = j.whole("update", count);
  p.position = data::StreamPosition::parse(j.text("position"));
  p.target_tokens = j.whole("target_tokens", count);
  p.seconds = j.number("seconds");
  p.validations = j.whole("validations", count);
  p.last_validation = j.whole("last_validation", count);
  p.bad_validations = j.whole("bad_validations", count);
  p.best_metric = j.number("best_metric");
  p.best_update = j.whole("best_update", count);
  p.bad_batches = j.whole("bad_batches", count);
  p.skipped_batches = j.whole("skipped_batches", count);
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

  for (const fs::directory_entry& entry : fs::directory_iterator(folder_)) {
    if (!entry.path().filename().string().starts_with("parameters-")) continue;
    const bool wanted = std::ranges::any_of(
        progress.validated, [&](int64_t update) { return kept_path(update) == entry.path(); });
    if (!wanted) fs::remove(entry.path());
  }
}

void StateFolder::load(autograd::ParameterSet<float>& parameters, OptimiserState& optimiser,
                       Progress& progress) const {
  const auto file = io::SafetensorsFile::open(state_path());
  const auto flat = [&](const char* name, std::span<float> values) {
    require(file.has(name) && file.info(name).count() == static_cast<int64_t>(values.size()),
            "{}: '{}' does not have the {} numbers of this model; start anew with --overwrite",
            state_path().string(), name, values.size());
    file.read_into<float>(name, values);
  };
  flat("parameters", parameters.values());
  flat("adam.first_moment", optimiser.first);
  flat("adam.second_moment", optimiser.second);
  if (!optimiser.average.empty()) flat("moving_average", optimiser.average);
  const auto found = file.metadata().find("progress");
  require(found != file.metadata().end(),
          "{}: it does not say how far the run was; start anew with --overwrite", state_path().string());
  progress = parse_progress(found->second, state_path().string());
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
    const auto file = io::SafetensorsFile::open(kept_path(update));
    file.read_into<float>("parameters", values);
    for (size_t i = 0; i < size; ++i) sum[i] += values[i];
  }
  for (size_t i = 0; i < size; ++i)
    values[i] = static_cast<float>(sum[i] / static_cast<double>(updates.size()));
  return values;
}

uint64_t StateFolder::bytes_needed(size_t values, int64_t kept) const {
  // State (twice while it is replaced), kept parameters, and the model itself.
  return values * sizeof(float) * static_cast<uint64_t>(2 * 4 + kept + 2);
}

}  // namespace gloss::train
