#include "gloss/base/large_memory.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <new>

namespace gloss {
namespace {

TEST(LargeMemory, IsAlignedAndWritableToItsEnd) {
  constexpr size_t kHuge = size_t{2} << 20;
  for (const size_t bytes : {size_t{0}, size_t{1}, size_t{100}, kHuge - 1, kHuge, 3 * kHuge + 17}) {
    const std::unique_ptr<void, FreeLarge> memory(allocate_large(bytes), FreeLarge{bytes});
    ASSERT_NE(memory, nullptr);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(memory.get()) % (bytes < kHuge ? 64 : kHuge), 0u) << bytes;
    std::memset(memory.get(), 1, bytes);
  }
}

TEST(LargeMemory, RefusesWhatThereIsNot) {
  for (const size_t bytes : {SIZE_MAX, SIZE_MAX - 100, SIZE_MAX / 2}) {
    EXPECT_THROW(allocate_large(bytes), std::bad_alloc) << bytes;
  }
}

}  // namespace
}  // namespace gloss
