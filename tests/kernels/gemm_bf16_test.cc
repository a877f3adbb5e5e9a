#include "gloss/kernels/gemm_bf16.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "gloss/base/error.h"
#include "gloss/kernels/gemm.h"
#include "kernels/bf16_reference.h"
#include "kernels/packed_case.h"
#include "support/isas.h"

namespace gloss::kernels {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

class GemmBf16 : public testing::Test {
 protected:
  void SetUp() override {
    if (!precision_served(Precision::bfloat16)) GTEST_SKIP() << "this CPU has no AVX512_BF16";
  }
};

PackedMatrix pack_bf16(Matrix<const float> weights, Transpose stored = Transpose::yes) {
  return pack(weights, stored, Precision::bfloat16);
}

// What came against the double sum of the rounded operands.
std::optional<std::string> difference_from_rounded(const Operands<float>& o) {
  round_to_bf16(o.a.view());
  round_to_bf16(o.b.view());
  return first_difference(o, o.out.view());
}

TEST_F(GemmBf16, EqualsThePlainSumOfRoundedOperands) {
  std::vector<int64_t> depths;
  for (int64_t k = 0; k <= 70; ++k) depths.push_back(k);
  for (const int64_t k : {511, 512, 513, 1023, 1024, 1025, 2048, 2051, 4096}) depths.push_back(k);
  constexpr std::array<int64_t, 11> kWidths{1, 15, 16, 17, 33, 63, 64, 65, 100, 129, 200};
  constexpr std::array<int64_t, 15> kHeights{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 40, 101};
  ThreadPool pool(2);
  uint64_t seed = 0;
  for (const int64_t k : depths) {
    for (size_t i = 0; i < 5; ++i, ++seed) {
      const int64_t m = kHeights[seed % kHeights.size()], n = kWidths[seed * 7 % kWidths.size()];
      const Operands<float> o(drawn_case(m, n, k, seed), seed);
      run_packed(pool, o, Precision::bfloat16);
      ASSERT_TRUE(o.out.surroundings_untouched()) << o.c.text();
      ASSERT_TRUE(o.pre.surroundings_untouched()) << o.c.text();
      const auto difference = difference_from_rounded(o);
      ASSERT_FALSE(difference) << *difference;
    }
  }
}

// Without rounding the numbers differ by far more than the tolerance, so the comparison above can fail.
TEST_F(GemmBf16, TheComparisonSeesOperandsThatWereNotRounded) {
  ThreadPool pool(1);
  const Operands<float> o(Case{.m = 8, .n = 40, .k = 64, .tb = Transpose::yes}, 5);
  run_packed(pool, o, Precision::bfloat16);
  EXPECT_TRUE(first_difference(o, o.out.view()));
  gemm_packed(pool, o.a.view(), pack(o.b.view()), o.out.view());
  EXPECT_TRUE(difference_from_rounded(o));
}

TEST_F(GemmBf16, RoundsToNearestEvenAndLetsInfinityAndNanPass) {
  constexpr float kMin = std::numeric_limits<float>::min(), kMax = std::numeric_limits<float>::max();
  std::vector<float> values{0.0f,       1.0f,       1.00390625f, 1.01171875f,   1.0039063f,   -1.00390625f,
                            3.1415927f, kMin,       kMin / 2,    -kMin / 4,     kMax,         -kMax,
                            kInfinity,  -kInfinity, 1e-30f,      3.3895314e38f, 3.3961776e38f};
  for (uint64_t i = 0; i < 500; ++i)
    values.push_back(static_cast<float>(std::exp(40 * RandomKey(1).normal(i))));
  const auto count = static_cast<int64_t>(values.size());
  const Matrix<float> column{values.data(), count, 1, 1};
  ThreadPool pool(1);

  const PackedMatrix packed = pack_bf16(column);
  EXPECT_EQ(packed.precision(), Precision::bfloat16);
  const float one = 1;
  std::vector<float> products(values.size());
  gemm_packed(pool, column, pack_bf16({&one, 1, 1, 1}), {products.data(), count, 1, 1});
  for (int64_t i = 0; i < count; ++i) {
    const auto at = static_cast<size_t>(i);
    float unpacked = kNan;
    unpack_row(packed, i, &unpacked);
    EXPECT_EQ(unpacked, to_bf16(values[at])) << values[at];
    EXPECT_EQ(products[at], to_bf16(values[at])) << values[at];
  }
  float nan = kNan, unpacked = 0;
  unpack_row(pack_bf16({&nan, 1, 1, 1}), 0, &unpacked);
  EXPECT_TRUE(std::isnan(unpacked));
}

TEST_F(GemmBf16, PackedRowsComeBackRounded) {
  ThreadPool pool(2);
  for (const int64_t rows : {1, 15, 17, 64, 65, 130}) {
    for (const int64_t cols : {0, 1, 2, 3, 31, 32, 33, 65, 600}) {
      const Operands<float> o(
          Case{.m = 1, .n = rows, .k = cols, .tb = Transpose::yes, .slack = 3, .shift = 1}, 9);
      const PackedMatrix packed = pack_bf16(o.b.view());
      std::vector<int32_t> ids;
      for (int64_t i = 0; i < rows; ++i) ids.push_back(static_cast<int32_t>(rows - 1 - i));
      const Guarded<float> got(rows, cols, 1, 1), expected(rows, cols, 0, 0);
      unpack_rows(pool, packed, ids, got.view());
      for (int64_t i = 0; i < rows; ++i)
        std::copy_n(o.b.view().row(rows - 1 - i), cols, expected.view().row(i));
      round_to_bf16(expected.view());
      ASSERT_TRUE(same_bits(got.view(), expected.view())) << rows << " x " << cols;
      ASSERT_TRUE(got.surroundings_untouched());
      const int64_t steps = (cols + 1) / 2, padded = (rows + 15) / 16 * 16;
      EXPECT_EQ(packed.bytes(), static_cast<size_t>(padded * steps * 4));
    }
  }
}

TEST_F(GemmBf16, ARowDoesNotDependOnItsCompanyNorOnThreads) {
  expect_rows_alone(Precision::bfloat16);
}

TEST_F(GemmBf16, PartsAreThoseOfTheWhole) {
  expect_parts_of_the_whole(Precision::bfloat16);
}

TEST_F(GemmBf16, RowsAreGatheredWithTheVeryNumbers) {
  expect_gathered_rows(Precision::bfloat16);
}

TEST_F(GemmBf16, HostileRowsAndColumnsStayAmongThemselves) {
  for (const float hostile : {kNan, kInfinity, -kInfinity}) {
    for (const int64_t k : {1, 20, 21, 1500}) {
      const Operands<float> o(Case{.m = 7, .n = 70, .k = k, .tb = Transpose::yes}, 5);
      o.a.view().row(3)[k - 1] = hostile;
      o.b.view().row(68)[k / 2] = hostile;
      ThreadPool pool(1);
      run_packed(pool, o, Precision::bfloat16);
      for (int64_t i = 0; i < 7; ++i) {
        for (int64_t j = 0; j < 70; ++j) {
          ASSERT_EQ(std::isfinite(o.out.view().row(i)[j]), i != 3 && j != 68)
              << i << ", " << j << " of " << k;
          if (std::isnan(hostile) && (i == 3 || j == 68)) {
            ASSERT_TRUE(std::isnan(o.out.view().row(i)[j]));
          }
        }
      }
    }
  }
}

TEST_F(GemmBf16, ManyThreadsShareOnePackedMatrix) {
  expect_shared_among_threads(Precision::bfloat16);
}

// --- Products of weights that are not packed: forward, dX and dW ---

void run_plain(ThreadPool& pool, const Operands<float>& o) {
  gemm<float>(pool, o.a.view(), o.c.ta, o.b.view(), o.c.tb, o.out.view(), o.c.accumulate, o.epilogue(),
              Precision::bfloat16);
}

TEST_F(GemmBf16, EveryTransposeEqualsThePlainSumOfRoundedOperands) {
  constexpr std::array<int64_t, 22> kDepths{0,  1,  2,  3,   7,   15,  16,   17,   31,   32,   33,
                                            63, 64, 65, 127, 511, 513, 1024, 1025, 2049, 4096, 5001};
  constexpr std::array<int64_t, 12> kWidths{1, 15, 16, 17, 33, 48, 63, 64, 65, 100, 129, 200};
  constexpr std::array<int64_t, 17> kHeights{1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 95, 96, 97, 101, 200};
  ThreadPool pool(2);
  uint64_t seed = 0;
  for (const int64_t k : kDepths) {
    for (const Transpose ta : {Transpose::no, Transpose::yes}) {
      for (const Transpose tb : {Transpose::no, Transpose::yes}) {
        for (int i = 0; i < 3; ++i, ++seed) {
          Case c =
              drawn_case(kHeights[seed * 5 % kHeights.size()], kWidths[seed * 7 % kWidths.size()], k, seed);
          c.ta = ta;
          c.tb = tb;
          const Operands<float> o(c, seed);
          run_plain(pool, o);
          ASSERT_TRUE(o.out.surroundings_untouched()) << o.c.text();
          ASSERT_TRUE(o.pre.surroundings_untouched()) << o.c.text();
          const auto difference = difference_from_rounded(o);
          ASSERT_FALSE(difference) << *difference;
        }
      }
    }
  }
}

TEST_F(GemmBf16, PackedAndPlainWeightsGiveTheSameBits) {
  ThreadPool pool(2);
  for (const Transpose tb : {Transpose::no, Transpose::yes}) {
    for (const int64_t m : {1, 2, 5, 13, 100, 300}) {
      for (const int64_t k : {33, 1024, 2500}) {
        const Case c{.m = m, .n = 130, .k = k, .tb = tb, .bias = true, .activation = Activation::gelu};
        const Operands<float> o(c, 21);
        const Guarded<float> plain(m, c.n, 3, 1);
        run_packed(pool, o, Precision::bfloat16);
        gemm<float>(pool, o.a.view(), c.ta, o.b.view(), tb, plain.view(), Accumulate::no, o.epilogue(),
                    Precision::bfloat16);
        ASSERT_TRUE(same_bits(plain.view(), o.out.view())) << c.text();
      }
    }
  }
}

// Large enough to be cut for threads: down, across, and chain by chain.
TEST_F(GemmBf16, ThreadsAndSerialGiveTheSameBits) {
  struct Size {
    int64_t m, n, k;
  };
  for (const Size size : {Size{700, 130, 200}, {9, 700, 1500}, {40, 70, 9001}, {64, 64, 5000}}) {
    for (const Transpose ta : {Transpose::no, Transpose::yes}) {
      for (const Transpose tb : {Transpose::no, Transpose::yes}) {
        Case c{.m = size.m, .n = size.n, .k = size.k, .ta = ta, .tb = tb, .accumulate = Accumulate::yes};
        c.bias = c.keep = true;
        c.activation = Activation::swish;
        Operands<float> o(c, 7);
        gemm_serial<float>(o.a.view(), ta, o.b.view(), tb, o.out.view(), c.accumulate, o.epilogue(),
                           Precision::bfloat16);
        Guarded<float> serial(c.m, c.n, 0, 0), serial_pre(c.m, c.n, 0, 0);
        serial.copy(o.out);
        serial_pre.copy(o.pre);
        for (const int threads : {1, 2, 3, 16}) {
          ThreadPool pool(threads);
          o.reset();
          run_plain(pool, o);
          ASSERT_TRUE(same_bits(o.out.view(), serial.view())) << threads << " threads, " << c.text();
          ASSERT_TRUE(same_bits(o.pre.view(), serial_pre.view())) << threads << " threads, " << c.text();
        }
      }
    }
  }
}

TEST_F(GemmBf16, HostileNumbersStayInTheirRowsAndColumnsWithoutPacking) {
  for (const Transpose ta : {Transpose::no, Transpose::yes}) {
    for (const Transpose tb : {Transpose::no, Transpose::yes}) {
      for (const int64_t k : {1, 37, 1500}) {
        const Operands<float> o(Case{.m = 20, .n = 70, .k = k, .ta = ta, .tb = tb}, 5);
        (ta == Transpose::yes ? o.a.view().row(k - 1)[13] : o.a.view().row(13)[k - 1]) = kInfinity;
        (tb == Transpose::yes ? o.b.view().row(68)[k / 2] : o.b.view().row(k / 2)[68]) = kNan;
        ThreadPool pool(1);
        run_plain(pool, o);
        for (int64_t i = 0; i < 20; ++i) {
          for (int64_t j = 0; j < 70; ++j) {
            const float value = o.out.view().row(i)[j];
            ASSERT_EQ(std::isfinite(value), i != 13 && j != 68) << i << ", " << j << " of " << k;
            ASSERT_EQ(std::isnan(value), j == 68) << i << ", " << j << " of " << k;
          }
        }
      }
    }
  }
}

TEST_F(GemmBf16, TheBackendForFloatsDoesNotMatter) {
  const GemmBackend before = gemm_backend();
  const Case c{.m = 64, .n = 128, .k = 256, .tb = Transpose::yes};
  const Operands<float> o(c, 23);
  const Guarded<float> other(c.m, c.n, 0, 0);
  ThreadPool pool(1);
  run_plain(pool, o);
  set_gemm_backend(GemmBackend::onednn);
  gemm<float>(pool, o.a.view(), c.ta, o.b.view(), c.tb, other.view(), Accumulate::no, {},
              Precision::bfloat16);
  set_gemm_backend(before);
  EXPECT_TRUE(same_bits(other.view(), o.out.view()));
}

TEST(GemmPrecision, RefusesWhatItCannotDo) {
  std::vector<float> memory(100);
  std::vector<double> doubles(100);
  ThreadPool pool(1);
  const auto message = [](const auto& call) {
    try {
      call();
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  const auto in = [&](Precision precision) {
    return message([&] {
      gemm<float>(pool, {memory.data(), 2, 3, 3}, Transpose::no, {memory.data() + 10, 3, 4, 4}, Transpose::no,
                  {memory.data() + 50, 2, 4, 4}, Accumulate::no, {}, precision);
    });
  };
  EXPECT_EQ(in(Precision::float32), "no error");
  EXPECT_EQ(in(Precision::int8),
            "a product in int8 needs packed weights: pack them, or choose another precision");
  EXPECT_EQ(message([&] {
              gemm<double>(pool, {doubles.data(), 2, 3, 3}, Transpose::no, {doubles.data() + 10, 3, 4, 4},
                           Transpose::no, {doubles.data() + 50, 2, 4, 4}, Accumulate::no, {},
                           Precision::bfloat16);
            }),
            "a product of double precision cannot be rounded to bfloat16: choose float32");
  tests::on_every_isa([&](Isa) {
    EXPECT_THAT(
        in(Precision::bfloat16),
        testing::HasSubstr(precision_served(Precision::bfloat16) ? "no error" : "choose float32 or int8"));
  });
}

TEST(GemmPrecision, IsDescribed) {
  tests::on_every_isa([](Isa isa) {
    EXPECT_EQ(gemm_description(Precision::bfloat16),
              precision_served(Precision::bfloat16) ? "AVX512_BF16" : "not on this CPU");
    EXPECT_THAT(gemm_description(Precision::int8),
                testing::HasSubstr(vnni_served() ? "AVX512_VNNI" : std::string(isa_name(isa))));
    EXPECT_THAT(gemm_description(), testing::HasSubstr(std::string(isa_name(isa))));
  });
}

TEST(GemmBf16Refusal, NamesWhatIsMissing) {
  std::vector<float> memory(100);
  tests::on_every_isa([&](Isa isa) {
    if (precision_served(Precision::bfloat16)) return;
    try {
      (void)pack_bf16({memory.data(), 5, 3, 3});
      FAIL() << isa_name(isa);
    } catch (const UsageError& error) {
      EXPECT_THAT(error.what(), testing::HasSubstr("choose float32 or int8"));
    }
  });
}

}  // namespace
}  // namespace gloss::kernels
