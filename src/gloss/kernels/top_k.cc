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

// A scan against a threshold, the worst of the k best so far. In random order only about k ln(n / k) of n
// elements pass it, so nearly all the work is the vector comparison.
void best_of_row(const float* HWY_RESTRICT row, int64_t n, Ranked* HWY_RESTRICT best, int64_t k) {
  const auto better = [](const Ranked& a, const Ranked& b) {
    return a.value > b.value || (a.value == b.value && a.index < b.index);
  };
  for (int64_t i = 0; i < k; ++i) best[i] = {row[i], static_cast<int32_t>(i)};
  std::make_heap(best, best + k, better);  // the worst in front
  Wide<float> threshold = set(best[0].value);
  // Indices rise, so an element equal to the threshold loses: only a greater one enters.
  const auto consider = [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      if (!(row[i] > best[0].value)) continue;
      std::pop_heap(best, best + k, better);
      best[k - 1] = {row[i], static_cast<int32_t>(i)};
      std::push_heap(best, best + k, better);
    }
    threshold = set(best[0].value);
  };
  constexpr int64_t kBlock = 4 * kWide;
  int64_t i = k;
  for (; i + kBlock <= n; i += kBlock) {
    const Wide<float> a = max(load(row + i), load(row + i + kWide));
    const Wide<float> b = max(load(row + i + 2 * kWide), load(row + i + 3 * kWide));
    if (!any_greater(max(a, b), threshold)) continue;
    for (int64_t part = i; part < i + kBlock; part += kWide) {
      if (any_greater(load(row + part), threshold)) consider(part, part + kWide);
    }
  }
  consider(i, n);
  std::sort_heap(best, best + k, better);
}

}  // namespace
}  // namespace gloss::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "gloss/base/error.h"

namespace gloss::kernels {
namespace {
HWY_EXPORT(sum_exp_below_largest);
HWY_EXPORT(best_of_row);
}  // namespace

float log_sum_exp(std::span<const float> row) {
  if (row.empty()) return std::numeric_limits<float>::quiet_NaN();
  float highest = 0, total = 0;
  HWY_DYNAMIC_DISPATCH(sum_exp_below_largest)
  (row.data(), static_cast<int64_t>(row.size()), &highest, &total);
  return static_cast<float>(static_cast<double>(highest) + std::log(static_cast<double>(total)));
}

void top_k(std::span<const float> row, std::span<Ranked> best) {
  require(best.size() <= row.size(), "the {} largest of {} numbers were asked for: ask for {} at most",
          best.size(), row.size(), row.size());
  if (best.empty()) return;
  HWY_DYNAMIC_DISPATCH(best_of_row)
  (row.data(), static_cast<int64_t>(row.size()), best.data(), static_cast<int64_t>(best.size()));
}

}  // namespace gloss::kernels
#endif  // HWY_ONCE
