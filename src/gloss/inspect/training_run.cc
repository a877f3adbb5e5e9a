#include "gloss/inspect/training_run.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "gloss/base/error.h"
#include "gloss/io/input_file.h"
#include "gloss/io/quote.h"

namespace gloss::inspect {
namespace {

using Json = nlohmann::json;

constexpr const char* kLogName = "train.jsonl";
constexpr uint64_t kLargestLog = uint64_t{1} << 30;  // some months of training

// Which field is which curve.
constexpr std::pair<const char*, Curve TrainingRun::*> kFields[] = {
    {"loss", &TrainingRun::loss},
    {"perplexity", &TrainingRun::perplexity},
    {"learning_rate", &TrainingRun::learning_rate},
    {"target_tokens_per_second", &TrainingRun::speed},
    {"valid_perplexity", &TrainingRun::valid_perplexity},
    {"valid_bleu", &TrainingRun::valid_bleu},
};

// The number under a key: null is NaN, which is how JSON writes it. Nothing for what is neither.
std::optional<double> number_of(const Json& value) {
  if (value.is_null()) return std::numeric_limits<double>::quiet_NaN();
  if (!value.is_number()) return std::nullopt;
  return value.get<double>();
}

// False for a line that is no report.
bool take(const Json& line, TrainingRun& run) {
  if (!line.is_object() || !line.contains("update") || !line["update"].is_number()) return false;
  const double update = line["update"].get<double>();
  const std::optional<double> seconds = number_of(line.value("seconds", Json()));
  if (!seconds) return false;
  for (const auto& [name, curve] : kFields) {
    if (line.contains(name) && !number_of(line[name])) return false;
  }
  for (const auto& [name, curve] : kFields) {
    if (!line.contains(name)) continue;
    (run.*curve).update.push_back(update);
    (run.*curve).seconds.push_back(*seconds);
    (run.*curve).value.push_back(*number_of(line[name]));
  }
  return true;
}

// Components of a path from its end: "run", "models".
std::vector<std::string> components(const std::filesystem::path& path) {
  std::filesystem::path whole = std::filesystem::absolute(path).lexically_normal();
  if (!whole.has_filename()) whole = whole.parent_path();
  if (whole.filename() == kLogName) whole = whole.parent_path();
  if (whole.extension() == ".jsonl") whole.replace_extension();
  std::vector<std::string> parts;
  for (; whole.has_filename(); whole = whole.parent_path()) parts.push_back(whole.filename().string());
  if (parts.empty()) parts.emplace_back("/");
  return parts;
}

}  // namespace

TrainingRun parse_training_log(std::string_view text, const std::string& file) {
  TrainingRun run;
  int64_t reports = 0;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    if (take(Json::parse(line, nullptr, false), run)) {
      ++reports;
    } else {
      ++run.damaged_lines;
    }
  }
  require(reports + run.damaged_lines > 0, "{} is empty: the run has not reported anything yet", file);
  require(reports > 0,
          "{} holds no line of a training's log: name the --output folder of gloss train, or its {}", file,
          kLogName);
  return run;
}

TrainingRun read_training_run(const std::filesystem::path& path) {
  require(io::exists(path), "there is no run {}: name the --output folder of gloss train, or its {}",
          io::shown(path), kLogName);
  std::filesystem::path file = path;
  if (io::is_folder(path)) {
    file /= kLogName;
    require(io::exists(file), "{} holds no {}: name the --output folder of gloss train", io::shown(path),
            kLogName);
  }
  return parse_training_log(io::read_whole_file(file, kLargestLog), file.string());
}

std::vector<std::string> names_apart(const std::vector<std::filesystem::path>& paths) {
  std::vector<std::vector<std::string>> parts(paths.size());
  std::ranges::transform(paths, parts.begin(), components);
  std::vector<size_t> used(paths.size(), 1);
  const auto name_of = [&](size_t i) {
    std::string name = parts[i].front();
    for (size_t part = 1; part < used[i]; ++part) name.insert(0, parts[i][part] + "/");
    return name;
  };
  while (true) {
    std::vector<std::string> names(paths.size());
    for (size_t i = 0; i < paths.size(); ++i) names[i] = name_of(i);
    bool longer = false;
    for (size_t i = 0; i < paths.size(); ++i) {
      if (std::ranges::count(names, names[i]) == 1 || used[i] == parts[i].size()) continue;
      ++used[i];
      longer = true;
    }
    if (!longer) return names;
  }
}

}  // namespace gloss::inspect
