#include "gloss/train/limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

namespace gloss::train {

std::optional<std::string> reached_limit(const TrainOptions& options, const Progress& progress,
                                         double seconds) {
  if (options.max_updates > 0 && progress.update >= options.max_updates)
    return fmt::format("after {} updates (--max-updates)", progress.update);
  if (options.max_epochs > 0 && progress.position.epoch >= options.max_epochs)
    return fmt::format("after {} epochs (--max-epochs)", progress.position.epoch);
  if (options.minutes > 0 && seconds >= 60 * options.minutes)
    return fmt::format("after {:g} minutes (--minutes)", options.minutes);
  if (options.patience > 0 && progress.bad_validations >= options.patience)
    return fmt::format("after {} validations without progress (--patience)", progress.bad_validations);
  return std::nullopt;
}

std::string foreseen_end(const TrainOptions& options) {
  std::vector<std::string> limits;
  if (options.max_updates > 0)
    limits.push_back(fmt::format("{} updates (--max-updates)", options.max_updates));
  if (options.max_epochs > 0) limits.push_back(fmt::format("{} epochs (--max-epochs)", options.max_epochs));
  if (options.minutes > 0) limits.push_back(fmt::format("{:g} minutes (--minutes)", options.minutes));
  if (options.patience > 0)
    limits.push_back(fmt::format("{} validations without progress (--patience)", options.patience));
  if (limits.empty()) return "when it is stopped: no limit is set";
  return fmt::format("after {}{}", fmt::join(limits, " or "),
                     limits.size() > 1 ? ", whichever is first" : "");
}

std::optional<double> seconds_left(const TrainOptions& options, const Progress& progress, double seconds,
                                   int64_t epoch_batches) {
  std::optional<double> left;
  const auto consider = [&](double candidate) {
    candidate = std::max(candidate, 0.0);
    left = left ? std::min(*left, candidate) : candidate;
  };
  if (options.minutes > 0) consider(60 * options.minutes - seconds);
  if (options.max_updates > 0 && progress.update > 0) {
    const auto done = static_cast<double>(progress.update), all = static_cast<double>(options.max_updates);
    consider(seconds * (all / done - 1));
  }
  if (options.max_epochs > 0 && epoch_batches > 0) {
    const double done = static_cast<double>(progress.position.epoch) +
                        static_cast<double>(progress.position.batch) / static_cast<double>(epoch_batches);
    if (done > 0) consider(seconds * (static_cast<double>(options.max_epochs) / done - 1));
  }
  return left;
}

std::string duration_text(double seconds) {
  const auto total = static_cast<int64_t>(seconds);
  if (total >= 3600) return fmt::format("{}h{:02}m", total / 3600, total / 60 % 60);
  return fmt::format("{}m{:02}s", total / 60, total % 60);
}

}  // namespace gloss::train
