#include "gloss/decode/ranking.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "gloss/base/random.h"

namespace gloss::decode {
namespace {

constexpr float kNone = -std::numeric_limits<float>::infinity();

struct Rows {
  Rows(int64_t n, int64_t v, bool coarse) : rows(n), vocabulary(v), logits(static_cast<size_t>(n * v)) {
    for (size_t i = 0; i < logits.size(); ++i) {
      const double x = 4 * RandomKey(7).normal(i);
      logits[i] = static_cast<float>(coarse ? std::round(x) : x);
    }
  }
  kernels::Matrix<float> part(std::vector<float>& copy, int64_t row, int64_t token, int64_t count,
                              int64_t cols) const {
    copy.clear();
    for (int64_t i = row; i < row + count; ++i) {
      const auto from = logits.begin() + (i * vocabulary + token);
      copy.insert(copy.end(), from, from + cols);
    }
    return {copy.data(), count, cols, cols};
  }
  int64_t rows, vocabulary;
  std::vector<float> logits;
};

// Cuts of the same rows and tokens, runs in any order.
TEST(Ranking, FindsTheSameWhateverPartsTheRowsComeIn) {
  for (const int64_t vocabulary : {1, 500, 512, 5000, 9001}) {
    for (const bool coarse : {false, true}) {
      const Rows all(5, vocabulary, coarse);
      const int64_t width = std::min<int64_t>(8, vocabulary);
      const std::vector<int32_t> masked{0, 3, 3, 511, 512, 4096, 9000};
      for (const int64_t group : {1, 2, 5}) {
        for (const int64_t part : {int64_t{512}, int64_t{4096}, vocabulary}) {
          const int threads = part == 512 ? 1 + static_cast<int>(group % 2) : 2;
          Ranking ranking;
          ranking.begin(all.rows, vocabulary, width, threads);
          for (int64_t row = 1; row < all.rows; row += 2) {
            for (const int32_t token : masked) {
              if (token < vocabulary) ranking.masked(row).push_back(token);
            }
          }
          const int64_t run = std::max(part, ranking.parts().run);
          std::vector<float> copy;
          for (int64_t last = (vocabulary - 1) / run; last >= 0; --last) {  // the last run first
            for (int64_t token = last * run; token < std::min(vocabulary, (last + 1) * run); token += part) {
              const int64_t cols = std::min({part, vocabulary - token, (last + 1) * run - token});
              for (int64_t row = 0; row < all.rows; row += group) {
                const int64_t count = std::min(group, all.rows - row);
                ranking.see(row, token, all.part(copy, row, token, count, cols));
              }
            }
          }
          for (int64_t row = 0; row < all.rows; ++row) {
            std::vector<float> own(all.logits.begin() + row * vocabulary,
                                   all.logits.begin() + (row + 1) * vocabulary);
            const RowChoice choice = ranking.choice(row);
            ASSERT_EQ(std::bit_cast<uint32_t>(choice.log_sum_exp),
                      std::bit_cast<uint32_t>(kernels::log_sum_exp(own)));
            if (row % 2 == 1) {
              for (const int32_t token : masked) {
                if (token < vocabulary) own[static_cast<size_t>(token)] = kNone;
              }
            }
            std::vector<kernels::Ranked> expected(static_cast<size_t>(width));
            kernels::top_k(own, expected);
            for (size_t i = 0; i < expected.size(); ++i) {
              ASSERT_EQ(choice.best[i].value, expected[i].value) << "row " << row << " of " << vocabulary;
              if (expected[i].value != kNone) {
                ASSERT_EQ(choice.best[i].index, expected[i].index);
              }
            }
          }
        }
      }
    }
  }
}

TEST(Ranking, SaysWhereARowHasNoDistribution) {
  Rows all(3, 1500, false);
  all.logits[1500 + 1400] = std::numeric_limits<float>::quiet_NaN();
  std::vector<float> copy;
  Ranking ranking;
  for (int round = 0; round < 2; ++round) {  // what the rows before left does not come back
    ranking.begin(3, 1500, 4, 2);
    ranking.masked(0).push_back(5);
    ranking.see(0, 0, all.part(copy, 0, 0, 3, 1500));
    EXPECT_FALSE(std::isnan(ranking.choice(0).log_sum_exp));
    EXPECT_TRUE(std::isnan(ranking.choice(1).log_sum_exp));
    EXPECT_FALSE(std::isnan(ranking.choice(2).log_sum_exp));
  }
}

}  // namespace
}  // namespace gloss::decode
