#include "gloss/tensor/tensor.h"

#include <gtest/gtest.h>

#include <optional>

#include "gloss/tensor/context.h"
#include "gloss/tensor/ragged.h"

namespace gloss {
namespace {

TEST(Shape, CountsElementsAndRefusesTheImpossible) {
  EXPECT_EQ((Shape{2, 3, 4}.size()), 24);
  EXPECT_EQ((Shape{2, 3, 4}.rows()), 6);
  EXPECT_EQ((Shape{2, 3, 4}.text()), "[2, 3, 4]");
  EXPECT_THROW((Shape{1 << 30, 1 << 30}), Error);
  EXPECT_THROW((Shape{-1}), Error);
}

TEST(Arena, RecyclesBlocksSoThatAWarmStepAsksTheSystemForNothing) {
  Arena arena;
  const auto step = [&] {
    const Tensor<float> a(arena, {7, 33}), b(arena, {1, 1}), c(arena, {500, 12});
    EXPECT_EQ(reinterpret_cast<uintptr_t>(a.data()) % 64, 0u);
  };
  step();
  const auto cold = arena.counters();
  for (int i = 0; i < 10; ++i) step();
  EXPECT_EQ(arena.counters().system_allocations, cold.system_allocations);
  EXPECT_EQ(arena.counters().bytes_live, 0u);
  arena.trim();
  EXPECT_EQ(arena.counters().bytes_held, 0u);
}

TEST(Arena, EverySizeGetsAtLeastWhatItAsksForAndAtMostAQuarterMore) {
  Arena arena;
  for (size_t bytes = 1; bytes < 200000; bytes += 37) {
    const size_t before = arena.counters().bytes_live;
    const Storage storage(arena, bytes);
    const size_t got = arena.counters().bytes_live - before;
    ASSERT_GE(got, bytes);
    ASSERT_LE(got, std::max<size_t>(256, bytes + bytes / 4 + 64));
  }
}

TEST(Arena, CountsWhatWasAskedForToTheByte) {
  Arena arena;
  const auto requested = [&] { return arena.counters().bytes_requested; };
  {
    const Storage odd(arena, 1001), none(arena, 0);
    EXPECT_EQ(requested(), 1001u);
    const Tensor<float> matrix(arena, {7, 33});
    EXPECT_EQ(requested(), 1001u + 7 * 33 * 4);
    const Tensor<float> part = matrix.slice_rows(2, 3);  // shares the numbers
    Storage moved = odd;
    EXPECT_EQ(requested(), 1001u + 7 * 33 * 4);
    moved = Storage(arena, 50);
    EXPECT_EQ(requested(), 1051u + 7 * 33 * 4);
  }
  EXPECT_EQ(requested(), 0u);
  const Storage recycled(arena, 1002);
  EXPECT_EQ(requested(), 1002u);
}

TEST(Tensor, OutlivesItsArena) {
  Tensor<double> tensor;
  {
    Arena arena;
    tensor = Tensor<double>::zeros(arena, {3, 2});
  }
  tensor(2, 1) = 5;
  EXPECT_EQ(tensor.slice_rows(2, 1)(0, 1), 5);
  EXPECT_THROW(tensor.slice_rows(2, 2), Error);
  EXPECT_THROW(tensor.reshaped({7}), Error);
}

TEST(Offsets, OfLengths) {
  const std::vector<int64_t> lengths{3, 0, 2};
  const Offsets offsets = Offsets::of_lengths(lengths);
  EXPECT_EQ(offsets.count(), 3);
  EXPECT_EQ(offsets.total(), 5);
  EXPECT_EQ(offsets.length(1), 0);
  EXPECT_EQ(offsets.longest(), 3);
  EXPECT_THROW(Offsets({1, 2}), Error);
  EXPECT_THROW(Offsets({0, 2, 1}), Error);
}

}  // namespace
}  // namespace gloss
