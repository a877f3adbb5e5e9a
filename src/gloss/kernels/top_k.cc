#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "gloss/kernels/top_k.cc"  // this file, compiled once a target
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "gloss/kernels/top_k.h"
#include "gloss/kernels/wide-inl.h"

HWY_BEFORE_NAMESPACE();
namespace gloss::kernels::HWY_NAMESPACE {
namespace {

constexpr float kLowest = -std::numeric_limits<float>::infinity();

// The largest element and the sum of e^(element - largest).
void sum_exp_below_largest(const float* HWY_RESTRICT row, int64_t n, float* HWY_RESTRICT highest,
                           float* HWY_RESTRICT total) {
  const int64_t whole = n - n % kWide;
  Wide<float> top = set(kLowest);
  for (int64_t i = 0; i < whole; i += kWide) top = max(top, load(row + i));
  if (whole < n) top = max(top, load_first(row + whole, n - whole, kLowest));
  *highest = largest(top);
  if (*highest == kLowest) {
    *total = std::any_of(row, row + n, [](float x) { return std::isnan(x); })
                 ? std::numeric_limits<float>::quiet_NaN()
                 : 0;
    return;
  }
  // A NaN that the maximum lost comes through here: the sum keeps every one.
  const Wide<float> shift = set(*highest);
  Wide<float> parts = zero<float>();
  for (int64_t i = 0; i < whole; i += kWide) parts = parts + exp_not_above_zero(load(row + i) - shift);
  if (whole < n) parts = parts + exp_not_above_zero(load_first(row + whole, n - whole, kLowest) - shift);
  *total = sum(parts);
}

HWY_INLINE bool any_greater(const Wide<float>& a, const Wide<float>& b) {
  const Wide<float>::D d;
  for (int i = 0; i < Wide<float>::kVectors; ++i) {
    if (!hn::AllFalse(d, hn::Gt(a.v[i], b.v[i]))) return true;
  }
  return false;
}

// A scan against a threshold, the worst of the k best so far, which are a heap with it in front. In random
// order only about k ln(n / k) of n elements pass it, so nearly all the work is the vector comparison.
void best_of_part(const float* HWY_RESTRICT row, int64_t n, int32_t first, Ranked* HWY_RESTRICT best,
                  int64_t k) {
  Wide<float> threshold = set(best[0].value);
  // Indices rise, so an element equal to the threshold loses: only a greater one enters.
  const auto consider = [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      if (!(row[i] > best[0].value)) continue;
      std::pop_heap(best, best + k, Better());
      best[k - 1] = {row[i], first + static_cast<int32_t>(i)};
      std::push_heap(best, best + k, Better());
    }
    threshold = set(best[0].value);
  };
  constexpr int64_t kBlock = 4 * kWide;
  int64_t i = 0;
  for (; i + kBlock <= n; i += kBlock) {
    const Wide<float> a = max(load(row + i), load(row + i + kWide));
    const Wide<float> b = max(load(row + i + 2 * kWide), load(row + i + 3 * kWide));
    if (!any_greater(max(a, b), threshold)) continue;
    for (int64_t part = i; part < i + kBlock; part += kWide) {
      if (any_greater(load(row + part), threshold)) consider(part, part + kWide);
    }
  }
  consider(i, n);
}

}  // namespace
}  // namespace gloss::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "gloss/base/error.h"

namespace gloss::kernels {
namespace {
HWY_EXPORT(sum_exp_below_largest);
HWY_EXPORT(best_of_part);

// Adds up parts as they come, from the largest element so far.
class LogSumExp {
 public:
  void add(const PartOfSum& part) {
    if (part.sum == 0) return;  // nothing above -infinity
    const double largest = part.largest, sum = part.sum;
    if (largest > largest_) {
      sum_ = sum_ * std::exp(largest_ - largest) + sum;  // 0 for the first one
      largest_ = largest;
    } else {
      sum_ += sum * std::exp(largest - largest_);
    }
  }
  float result() const {
    if (sum_ == 0) return std::numeric_limits<float>::quiet_NaN();
    return static_cast<float>(largest_ + std::log(sum_));
  }

 private:
  double largest_ = -std::numeric_limits<double>::infinity(), sum_ = 0;
};
}  // namespace

PartOfSum sum_exp(std::span<const float> part) {
  PartOfSum result{-std::numeric_limits<float>::infinity(), 0};
  if (part.empty()) return result;
  HWY_DYNAMIC_DISPATCH(sum_exp_below_largest)
  (part.data(), static_cast<int64_t>(part.size()), &result.largest, &result.sum);
  return result;
}

float log_sum_exp_of(std::span<const PartOfSum> parts) {
  LogSumExp all;
  for (const PartOfSum& part : parts) all.add(part);
  return all.result();
}

float log_sum_exp(std::span<const float> row) {
  LogSumExp all;
  for (size_t i = 0; i < row.size(); i += kRowPart)
    all.add(sum_exp(row.subspan(i, std::min<size_t>(kRowPart, row.size() - i))));
  return all.result();
}

void top_k(std::span<const float> row, std::span<Ranked> best) {
  require(best.size() <= row.size(), "the {} largest of {} numbers were asked for: ask for {} at most",
          best.size(), row.size(), row.size());
  if (best.empty()) return;
  const auto k = static_cast<int32_t>(best.size());
  for (int32_t i = 0; i < k; ++i) best[static_cast<size_t>(i)] = {row[static_cast<size_t>(i)], i};
  std::make_heap(best.begin(), best.end(), Better());
  top_k_add(row.subspan(best.size()), k, best);
  top_k_end(best);
}

void top_k_begin(std::span<Ranked> best) {
  std::ranges::fill(best, Ranked{-std::numeric_limits<float>::infinity(), INT32_MAX});
}
void top_k_add(std::span<const float> part, int32_t first, std::span<Ranked> best) {
  HWY_DYNAMIC_DISPATCH(best_of_part)
  (part.data(), static_cast<int64_t>(part.size()), first, best.data(), static_cast<int64_t>(best.size()));
}
void top_k_end(std::span<Ranked> best) {
  std::sort_heap(best.begin(), best.end(), Better());
}

}  // namespace gloss::kernels
#endif  // HWY_ONCE
