#include "gloss/inspect/axis.h"

#include <algorithm>
#include <cmath>

#include "gloss/base/error.h"

namespace gloss::inspect {
namespace {

// Multiples of a step are off by a few bits.
constexpr double kSlack = 1e-9;

std::string with_commas(std::string digits) {
  const size_t point = std::min(digits.find('.'), digits.size());
  const size_t first = digits.starts_with('-') ? 1 : 0;
  for (size_t at = point; at > first + 3;) {
    at -= 3;
    digits.insert(at, 1, ',');
  }
  return digits;
}

int decimals_of(double step) {
  return std::max(0, static_cast<int>(-std::floor(std::log10(step) + kSlack)));
}

}  // namespace

std::string tick_label(double value, double step, double largest) {
  if (value == 0) return "0";
  constexpr int kMostDecimals = 5;
  if (decimals_of(step) > kMostDecimals) return fmt::format("{:.3g}", value);
  constexpr double kThousands = 1e5, kMillions = 1e6, kWords = 1e15;
  if (largest >= kWords) return fmt::format("{:.3g}", value);
  if (largest >= kMillions) return fmt::format("{:.{}f}M", value / 1e6, decimals_of(step / 1e6));
  if (largest >= kThousands) return fmt::format("{:.{}f}k", value / 1e3, decimals_of(step / 1e3));
  return with_commas(fmt::format("{:.{}f}", value, decimals_of(step)));
}

Axis::Axis(double low, double high, Scaling scaling) : low_(low), high_(high), scaling_(scaling) {
  const bool logarithmic = scaling == Scaling::logarithmic;
  require(std::isfinite(low) && std::isfinite(high) && low <= high && (!logarithmic || low > 0),
          "an axis cannot reach from {} to {}", low, high);
  // One value stands in the middle of an axis; so does what differs by rounding only.
  if (high - low > kSlack * std::max(std::abs(low), std::abs(high))) return;
  const double room = logarithmic ? low / 2 : std::max(std::abs(low) / 10, 1e-12);
  low_ = low - room;
  high_ = high + (logarithmic ? low : room);
}

double Axis::place(double value) const {
  if (scaling_ == Scaling::linear) return (value - low_) / (high_ - low_);
  return (std::log(value) - std::log(low_)) / (std::log(high_) - std::log(low_));
}

std::vector<Tick> Axis::ticks(int most) const {
  if (scaling_ == Scaling::linear) return linear_ticks(most);
  std::vector<Tick> ticks = logarithmic_ticks(most);
  // Less than a power of ten is nearly straight.
  constexpr size_t kFewest = 3;
  return ticks.size() < kFewest && high_ < 10 * low_ ? linear_ticks(most) : ticks;
}

std::vector<Tick> Axis::linear_ticks(int most) const {
  const double span = high_ - low_;
  double step = 0;
  for (double unit = std::pow(10, std::floor(std::log10(span / most)) - 1);; unit *= 10) {
    for (const double factor : {1, 2, 5}) {
      step = factor * unit;
      const double count = std::floor(high_ / step + kSlack) - std::ceil(low_ / step - kSlack) + 1;
      if (count > most) continue;
      std::vector<Tick> ticks;
      const double largest = std::max(std::abs(low_), std::abs(high_));
      for (double i = std::ceil(low_ / step - kSlack); i <= high_ / step + kSlack; ++i)
        ticks.push_back({i * step, tick_label(i * step, step, largest)});
      return ticks;
    }
  }
}

std::vector<Tick> Axis::logarithmic_ticks(int most) const {
  const int first = static_cast<int>(std::floor(std::log10(low_)));
  const int last = static_cast<int>(std::ceil(std::log10(high_)));
  const auto made_of = [&](std::initializer_list<double> factors, int powers) {
    std::vector<Tick> ticks;
    for (int power = first; power <= last; ++power) {
      if (power % powers != 0) continue;
      for (const double factor : factors) {
        const double value = factor * std::pow(10, power);
        if (value >= low_ * (1 - kSlack) && value <= high_ * (1 + kSlack))
          ticks.push_back({value, tick_label(value, value, value < 1e6 ? 0 : value)});
      }
    }
    return ticks;
  };
  std::vector<Tick> ticks = made_of({1, 2, 5}, 1);
  for (int powers = 1; static_cast<int>(ticks.size()) > most; ++powers) ticks = made_of({1}, powers);
  return ticks;
}

}  // namespace gloss::inspect
