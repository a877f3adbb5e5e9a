// Rounding to bfloat16 against arithmetic that knows no bits.
#include "gloss/kernels/bfloat16.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "support/isas.h"
#include "support/random.h"

namespace gloss::kernels {
namespace {

float widened(Bfloat16 x) {
  return std::bit_cast<float>(static_cast<uint32_t>(x.bits) << 16);
}

// The nearest number with eight significant bits and exponents of float, ties to even.
float reference(float x) {
  if (!std::isfinite(x)) return x;
  int exponent = 0;
  std::frexp(x, &exponent);                                           // |x| in [2^(exponent - 1), 2^exponent)
  const double step = std::ldexp(1.0, std::max(exponent, -125) - 8);  // subnormals have that of 2^-126
  const double rounded = std::nearbyint(static_cast<double>(x) / step) * step;
  if (std::abs(rounded) >= 0x1p128) return std::copysign(std::numeric_limits<float>::infinity(), x);
  return static_cast<float>(rounded);
}

std::vector<Bfloat16> rounded(const std::vector<float>& from) {
  std::vector<Bfloat16> to(from.size());
  store_numbers(from.data(), static_cast<int64_t>(from.size()), to.data());
  return to;
}

// Every upper half - all exponents, signs, NaN and infinity - with lower halves around the tie.
TEST(Bfloat16, IsTheNearestNumberOnEveryInstructionSet) {
  std::vector<float> from;
  for (uint32_t upper = 0; upper <= 0xffff; ++upper) {
    for (const uint32_t lower : {0u, 1u, 0x7fffu, 0x8000u, 0x8001u, 0xffffu})
      from.push_back(std::bit_cast<float>(upper << 16 | lower));
  }
  tests::on_every_isa([&](Isa) {
    const std::vector<Bfloat16> got = rounded(from);
    int64_t wrong = 0, lost = 0;
    for (size_t i = 0; i < from.size(); ++i) {
      const float back = widened(got[i]), want = reference(from[i]);
      wrong += std::isnan(want) ? !std::isnan(back)
                                : std::bit_cast<uint32_t>(back) != std::bit_cast<uint32_t>(want);
      lost += back != from[i];
    }
    EXPECT_EQ(wrong, 0);
    EXPECT_GT(lost, 65536);  // most of these numbers are not of bfloat16
  });
}

TEST(Bfloat16, KeepsWhatItRoundedAndNothingElseIsWritten) {
  constexpr Bfloat16 kMark{0x1234};
  tests::on_every_isa([&](Isa) {
    for (int64_t count = 0; count <= 50; ++count) {
      const std::vector<float> from = tests::random_values<float>(count, static_cast<uint64_t>(count));
      std::vector<Bfloat16> to(static_cast<size_t>(count) + 40, kMark);
      store_numbers(from.data(), count, to.data() + 3);
      for (int64_t i = 0; i < std::ssize(to); ++i) {
        const Bfloat16 got = to[static_cast<size_t>(i)];
        if (i < 3 || i >= count + 3) {
          EXPECT_EQ(got, kMark);
          continue;
        }
        const float want = reference(from[static_cast<size_t>(i - 3)]);
        EXPECT_EQ(widened(got), want);
        EXPECT_EQ(rounded({widened(got)})[0], got);
      }
    }
  });
}

TEST(Bfloat16, OtherNumbersAreCopied) {
  const std::vector<double> from = tests::random_values<double>(5, 1);
  std::vector<double> to(5);
  store_numbers(from.data(), 5, to.data());
  EXPECT_TRUE(tests::same_bits(to, from));
}

}  // namespace
}  // namespace gloss::kernels
