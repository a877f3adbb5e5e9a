#include "gloss/train/meter.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "gloss/train/limits.h"

namespace gloss::train {

int64_t epoch_number(const Progress& progress) {
  return std::max<int64_t>(1, progress.position.epoch + (progress.position.batch > 0 ? 1 : 0));
}

nlohmann::ordered_json log_entry(const Progress& progress) {
  nlohmann::ordered_json entry;
  entry["update"] = progress.update;
  entry["epoch"] = epoch_number(progress);
  entry["target_tokens"] = progress.target_tokens;
  return entry;
}

void Meter::add(const Learner::Step& step) {
  sum_.loss += step.loss;
  sum_.negative_log_likelihood += step.negative_log_likelihood;
  sum_.tokens += step.tokens;
  sum_.guided += step.guided;
  sum_.guided_tokens += step.guided_tokens;
}

bool Meter::due() const {
  constexpr double kSeconds = 2;
  return elapsed() >= kSeconds;
}

void Meter::report(const Progress& progress, double rate, double seconds,
                   std::optional<double> seconds_left) {
  if (sum_.tokens == 0) return;
  const auto n = static_cast<double>(sum_.tokens);
  const double loss = sum_.loss / n, perplexity = std::exp(sum_.negative_log_likelihood / n);
  const bool guided = sum_.guided_tokens > 0;
  const double guided_loss = guided ? sum_.guided / static_cast<double>(sum_.guided_tokens) : 0;
  const double speed = n / std::max(elapsed(), 1e-9);
  reporter_.progress(fmt::format(
      "epoch {} update {} loss {:.4f} perplexity {:.2f}{} {:.0f} target tokens/s{}", epoch_number(progress),
      progress.update, loss, perplexity, guided ? fmt::format(" attention {:.4f}", guided_loss) : "", speed,
      seconds_left ? ", " + duration_text(*seconds_left) + " left" : ""));
  nlohmann::ordered_json entry = log_entry(progress);
  entry["loss"] = loss;
  entry["perplexity"] = perplexity;
  if (guided) entry["guided_loss"] = guided_loss;
  entry["learning_rate"] = rate;
  entry["target_tokens_per_second"] = speed;
  entry["seconds"] = seconds;
  if (seconds_left) entry["seconds_left"] = *seconds_left;
  log_.write(entry);
  sum_ = {};
  forget_time();
}

}  // namespace gloss::train
