#include "gloss/decode/options.h"

#include <algorithm>
#include <cmath>

#include "gloss/base/error.h"

namespace gloss::decode {
namespace {

// Beyond this nothing is a sentence; it also keeps products of lengths and widths inside int64.
constexpr int64_t kLongest = 1 << 24;
constexpr int kWidest = 1 << 20;

template <class T>
void in_range(const char* name, T value, T low, T high) {
  if (!(value >= low && value <= high)) {  // NaN fails too
    throw UsageError(fmt::format("{} is {}: it must be from {} to {}", name, value, low, high));
  }
}

}  // namespace

void validate(const SearchOptions& options) {
  in_range("beam", options.beam, 1, kWidest);
  in_range("batch", options.batch, 1, kWidest);
  in_range("length penalty", options.length_penalty, -100.0, 100.0);
  in_range("patience", options.patience, 0.0, 1e6);
  in_range<int64_t>("min length", options.min_length, 0, kLongest);
  in_range<int64_t>("max length", options.max_length, 0, kLongest);
  in_range("length factor", options.length_factor, 0.0, 1e6);
  in_range<int64_t>("length extra", options.length_extra, 0, kLongest);
  in_range("no-repeat n-gram", options.no_repeat_ngram, 0, 1 << 20);
  if (options.max_length > 0 && options.min_length > options.max_length) {
    throw UsageError(
        fmt::format("min length {} is greater than max length {}", options.min_length, options.max_length));
  }
  if (!options.sampling) {
    if (options.n_best < 1 || options.n_best > options.beam) {
      throw UsageError(fmt::format("n-best is {}: it must be from 1 to the beam width, which is {}",
                                   options.n_best, options.beam));
    }
    return;
  }
  in_range("n-best", options.n_best, 1, kWidest);
  in_range("temperature", options.sampling->temperature, 1e-4, 1e4);
  in_range<int64_t>("top-k", options.sampling->top_k, 0, INT32_MAX);
  in_range("top-p", options.sampling->top_p, 1e-9, 1.0);
}

int64_t length_cap(const SearchOptions& options, int64_t source_length) {
  if (options.max_length > 0) return options.max_length;
  const double derived =
      options.length_factor * static_cast<double>(source_length) + static_cast<double>(options.length_extra);
  const auto cap = static_cast<int64_t>(std::floor(std::min(derived, static_cast<double>(kLongest))));
  return std::max({cap, options.min_length, int64_t{1}});
}

}  // namespace gloss::decode
