#include "gloss/kernels/top_k.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "gloss/base/error.h"
#include "gloss/base/random.h"
#include "gloss/kernels/isa.h"

namespace gloss::kernels {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

class EveryIsa : public ::testing::Test {
 protected:
  ~EveryIsa() override { limit_isa(supported_isas().back()); }
  template <class Check>
  static void run(Check check) {
    for (const Isa isa : supported_isas()) {
      SCOPED_TRACE(isa_name(isa));
      limit_isa(isa);
      ASSERT_EQ(current_isa(), isa);
      check();
    }
  }
};
using TopK = EveryIsa;
using LogSumExp = EveryIsa;

// Whole numbers when coarse, so that many are equal.
std::vector<float> random_row(int64_t n, uint64_t seed, bool coarse) {
  std::vector<float> row(static_cast<size_t>(n));
  for (size_t i = 0; i < row.size(); ++i) {
    const double x = 3 * RandomKey(seed).normal(i);
    row[i] = static_cast<float>(coarse ? std::round(x) : x);
  }
  return row;
}

std::vector<Ranked> best_by_sorting(std::span<const float> row, size_t k) {
  std::vector<Ranked> all;
  for (size_t i = 0; i < row.size(); ++i) all.push_back({row[i], static_cast<int32_t>(i)});
  std::stable_sort(all.begin(), all.end(),
                   [](const Ranked& a, const Ranked& b) { return a.value > b.value; });
  all.resize(k);
  return all;
}

TEST_F(TopK, EqualsASortForEveryLengthCountAndStart) {
  run([] {
    for (const int64_t n : {1, 2, 15, 16, 17, 63, 64, 65, 100, 128, 193, 1000}) {
      for (const int64_t k : {1, 2, 8, 10, 64, 100, 1000}) {
        if (k > n) continue;
        for (const int start : {0, 1, 3}) {
          const std::vector<float> memory = random_row(n + start, static_cast<uint64_t>(n * k), k % 2 == 0);
          const std::span<const float> row = std::span(memory).subspan(static_cast<size_t>(start));
          std::vector<Ranked> best(static_cast<size_t>(k));
          top_k(row, best);
          ASSERT_EQ(best, best_by_sorting(row, best.size())) << "n " << n << ", k " << k;
        }
      }
    }
  });
}

TEST_F(TopK, OrdersEqualValuesByIndexAndTakesMinusInfinityLast) {
  run([] {
    std::vector<float> row(200, -kInfinity);
    row[150] = 2;
    row[70] = 2;
    row[199] = 5;
    std::vector<Ranked> best(5);
    top_k(row, best);
    EXPECT_EQ(best, (std::vector<Ranked>{{5, 199}, {2, 70}, {2, 150}, {-kInfinity, 0}, {-kInfinity, 1}}));
    std::iota(row.begin(), row.end(), 0.0f);  // every element passes the threshold
    top_k(row, best);
    EXPECT_EQ(best, best_by_sorting(row, 5));
  });
}

TEST_F(TopK, ReadsNothingPastTheRow) {
  run([] {
    std::vector<float> memory(80, kInfinity);
    for (size_t i = 0; i < 70; ++i) memory[i] = -1;
    std::vector<Ranked> best(3);
    top_k(std::span(memory).first(70), best);
    EXPECT_EQ(best, (std::vector<Ranked>{{-1, 0}, {-1, 1}, {-1, 2}}));
  });
}

TEST_F(TopK, RefusesMoreThanThereIs) {
  std::vector<Ranked> best(4);
  EXPECT_THROW(top_k(std::vector<float>{1, 2, 3}, best), Error);
}

TEST_F(LogSumExp, EqualsTheSumInDoublePrecision) {
  run([] {
    for (const int64_t n : {1, 2, 15, 16, 17, 31, 33, 1000, 32001}) {
      for (const float shift : {0.0f, 10000.0f, -10000.0f}) {
        std::vector<float> row = random_row(n, static_cast<uint64_t>(n), false);
        double sum = 0;
        for (float& x : row) {
          x += shift;
          sum += std::exp(static_cast<double>(x) - shift);
        }
        const double expected = shift + std::log(sum);
        ASSERT_NEAR(log_sum_exp(row), expected, 1e-6 * std::max(1.0, std::abs(expected)));
      }
    }
    EXPECT_EQ(log_sum_exp(std::vector<float>{-kInfinity, 3, -kInfinity}), 3);
  });
}

TEST_F(LogSumExp, IsNotANumberWhereThereIsNoDistribution) {
  run([] {
    for (const size_t n : {1, 16, 40, 41}) {
      for (size_t at = 0; at < n; ++at) {
        std::vector<float> row(n, 1.0f);
        EXPECT_FALSE(std::isnan(log_sum_exp(row)));
        row[at] = kNan;
        EXPECT_TRUE(std::isnan(log_sum_exp(row))) << at << " of " << n;
        row[at] = kInfinity;
        EXPECT_TRUE(std::isnan(log_sum_exp(row))) << at << " of " << n;
      }
      EXPECT_TRUE(std::isnan(log_sum_exp(std::vector<float>(n, -kInfinity))));
    }
    EXPECT_TRUE(std::isnan(log_sum_exp({})));
  });
}

TEST_F(LogSumExp, HasEqualBitsFromAvx2Up) {
  for (const int64_t n : {5, 64, 1003, 8192}) {
    const std::vector<float> row = random_row(n, 9, false);
    std::vector<uint32_t> bits;
    for (const Isa isa : supported_isas()) {
      if (isa < Isa::avx2) continue;
      limit_isa(isa);
      bits.push_back(std::bit_cast<uint32_t>(log_sum_exp(row)));
    }
    for (const uint32_t each : bits) EXPECT_EQ(each, bits.front());
  }
}

RC_GTEST_PROP(TopKProperty, EqualsASort, (const std::vector<uint8_t>& values, uint8_t count)) {
  const std::vector<float> row(values.begin(), values.end());
  std::vector<Ranked> best(std::min<size_t>(count, row.size()));
  top_k(row, best);
  RC_ASSERT(best == best_by_sorting(row, best.size()));
}

}  // namespace
}  // namespace gloss::kernels
