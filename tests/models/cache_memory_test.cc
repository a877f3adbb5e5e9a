// The forecast of the cache's memory, and its refusal of numbers beyond 63 bits. What a search really takes
// is compared with it in tests/decode/cache_memory_test.cc.
#include "gloss/models/cache_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "gloss/base/error.h"

namespace gloss::models {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string refusal(const CacheCost& cost, const CacheUse& use) {
  try {
    cache_memory(cost, use);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

TEST(CacheMemory, IsTheFormulaAndWhatPagesAdd) {
  // tiny: 4 layers, d 128, four bytes a number.
  const CacheCost cost{4, 4 * 4 * 2 * 128, 4 * 4 * 2 * 128};
  const CacheMemory greedy = cache_memory(cost, {30, 32, 64, 1});
  EXPECT_EQ(greedy.self_bytes, 4 * 4 * (2 * 32 * 128 * 64));
  EXPECT_EQ(greedy.memory_bytes, 4 * 4 * (2 * 30 * 128 * 64));
  EXPECT_EQ(greedy.payload_bytes, 4 * 4 * (2 * 32 * 128 * 64 + 2 * 30 * 128 * 64));
  EXPECT_EQ(greedy.shared_bytes, 0);
  EXPECT_EQ(greedy.table_bytes, 4 * 32 * 64);
  EXPECT_EQ(greedy.spare_bytes, 0);  // 32 rows are two pages

  const CacheMemory beam = cache_memory(cost, {30, 30, 64, 5});
  EXPECT_EQ(beam.self_bytes, 4 * 4 * (2 * 30 * 128 * 64 * 5));
  EXPECT_EQ(beam.memory_bytes, greedy.memory_bytes);
  EXPECT_EQ(beam.shared_bytes, 4 * 4 * (2 * 128 * 64 * 4));
  EXPECT_EQ(beam.table_bytes, 4 * 30 * 64 * 5);
  EXPECT_EQ(beam.spare_bytes, 4 * 4 * 2 * 128 * 64 * (160 - (1 + 29 * 5)));  // ten pages of 16 rows

  EXPECT_EQ(cache_memory(cost, {1, 1, 1, 5}).spare_bytes, 15 * cost.self_bytes);
  EXPECT_EQ(cache_memory({}, {30, 30, 64, 5}).payload_bytes, 0);  // a decoder without layers
}

// As RNNsearch has it: a state and the annotations of the source.
TEST(CacheMemory, HasNoTablesWhereNoTargetTokenIsKept) {
  const CacheMemory memory = cache_memory({1, 0, 3000}, {30, 20, 64, 5});
  EXPECT_EQ(memory.payload_bytes, 3000 * 30 * 64);
  EXPECT_EQ(memory.memory_bytes, memory.payload_bytes);
  EXPECT_EQ(memory.table_bytes, 0);
  EXPECT_EQ(memory.shared_bytes, 0);
  EXPECT_EQ(memory.spare_bytes, 0);
}

TEST(CacheMemory, RefusesWhatNoNumberHolds) {
  const CacheCost tiny{4, 4096, 4096};
  const CacheUse widest{1 << 24, 1 << 24, 1 << 16, 4096};  // what `gloss info` allows
  EXPECT_THAT(refusal(tiny, widest), AllOf(HasSubstr("65536 sentences"), HasSubstr("4096 hypotheses"),
                                           HasSubstr("16777216 source"), HasSubstr("smaller batch")));
  // A quarter of that is half of what 63 bits hold, and is told.
  EXPECT_EQ(cache_memory(tiny, {1, 1 << 24, 1 << 16, 1024}).self_bytes, int64_t{1} << 62);
  // Each product, and their sum.
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  EXPECT_NE(refusal({1, 1, kMost / 2}, {3, 1, 1, 1}), "");
  EXPECT_NE(refusal({1, kMost / 2, kMost / 2}, {2, 2, 1, 1}), "");
  EXPECT_NE(refusal({1, 1, 0}, {1, 2, kMost / 4, 1}), "");  // the tables
  EXPECT_EQ(refusal({1, 0, 0}, {1, 2, kMost / 4, 1}), "");
  EXPECT_NE(refusal({1, kMost / 8, 0}, {1, 1, 1, 1}), "");  // room for 16 rows
  EXPECT_EQ(refusal({1, kMost / 20, 0}, {1, 1, 1, 1}), "");
  EXPECT_THROW(cache_memory(tiny, {0, 1, 1, 1}), Error);
  EXPECT_THROW(cache_memory(tiny, {1, 1, 1, -1}), Error);
}

}  // namespace
}  // namespace gloss::models
