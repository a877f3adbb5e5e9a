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

TEST_F(LogSumExp, OfPartsIsThatOfTheRow) {
  run([] {
    for (const int64_t n : {1, 511, 512, 513, 2000}) {
      std::vector<float> row = random_row(n, 3, false);
      // Parts without a finite element, before, between and behind others.
      for (size_t i = 0; i < row.size(); ++i) {
        if (i / 512 != 1) row[i] = i / 512 == 3 ? row[i] : -kInfinity;
      }
      if (n <= 512) row.back() = 4;
      std::vector<PartOfSum> parts;
      for (size_t i = 0; i < row.size(); i += kRowPart)
        parts.push_back(sum_exp(std::span(row).subspan(i, std::min<size_t>(kRowPart, row.size() - i))));
      EXPECT_EQ(std::bit_cast<uint32_t>(log_sum_exp_of(parts)), std::bit_cast<uint32_t>(log_sum_exp(row)));
      EXPECT_FALSE(std::isnan(log_sum_exp(row))) << n;
    }
    const std::vector<float> nothing(20, -kInfinity);
    EXPECT_EQ(sum_exp(nothing).sum, 0);
    std::vector<float> bad = nothing;
    bad[7] = kNan;
    EXPECT_TRUE(std::isnan(sum_exp(bad).sum));
    EXPECT_TRUE(std::isnan(log_sum_exp_of({})));
  });
}

TEST_F(TopK, OfPartsIsThatOfTheRow) {
  run([] {
    for (const int64_t n : {3, 64, 700}) {
      for (const bool coarse : {false, true}) {
        const std::vector<float> row = random_row(n, 5, coarse);
        for (const int64_t step : {1, 2, 17, 64, 700}) {
          std::vector<Ranked> best(3);
          top_k_begin(best);
          for (int64_t first = 0; first < n; first += step) {
            const auto part = std::span(row).subspan(static_cast<size_t>(first),
                                                     static_cast<size_t>(std::min(step, n - first)));
            top_k_add(part, static_cast<int32_t>(first), best);
          }
          top_k_end(best);
          ASSERT_EQ(best, best_by_sorting(row, 3)) << n << " by " << step;
        }
      }
    }
    std::vector<Ranked> best(3);
    top_k_begin(best);
    top_k_add(std::vector<float>{kNan, -kInfinity, 2}, 10, best);
    top_k_end(best);
    EXPECT_EQ(best[0], (Ranked{2, 12}));
    EXPECT_EQ(best[1].value, -kInfinity);
    EXPECT_EQ(best[2].value, -kInfinity);
  });
}

RC_GTEST_PROP(TopKProperty, EqualsASort, (const std::vector<uint8_t>& values, uint8_t count)) {
  const std::vector<float> row(values.begin(), values.end());
  std::vector<Ranked> best(std::min<size_t>(count, row.size()));
  top_k(row, best);
  RC_ASSERT(best == best_by_sorting(row, best.size()));
}

}  // namespace
}  // namespace gloss::kernels
