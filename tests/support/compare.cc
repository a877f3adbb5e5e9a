#include "support/compare.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace gloss::tests {

Difference largest_difference(std::span<const double> got, std::span<const double> want) {
  double squares = 0;
  for (const double w : want) squares += std::isfinite(w) ? w * w : 0;
  const double norm = want.empty() ? 0 : std::sqrt(squares / static_cast<double>(want.size()));
  Difference worst;
  for (size_t i = 0; i < std::min(got.size(), want.size()); ++i) {
    const double g = got[i], w = want[i];
    if (g == w || (std::isnan(g) && std::isnan(w))) continue;
    const double difference = std::abs(g - w), scale = std::max(std::abs(w), norm);
    const bool finite = std::isfinite(difference) && std::isfinite(w) && scale > 0;
    const double relative = finite ? difference / scale : std::numeric_limits<double>::infinity();
    if (worst.index < 0 || relative > worst.relative) worst = {relative, static_cast<int64_t>(i), g, w};
  }
  return worst;
}

::testing::AssertionResult close_numbers(std::span<const double> got, std::span<const double> want,
                                         double tolerance) {
  if (got.size() != want.size()) {
    return ::testing::AssertionFailure() << got.size() << " numbers instead of " << want.size();
  }
  const Difference worst = largest_difference(got, want);
  if (worst.relative <= tolerance) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure()
         << "element " << worst.index << " of " << want.size() << " is " << worst.got << " instead of "
         << worst.want << ": relative error " << worst.relative << ", allowed " << tolerance;
}

::testing::AssertionResult each_close_numbers(std::span<const double> got, std::span<const double> want,
                                              double relative, double absolute) {
  if (got.size() != want.size()) {
    return ::testing::AssertionFailure() << got.size() << " numbers instead of " << want.size();
  }
  for (size_t i = 0; i < got.size(); ++i) {
    const double g = got[i], w = want[i];
    if (g == w || (std::isnan(g) && std::isnan(w))) continue;
    const double difference = std::abs(g - w);
    if (std::isfinite(difference) && difference <= std::max(relative * std::abs(w), absolute)) continue;
    return ::testing::AssertionFailure()
           << "element " << i << " of " << got.size() << " is " << g << " instead of " << w
           << ": allowed are " << relative << " of it, or " << absolute;
  }
  return ::testing::AssertionSuccess();
}

}  // namespace gloss::tests
