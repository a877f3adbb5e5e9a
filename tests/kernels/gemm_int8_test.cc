#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <memory>
#include <vector>

#include "gloss/base/error.h"
#include "gloss/kernels/packed_matrix.h"
#include "kernels/packed_case.h"
#include "support/isas.h"

namespace gloss::kernels {
namespace {

using ::testing::HasSubstr;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// Every form a product takes: each instruction set, and AVX-512 with VNNI (where the CPU has it) and without.
template <class Body>
void in_every_form(Body body) {
  tests::on_every_isa([&](Isa isa) {
    body(isa);
    if (!vnni_served()) return;
    SCOPED_TRACE("without VNNI");
    allow_vnni(false);
    EXPECT_FALSE(vnni_served());
    body(isa);
    allow_vnni(true);
  });
}

// Rows as int8, once more and one by one.
struct Quantised {
  std::vector<std::vector<int8_t>> numbers;
  std::vector<float> scales;

  explicit Quantised(Matrix<const float> x) {
    for (int64_t i = 0; i < x.rows; ++i) {
      float largest = 0;
      for (int64_t k = 0; k < x.cols; ++k) largest = std::max(largest, std::abs(x.row(i)[k]));
      const float scale = largest == 0 ? 0 : std::max(largest / 127, std::numeric_limits<float>::min());
      scales.push_back(scale);
      numbers.emplace_back();
      for (int64_t k = 0; k < x.cols; ++k) {
        numbers.back().push_back(scale == 0 ? int8_t{0}
                                            : static_cast<int8_t>(std::nearbyint(x.row(i)[k] * (1 / scale))));
      }
    }
  }
};

int64_t exact_sum(const std::vector<int8_t>& a, const std::vector<int8_t>& b) {
  int64_t sum = 0;
  for (size_t k = 0; k < a.size(); ++k) sum += int64_t{a[k]} * b[k];
  return sum;
}

// op(B) as weights [out, in].
std::vector<float> weights_of(const Operands<float>& o) {
  std::vector<float> weights;
  for (int64_t i = 0; i < o.c.n; ++i) {
    for (int64_t k = 0; k < o.c.k; ++k) weights.push_back(o.b_at(k, i));
  }
  return weights;
}
Quantised quantised_weights(const Operands<float>& o) {
  const std::vector<float> weights = weights_of(o);
  return Quantised({weights.data(), o.c.n, o.c.k, o.c.k});
}

// The first element that is not what the exact sum gives, bit for bit up to the activation.
std::optional<std::string> first_wrong(const Operands<float>& o) {
  const Quantised x(o.a.view()), q = quantised_weights(o);
  for (int64_t i = 0; i < o.c.m; ++i) {
    for (int64_t j = 0; j < o.c.n; ++j) {
      const auto row = static_cast<size_t>(i), col = static_cast<size_t>(j);
      float expected =
          static_cast<float>(exact_sum(x.numbers[row], q.numbers[col])) * (x.scales[row] * q.scales[col]);
      if (o.c.accumulate == Accumulate::yes) expected = o.before.view().row(i)[j] + expected;
      if (o.c.bias) expected = expected + o.bias.view().row(0)[j];
      const float got = o.out.view().row(i)[j];
      const std::string where = fmt::format("[{}, {}] of {}: {}", i, j, o.c.text(), got);
      if (o.c.keep && o.pre.view().row(i)[j] != expected) return "pre-activation at " + where;
      const double activated = reference_activation(o.c.activation, static_cast<double>(expected));
      const double allowed =
          o.c.activation == Activation::none ? 0 : 1e-6 * (1 + std::abs(static_cast<double>(expected)));
      if (!(std::abs(static_cast<double>(got) - activated) <= allowed)) return "element " + where;
    }
  }
  return std::nullopt;
}

PackedMatrix pack_weights(const Operands<float>& o) {
  return pack(o.b.view(), o.c.tb, Precision::int8);
}
TEST(GemmInt8, EqualsTheExactSum) {
  std::vector<int64_t> depths;
  for (int64_t k = 0; k <= 70; ++k) depths.push_back(k);
  for (const int64_t k : {127, 128, 129, 511, 512, 513, 1024, 2048, 4096, 9000}) depths.push_back(k);
  constexpr std::array<int64_t, 12> kWidths{1, 7, 15, 16, 17, 33, 63, 64, 65, 100, 129, 200};
  constexpr std::array<int64_t, 15> kHeights{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 40, 101};
  ThreadPool pool(2);
  int forms = 0;
  in_every_form([&](Isa) {
    ++forms;
    uint64_t seed = 0;
    for (const int64_t k : depths) {
      for (size_t i = 0; i < 3; ++i, ++seed) {
        const int64_t m = kHeights[seed % kHeights.size()], n = kWidths[seed * 7 % kWidths.size()];
        const Operands<float> o(drawn_case(m, n, k, seed), seed);
        run_packed(pool, o, Precision::int8);
        ASSERT_TRUE(o.out.surroundings_untouched()) << o.c.text();
        ASSERT_TRUE(o.pre.surroundings_untouched()) << o.c.text();
        const auto wrong = first_wrong(o);
        ASSERT_FALSE(wrong) << *wrong;
      }
    }
  });
  EXPECT_GE(forms, static_cast<int>(supported_isas().size()));
}

TEST(GemmInt8, TheComparisonSeesAnotherSum) {
  ThreadPool pool(1);
  const Operands<float> o(Case{.m = 8, .n = 40, .k = 64, .tb = Transpose::yes}, 5);
  run_packed(pool, o, Precision::int8);
  ASSERT_FALSE(first_wrong(o));
  gemm_packed(pool, o.a.view(), pack(o.b.view()), o.out.view());
  EXPECT_TRUE(first_wrong(o)) << "the product in float";
  run_packed(pool, o, Precision::int8);
  o.out.view().row(7)[39] = std::nextafter(o.out.view().row(7)[39], 1e9f);
  EXPECT_TRUE(first_wrong(o)) << "one last bit";
}

TEST(GemmInt8, EveryFormGivesTheSameBits) {
  ThreadPool pool(2);
  for (uint64_t seed = 100; seed < 130; ++seed) {
    const RandomKey key(seed);
    Case c =
        drawn_case(1 + static_cast<int64_t>(key.below(10, 30)), 1 + static_cast<int64_t>(key.below(11, 140)),
                   static_cast<int64_t>(key.below(12, 700)), seed);
    std::unique_ptr<Guarded<float>> expected;
    int compared = 0;
    in_every_form([&](Isa isa) {
      if (isa < Isa::avx2) return;
      const Operands<float> o(c, seed);
      run_packed(pool, o, Precision::int8);
      if (!expected) {
        expected = std::make_unique<Guarded<float>>(c.m, c.n, 0, 0);
        expected->copy(o.out);
      } else {
        ++compared;
        ASSERT_TRUE(same_bits(o.out.view(), expected->view())) << c.text();
      }
    });
    EXPECT_TRUE(compared >= 1 || supported_isas().back() < Isa::avx512);
  }
}

// The largest sums there are: nothing saturates on the way.
TEST(GemmInt8, TheLargestNumbersAddUpExactly) {
  ThreadPool pool(1);
  in_every_form([&](Isa) {
    for (const int64_t k :
         {int64_t{1}, int64_t{2}, int64_t{3}, int64_t{64}, int64_t{4097}, kMostInt8Inputs}) {
      std::vector<int8_t> weights(static_cast<size_t>(k) * 3);
      std::vector<float> x(static_cast<size_t>(k) * 2);
      for (size_t i = 0; i < static_cast<size_t>(k); ++i) {
        weights[i] = 127;
        weights[static_cast<size_t>(k) + i] = -128;
        weights[2 * static_cast<size_t>(k) + i] = i % 2 ? 127 : -128;
        x[i] = 1;
        x[static_cast<size_t>(k) + i] = i % 2 ? -1.0f : 1.0f;
      }
      const std::vector<float> scales{1, 1, 1};
      const PackedMatrix packed = pack_int8({weights.data(), 3, k, k}, scales);
      std::vector<float> y(6);
      gemm_packed(pool, {x.data(), 2, k, k}, packed, {y.data(), 2, 3, 3});
      const auto expect = [&](size_t at, int64_t sum) {
        EXPECT_EQ(y[at], static_cast<float>(sum) * (1.0f / 127.0f)) << at << " with " << k;
      };
      const int64_t odd = k / 2, even = k - odd;
      expect(0, k * 127 * 127);
      expect(1, k * 127 * -128);
      expect(2, 127 * (odd * 127 - even * 128));
      expect(3, 127 * (even - odd) * 127);
      expect(4, 127 * (even - odd) * -128);
      expect(5, 127 * (-even * 128 - odd * 127));
    }
  });
}

TEST(GemmInt8, RefusesSumsThatMayNotFit) {
  std::vector<int8_t> numbers(static_cast<size_t>(kMostInt8Inputs) + 1);
  std::vector<float> floats(numbers.size());
  const std::vector<float> one{1};
  const int64_t k = kMostInt8Inputs + 1;
  EXPECT_GT(k * 127 * 128, std::numeric_limits<int32_t>::max());
  EXPECT_LE(kMostInt8Inputs * 127 * 128, std::numeric_limits<int32_t>::max());
  for (const bool quantised : {false, true}) {
    try {
      if (quantised) {
        (void)pack_int8({numbers.data(), 1, k, k}, one);
      } else {
        (void)pack({floats.data(), 1, k, k}, Transpose::yes, Precision::int8);
      }
      FAIL();
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr("at most 132104 numbers exactly, not 132105"));
    }
  }
}

TEST(GemmInt8, ARowDoesNotDependOnItsCompanyNorOnThreads) {
  in_every_form([](Isa) { expect_rows_alone(Precision::int8); });
}

TEST(GemmInt8, PartsAreThoseOfTheWhole) {
  in_every_form([](Isa) { expect_parts_of_the_whole(Precision::int8); });
}

TEST(GemmInt8, RowsAreGatheredWithTheVeryNumbers) {
  in_every_form([](Isa) { expect_gathered_rows(Precision::int8); });
}

TEST(GemmInt8, HostileRowsGiveNanAndLeaveOthersAlone) {
  in_every_form([](Isa) {
    for (const float hostile : {kNan, -kNan, kInfinity, -kInfinity}) {
      for (const int64_t k : {1, 20, 67, 1500}) {
        const Operands<float> o(
            Case{.m = 7, .n = 70, .k = k, .tb = Transpose::yes, .bias = true, .activation = Activation::relu},
            5);
        for (const int64_t at : {int64_t{0}, k / 2, k - 1}) {
          const float before = o.a.view().row(3)[at], weight = o.b.view().row(68)[at];
          o.a.view().row(3)[at] = hostile;
          o.b.view().row(68)[at] = hostile;
          ThreadPool pool(1);
          run_packed(pool, o, Precision::int8);
          for (int64_t i = 0; i < 7; ++i) {
            for (int64_t j = 0; j < 70; ++j) {
              ASSERT_EQ(std::isnan(o.out.view().row(i)[j]), i == 3 || j == 68)
                  << i << ", " << j << " of " << k;
            }
          }
          o.a.view().row(3)[at] = before;
          o.b.view().row(68)[at] = weight;
        }
      }
    }
  });
}

TEST(GemmInt8, ZerosAndExtremesKeepTheirSize) {
  ThreadPool pool(1);
  in_every_form([&](Isa) {
    for (const float size : {0.0f, 1e-45f, 1e-40f, 1e-37f, 1e-20f, 1.0f, 1e20f, 3e38f}) {
      const std::vector<float> x{size, -size / 2, 0, size / 4};
      const std::vector<float> weights{1, 0, 0, 0, /**/ 0, 1, 0, 0, /**/ 0, 0, 0, 0, /**/ 0, 0, 0, 1};
      std::vector<float> y(4);
      gemm_packed(pool, {x.data(), 1, 4, 4}, pack({weights.data(), 4, 4, 4}, Transpose::yes, Precision::int8),
                  {y.data(), 1, 4, 4});
      const float allowed = std::max(size / 127, std::numeric_limits<float>::min()) * 0.6f;
      for (size_t i = 0; i < 4; ++i) EXPECT_NEAR(y[i], i == 2 ? 0.0f : x[i], allowed) << i << " of " << size;
      EXPECT_EQ(y[2], 0.0f) << "a row of weights that is zero";
    }
  });
}

TEST(GemmInt8, WeightsComeBackAsTheyWerePacked) {
  ThreadPool pool(2);
  in_every_form([&](Isa) {
    for (const int64_t n : {1, 15, 17, 64, 65, 130}) {
      for (const int64_t k : {0, 1, 2, 3, 4, 5, 63, 64, 65, 600}) {
        for (const Transpose stored : {Transpose::yes, Transpose::no}) {
          const Operands<float> o(Case{.m = 5, .n = n, .k = k, .tb = stored, .slack = 3, .shift = 1}, 9);
          const PackedMatrix packed = pack_weights(o);
          ASSERT_EQ(packed.precision(), Precision::int8);
          const Quantised expected = quantised_weights(o);
          std::vector<int8_t> numbers(static_cast<size_t>(n * k) + 8, 99);
          std::vector<float> scales(static_cast<size_t>(n));
          unpack_int8(packed, {numbers.data(), n, k, k}, scales);
          std::vector<int32_t> ids;
          for (int64_t i = 0; i < n; ++i) ids.push_back(static_cast<int32_t>(i));
          const Guarded<float> unpacked(n, k, 1, 1);
          unpack_rows(pool, packed, ids, unpacked.view());
          EXPECT_EQ(scales, expected.scales);
          for (int64_t i = 0; i < n; ++i) {
            for (int64_t p = 0; p < k; ++p) {
              const int8_t number = expected.numbers[static_cast<size_t>(i)][static_cast<size_t>(p)];
              ASSERT_EQ(numbers[static_cast<size_t>(i * k + p)], number) << i << ", " << p;
              ASSERT_EQ(unpacked.view().row(i)[p],
                        static_cast<float>(number) * expected.scales[static_cast<size_t>(i)]);
            }
          }
          ASSERT_EQ(numbers[static_cast<size_t>(n * k)], 99);
          ASSERT_GE(packed.bytes(), static_cast<size_t>(n * k + n * 4));
          ASSERT_LE(packed.bytes(), static_cast<size_t>((n + 15) / 16 * 16 * ((k + 3) / 4 * 4 + 8)));

          const PackedMatrix again = pack_int8({numbers.data(), n, k, k}, scales);
          const Guarded<float> first(5, n, 0, 0), second(5, n, 0, 0);
          gemm_packed(pool, o.a.view(), packed, first.view());
          gemm_packed(pool, o.a.view(), again, second.view());
          ASSERT_TRUE(same_bits(first.view(), second.view()));
        }
      }
    }
  });
}

TEST(GemmInt8, KeepsTheFormItWasPackedIn) {
  if (!vnni_served()) GTEST_SKIP() << "this CPU has no AVX512_VNNI";
  const Operands<float> o(Case{.m = 9, .n = 70, .k = 100, .tb = Transpose::yes}, 3);
  ThreadPool pool(1);
  const PackedMatrix with = pack_weights(o);
  allow_vnni(false);
  const PackedMatrix without = pack_weights(o);
  EXPECT_NE(with.bytes(), without.bytes());  // the starts of the sums
  gemm_packed(pool, o.a.view(), with, o.out.view());
  EXPECT_FALSE(first_wrong(o));
  allow_vnni(true);
  gemm_packed(pool, o.a.view(), without, o.out.view());
  EXPECT_FALSE(first_wrong(o));
}

TEST(GemmInt8, ManyThreadsShareOnePackedMatrix) {
  in_every_form([](Isa) { expect_shared_among_threads(Precision::int8); });
}

TEST(GemmInt8, ErrorsNameTheNumbers) {
  std::vector<int8_t> numbers(20);
  std::vector<float> floats(20);
  const auto message = [](const auto& call) {
    try {
      call();
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  EXPECT_EQ(message([&] {
              (void)pack_int8({numbers.data(), 4, 5, 5}, std::span(floats).first(3));
            }),
            "weights of 4 outputs have 3 scales: make them equal");
  const PackedMatrix in_float = pack({floats.data(), 4, 5, 5});
  EXPECT_EQ(message([&] {
              unpack_int8(in_float, {numbers.data(), 4, 5, 5}, std::span(floats).first(4));
            }),
            "weights packed in float32 have no numbers of int8");
  const PackedMatrix packed = pack_int8({numbers.data(), 4, 5, 5}, std::span(floats).first(4));
  EXPECT_EQ(message([&] {
              unpack_int8(packed, {numbers.data(), 5, 4, 4}, std::span(floats).first(4));
            }),
            "int8 weights [4, 5] do not fit into [5, 4] with 4 scales: make the shapes fit");
}

}  // namespace
}  // namespace gloss::kernels
