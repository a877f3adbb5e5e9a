#include "gloss/base/thread_pool.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <numeric>

#include "gloss/base/error.h"
#include "gloss/base/random.h"

namespace gloss {
namespace {

TEST(ThreadPool, RunsEveryTaskOnce) {
  for (const int threads : {1, 2, 5}) {
    ThreadPool pool(threads);
    for (int round = 0; round < 200; ++round) {
      std::vector<int> hits(static_cast<size_t>(round));
      pool.parallel_for(round, [&](int64_t task) { ++hits[static_cast<size_t>(task)]; });
      EXPECT_EQ(std::accumulate(hits.begin(), hits.end(), 0), round);
    }
  }
}

TEST(ThreadPool, ThrowsAgainWhatATaskThrewAndGoesOn) {
  ThreadPool pool(3);
  EXPECT_THROW(pool.parallel_for(50,
                                 [](int64_t task) {
                                   if (task == 17) fail("task {}", task);
                                 }),
               Error);
  int64_t sum = 0;
  pool.parallel_ranges(10, 100, [&](int64_t begin, int64_t end) { sum += end - begin; });
  EXPECT_EQ(sum, 10);
  EXPECT_THROW(ThreadPool(0), Error);
}

TEST(ThreadPool, RunsNestedCallsWhereTheyAre) {
  ThreadPool pool(3), other(2);
  std::vector<int> hits(20 * 30);
  pool.parallel_for(20, [&](int64_t outer) {
    pool.parallel_for(30, [&](int64_t inner) { ++hits[static_cast<size_t>(outer * 30 + inner)]; });
  });
  EXPECT_EQ(std::ranges::count(hits, 1), 600);
  std::atomic<int> calls = 0;
  other.parallel_for(1, [&](int64_t) { pool.parallel_for(30, [&](int64_t) { ++calls; }); });
  EXPECT_EQ(calls, 30);
}

#if !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)  // which need more address space than this
TEST(ThreadPool, SaysWhenTheSystemStartsNoMoreThreads) {
  const auto with_little_memory = [] {
    const rlimit limit{size_t{1} << 30, size_t{1} << 30};  // a thread takes 8 MB of addresses for its stack
    ::setrlimit(RLIMIT_AS, &limit);
    try {
      const ThreadPool pool(1000);
    } catch (const Error& error) {
      std::fprintf(stderr, "%s\n", error.what());
      std::exit(7);
    }
    std::exit(0);
  };
  EXPECT_EXIT(with_little_memory(), ::testing::ExitedWithCode(7), "starts no more than [0-9]+ threads");
}
#endif

TEST(RandomKey, DependsOnKeyAndIndexAlone) {
  const RandomKey key = RandomKey(1).with(2).with("name");
  EXPECT_EQ(key.bits(7), RandomKey(1).with(2).with("name").bits(7));
  EXPECT_NE(key.bits(7), RandomKey(1).with(2).with("nane").bits(7));
  double sum = 0, squares = 0;
  for (uint64_t i = 0; i < 20000; ++i) {
    const double x = key.normal(i);
    sum += x;
    squares += x * x;
    ASSERT_LT(key.below(i, 3), 3u);
  }
  EXPECT_NEAR(sum / 20000, 0, 0.03);
  EXPECT_NEAR(squares / 20000, 1, 0.05);
}

}  // namespace
}  // namespace gloss
