#include "gloss/lab/kv_cache.h"

#include <gtest/gtest.h>

namespace gloss::lab {
namespace {

// Four tokens: 4 rows with the cache, 1 + 2 + 3 + 4 without.
TEST(LabKvCache, CountsRowsAndBytes) {
  KvCache::Options options;
  options.target = 4;
  options.beam = 1;
  const Report report = KvCache::run(options, Ingredient::kept);
  EXPECT_TRUE(report.holds()) << report.text();
  const std::vector<std::string>& last = report.tables.at(0).rows.back();
  EXPECT_EQ(last.at(0), "4");
  EXPECT_EQ(last.at(1), "4");
  EXPECT_EQ(last.at(2), "10");
  // 2 layers x 4 bytes x 2 x 32 numbers x 4 tokens, and x 9 of the source.
  EXPECT_EQ(report.tables.at(1).rows.at(0).back(), "2048");
  EXPECT_EQ(report.tables.at(1).rows.at(1).back(), "4608");
}

TEST(LabKvCache, OtherSizes) {
  KvCache::Options options;
  options.target = 30;
  options.beam = 12;
  options.layers = 1;
  options.heads = 1;
  options.d_model = 16;
  EXPECT_TRUE(KvCache::run(options, Ingredient::kept).holds());
  EXPECT_FALSE(KvCache::run(options, Ingredient::removed).holds());
}

}  // namespace
}  // namespace gloss::lab
