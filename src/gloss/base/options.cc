#include "gloss/base/options.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace gloss {
namespace {

// Whole numbers without a fraction, however large: 1000000000, not 1e+09.
std::string bound_text(double bound) {
  return bound == std::floor(bound) && std::abs(bound) < 0x1p63
             ? fmt::format("{}", static_cast<int64_t>(bound))
             : fmt::format("{}", bound);
}

std::string range_text(double low, double high, bool high_allowed) {
  const bool has_low = low > -std::numeric_limits<double>::infinity();
  const bool has_high = high < std::numeric_limits<double>::infinity();
  if (has_low && has_high)
    return fmt::format(" from {} to {}{}", bound_text(low), high_allowed ? "" : "below ", bound_text(high));
  if (has_low) return fmt::format(" of at least {}", bound_text(low));
  if (has_high) return fmt::format(" {} {}", high_allowed ? "of at most" : "below", bound_text(high));
  return "";
}

}  // namespace

std::string Field::json_name() const {
  std::string name = name_;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

void Field::reject(std::string_view who, const std::string& expected, std::string_view came) const {
  constexpr size_t kShown = 80;
  throw UsageError(fmt::format("{} must be {}, not '{}'{}", who, expected, came.substr(0, kShown),
                               came.size() > kShown ? "..." : ""));
}

bool Field::in_range(double value) const {
  return value >= low_ && (high_allowed_ ? value <= high_ : value < high_);
}

std::string Field::expected_whole(int64_t low, int64_t high) const {
  // The limits of 32 and 64 bits go without saying; narrower types say theirs.
  const auto number = [](int64_t n) { return static_cast<double>(n); };
  const bool narrow = high < std::numeric_limits<int32_t>::max();
  return "a whole number" + range_text(std::max(low_, narrow || low == 0 ? number(low) : low_),
                                       std::min(high_, narrow ? number(high) : high_), high_allowed_);
}

std::string Field::expected_number() const {
  return "a number" + range_text(low_, high_, high_allowed_);
}

std::string Field::expected_choice() const {
  std::string names;
  for (size_t i = 0; i < choices_.size(); ++i) {
    if (i > 0) names += i + 1 < choices_.size() ? ", " : " or ";
    names += choices_[i].second;
  }
  return names;
}

int64_t Field::whole(std::string_view who, std::string_view text, int64_t low, int64_t high) const {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  // A number like any other to its reader, so that the limits need saying which otherwise go without.
  if (error == std::errc::result_out_of_range && end == text.data() + text.size()) {
    reject(who,
           fmt::format("a whole number from {} to {}",
                       low_ > static_cast<double>(low) ? static_cast<int64_t>(low_) : low,
                       high_ < static_cast<double>(high) ? static_cast<int64_t>(high_) : high),
           text);
  }
  if (error != std::errc() || end != text.data() + text.size()) reject(who, expected_whole(low, high), text);
  check_whole(who, value, low, high);
  return value;
}

void Field::check_whole(std::string_view who, int64_t value, int64_t low, int64_t high) const {
  if (value < low || value > high || !in_range(static_cast<double>(value)))
    reject(who, expected_whole(low, high), fmt::format("{}", value));
}

double Field::number(std::string_view who, std::string_view text) const {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) reject(who, expected_number(), text);
  check_number(who, value);
  return value;
}

void Field::check_number(std::string_view who, double value) const {
  if (!std::isfinite(value) || !in_range(value)) reject(who, expected_number(), fmt::format("{}", value));
}

bool Field::flag(std::string_view who, std::string_view text) const {
  if (text == "true") return true;
  if (text != "false") reject(who, "true or false", text);
  return false;
}

int64_t Field::choice(std::string_view who, std::string_view text) const {
  for (const auto& [value, name] : choices_) {
    if (name == text) return value;
  }
  reject(who, expected_choice(), text);
}

void Field::check_text(std::string_view who, std::string_view value) const {
  if (!choices_.empty()) choice(who, value);
}

void Field::check_count(std::string_view who, size_t values) const {
  if (count_ != kAnyCount && values != static_cast<size_t>(count_))
    throw UsageError(fmt::format("{} takes {} values, not {}", who, count_, values));
}

const std::string& Field::choice_name(int64_t value) const {
  const auto it =
      std::find_if(choices_.begin(), choices_.end(), [&](const auto& c) { return c.first == value; });
  if (it == choices_.end())
    throw UsageError(fmt::format("{} must be {}, not number {}", name_, expected_choice(), value));
  return it->second;
}

}  // namespace gloss
