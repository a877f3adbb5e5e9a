#include "gloss/kernels/isa.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <thread>

#include "gloss/base/error.h"
#include "gloss/kernels/scratch.h"
#include "support/isas.h"

namespace gloss::kernels {
namespace {

using ::testing::HasSubstr;

TEST(InstructionSets, RunWhatTheySay) {
  const std::vector<Isa> isas = supported_isas();
  ASSERT_FALSE(isas.empty());
  EXPECT_TRUE(std::is_sorted(isas.begin(), isas.end()));
  int ran = 0;
  tests::on_every_isa([&](Isa isa) {
    EXPECT_EQ(current_isa(), isa);
    EXPECT_EQ(parse_isa(isa_name(isa)), isa);
    ++ran;
  });
  EXPECT_EQ(ran, static_cast<int>(isas.size()));
}

TEST(InstructionSets, RefuseUnknownNames) {
  for (const char* name : {"", "avx", "AVX2", "neon", "avx2 "}) {
    try {
      parse_isa(name);
      FAIL() << name;
    } catch (const UsageError& error) {
      EXPECT_THAT(error.what(), HasSubstr("ssse3, sse4, avx2, avx512"));
    }
  }
}

TEST(InstructionSets, AreLimitedByTheEnvironment) {
  const Isa before = current_isa();
  ASSERT_EQ(setenv("GLOSS_ISA", "sse4", 1), 0);
  limit_isa_from_environment();
  EXPECT_EQ(current_isa(), Isa::sse4);
  ASSERT_EQ(setenv("GLOSS_ISA", "pentium", 1), 0);
  EXPECT_THROW(limit_isa_from_environment(), UsageError);
  EXPECT_EQ(current_isa(), Isa::sse4);
  ASSERT_EQ(unsetenv("GLOSS_ISA"), 0);
  limit_isa_from_environment();  // nothing said, nothing changed
  EXPECT_EQ(current_isa(), Isa::sse4);
  limit_isa(before);
}

TEST(Scratch, NestsAndIsAligned) {
  const Scratch<float> a(100);
  float* inner = nullptr;
  {
    const Scratch<double> b(7);
    inner = reinterpret_cast<float*>(b.data());
    EXPECT_NE(static_cast<void*>(a.data()), static_cast<void*>(b.data()));
    EXPECT_EQ(reinterpret_cast<uintptr_t>(b.data()) % 64, 0u);
  }
  const Scratch<float> c(5), empty(0);
  EXPECT_EQ(c.data(), inner);  // the same memory again
  EXPECT_NE(empty.data(), nullptr);
  float* other = nullptr;
  std::thread([&] {
    const Scratch<float> d(5);
    other = d.data();
    EXPECT_NE(other, a.data());
    EXPECT_NE(other, c.data());
  }).join();
}

}  // namespace
}  // namespace gloss::kernels
