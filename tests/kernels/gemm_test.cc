#include "gloss/kernels/gemm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "gloss/base/error.h"
#include "gloss/kernels/gemm_onednn.h"
#include "kernels/gemm_case.h"

namespace gloss::kernels {
namespace {

constexpr std::array kTransposes{Transpose::no, Transpose::yes};

bool supported(Isa isa) {
  const std::vector<Isa> all = supported_isas();
  return std::find(all.begin(), all.end(), isa) != all.end();
}

// Puts back what a test changed for the whole process.
class Restore {
 public:
  Restore() : isa_(current_isa()), backend_(gemm_backend()) {}
  ~Restore() {
    limit_isa(isa_);
    set_gemm_backend(backend_);
  }
  Restore(const Restore&) = delete;
  Restore& operator=(const Restore&) = delete;

 private:
  Isa isa_;
  GemmBackend backend_;
};

template <class T>
void run(ThreadPool& pool, const Operands<T>& o) {
  gemm<T>(pool, o.a.view(), o.c.ta, o.b.view(), o.c.tb, o.out.view(), o.c.accumulate, o.epilogue());
}

// Sizes around register tiles (6 rows), vectors (4, 8, 16), panels (8, 16, 64), blocks (96) and chains.
Case random_case(const RandomKey& key, bool long_sums) {
  constexpr std::array<int64_t, 23> kSizes{0,  1,  2,  3,  4,  5,  6,  7,  8,  11,  13, 15,
                                           16, 17, 31, 33, 48, 63, 64, 65, 97, 100, 130};
  constexpr std::array<int64_t, 5> kLong{1023, 1024, 1025, 2048, 2500};
  const auto pick = [&](uint64_t i, uint64_t bound) { return static_cast<int64_t>(key.below(i, bound)); };
  const auto size = [&](uint64_t i) { return kSizes[static_cast<size_t>(pick(i, kSizes.size()))]; };
  Case c;
  c.m = long_sums ? 1 + pick(0, 20) : size(0);
  c.n = long_sums ? 1 + pick(1, 70) : size(1);
  c.k = long_sums ? kLong[static_cast<size_t>(pick(2, kLong.size()))] : size(2);
  c.ta = kTransposes[static_cast<size_t>(pick(3, 2))];
  c.tb = kTransposes[static_cast<size_t>(pick(4, 2))];
  c.accumulate = pick(5, 2) ? Accumulate::yes : Accumulate::no;
  c.bias = pick(6, 2) != 0;
  c.keep = pick(7, 2) != 0;
  c.activation = static_cast<Activation>(pick(8, 5));
  c.slack = pick(9, 3) == 0 ? 0 : pick(10, 40);
  c.shift = pick(11, 17);
  return c;
}

class GemmOnIsa : public testing::TestWithParam<Isa> {
 protected:
  void SetUp() override {
    if (!supported(GetParam())) GTEST_SKIP() << "this CPU has no " << isa_name(GetParam());
    limit_isa(GetParam());
    ASSERT_EQ(current_isa(), GetParam());
  }
  Restore restore_;
};
INSTANTIATE_TEST_SUITE_P(EveryIsa, GemmOnIsa, testing::Values(Isa::ssse3, Isa::sse4, Isa::avx2, Isa::avx512),
                         [](const auto& each) { return std::string(isa_name(each.param)); });

TEST_P(GemmOnIsa, EqualsThePlainSumOnRaggedShapes) {
  ThreadPool pool(2);
  for (uint64_t seed = 0; seed < 150; ++seed) {
    const Operands<float> o(random_case(RandomKey(seed), seed % 5 == 0), seed);
    run(pool, o);
    const auto difference = first_difference(o, o.out.view());
    ASSERT_FALSE(difference) << *difference;
    ASSERT_TRUE(o.out.surroundings_untouched()) << o.c.text();
    ASSERT_TRUE(o.pre.surroundings_untouched()) << o.c.text();
  }
}

// Large enough to be cut for threads: down, across, and chain by chain.
TEST_P(GemmOnIsa, ThreadsAndSerialGiveTheSameBits) {
  struct Size {
    int64_t m, n, k;
  };
  for (const Size size : {Size{700, 130, 200}, {9, 700, 1500}, {40, 70, 9000}, {64, 64, 5000}}) {
    for (const Transpose ta : kTransposes) {
      for (const Transpose tb : kTransposes) {
        Case c{.m = size.m, .n = size.n, .k = size.k, .ta = ta, .tb = tb};
        c.accumulate = Accumulate::yes;
        c.bias = c.keep = true;
        c.activation = Activation::swish;
        Operands<float> o(c, 7);
        gemm_serial<float>(o.a.view(), ta, o.b.view(), tb, o.out.view(), c.accumulate, o.epilogue());
        Guarded<float> serial(c.m, c.n, 0, 0), serial_pre(c.m, c.n, 0, 0);
        serial.copy(o.out);
        serial_pre.copy(o.pre);
        for (const int threads : {1, 2, 3, 16}) {
          ThreadPool pool(threads);
          o.reset();
          run(pool, o);
          ASSERT_TRUE(same_bits(o.out.view(), serial.view())) << threads << " threads, " << c.text();
          ASSERT_TRUE(same_bits(o.pre.view(), serial_pre.view())) << threads << " threads, " << c.text();
        }
      }
    }
  }
}

TEST_P(GemmOnIsa, ARowDoesNotDependOnItsCompanyNorOnPacking) {
  ThreadPool pool(2);
  struct Size {
    int64_t n, k;
    Transpose tb;
  };
  for (const Size size : {Size{64, 64, Transpose::yes},
                          {200, 65, Transpose::yes},
                          {72, 1100, Transpose::yes},
                          {5, 33, Transpose::yes},
                          {65, 200, Transpose::no},
                          {72, 1100, Transpose::no},
                          {5, 33, Transpose::no}}) {
    const Case c{.m = 300, .n = size.n, .k = size.k, .tb = size.tb, .bias = true};
    const Operands<float> o(c, 11);
    run(pool, o);
    const PackedMatrix packed = pack(o.b.view(), size.tb);
    EXPECT_EQ(packed.rows(), c.n);
    EXPECT_EQ(packed.cols(), c.k);
    EXPECT_EQ(packed.isa(), GetParam());
    EXPECT_GE(packed.bytes(), static_cast<size_t>(c.n * c.k) * sizeof(float));
    for (const int64_t m : {1, 2, 3, 4, 5, 6, 7, 12, 13, 49, 96, 97, 131, 300}) {
      const int64_t first = (300 - m) / 2;  // rows from the middle
      const Matrix<const float> x{o.a.view().row(first), m, c.k, o.a.view().stride};
      const Matrix<float> expected{o.out.view().row(first), m, c.n, o.out.view().stride};
      const Guarded<float> plain(m, c.n, 3, 1), with_packed(m, c.n, 3, 1);
      gemm<float>(pool, x, Transpose::no, o.b.view(), size.tb, plain.view(), Accumulate::no, o.epilogue());
      ASSERT_TRUE(same_bits(plain.view(), expected)) << m << " rows of " << c.text();
      gemm_packed(pool, x, packed, with_packed.view(), Accumulate::no, o.epilogue());
      ASSERT_TRUE(same_bits(with_packed.view(), expected)) << m << " packed rows of " << c.text();
      ASSERT_TRUE(with_packed.surroundings_untouched());
    }
  }
}

TEST_P(GemmOnIsa, PermutedRowsGivePermutedResults) {
  const Case c{.m = 107, .n = 90, .k = 70, .tb = Transpose::yes};
  const Operands<float> o(c, 13);
  ThreadPool pool(1);
  run(pool, o);
  const Guarded<float> shuffled(c.m, c.k, 0, 0), out(c.m, c.n, 0, 0);
  const auto from = [&](int64_t i) { return (i * 41 + 5) % c.m; };
  for (int64_t i = 0; i < c.m; ++i) {
    std::copy_n(o.a.view().row(from(i)), c.k, shuffled.view().row(i));
  }
  gemm<float>(pool, shuffled.view(), c.ta, o.b.view(), c.tb, out.view());
  for (int64_t i = 0; i < c.m; ++i) {
    ASSERT_EQ(std::memcmp(out.view().row(i), o.out.view().row(from(i)), sizeof(float) * 90), 0) << i;
  }
}

TEST_P(GemmOnIsa, AnEmptySumIsBiasAndAnEmptyProductIsNothing) {
  ThreadPool pool(2);
  for (const Accumulate accumulate : {Accumulate::no, Accumulate::yes}) {
    const Operands<float> o(
        Case{.m = 9, .n = 70, .k = 0, .accumulate = accumulate, .bias = true, .activation = Activation::relu},
        3);
    gemm<float>(pool, {nullptr, 9, 0, 0}, Transpose::no, {nullptr, 0, 70, 70}, Transpose::no, o.out.view(),
                accumulate, o.epilogue());
    EXPECT_FALSE(first_difference(o, o.out.view())) << o.c.text();
  }
  gemm<float>(pool, {nullptr, 0, 5, 5}, Transpose::no, {nullptr, 5, 0, 0}, Transpose::no,
              Matrix<float>{nullptr, 0, 0, 0});
  const PackedMatrix nothing = pack({nullptr, 0, 4, 4});
  gemm_packed(pool, {nullptr, 0, 4, 4}, nothing, {nullptr, 0, 0, 0});
  EXPECT_EQ(nothing.bytes(), 0u);
}

TEST_P(GemmOnIsa, NotANumberReachesTheResult) {
  for (const Activation activation :
       {Activation::none, Activation::relu, Activation::swish, Activation::gelu, Activation::tanh}) {
    const Operands<float> o(Case{.m = 7, .n = 65, .k = 20, .activation = activation}, 5);
    o.a.view().row(3)[19] = std::numeric_limits<float>::quiet_NaN();
    ThreadPool pool(1);
    run(pool, o);
    for (int64_t j = 0; j < 65; ++j) {
      ASSERT_TRUE(std::isnan(o.out.view().row(3)[j]));
      ASSERT_FALSE(std::isnan(o.out.view().row(2)[j]));
    }
  }
}

TEST_P(GemmOnIsa, TasksOfAPoolMayEachRunAProduct) {
  const Case c{.m = 33, .n = 70, .k = 1100, .tb = Transpose::yes};
  const Operands<float> o(c, 17);
  ThreadPool pool(3);
  run(pool, o);
  std::array<std::unique_ptr<Guarded<float>>, 8> outs;
  for (auto& out : outs) out = std::make_unique<Guarded<float>>(c.m, c.n, 0, 0);
  pool.parallel_for(8, [&](int64_t task) {
    gemm_serial<float>(o.a.view(), c.ta, o.b.view(), c.tb, outs[static_cast<size_t>(task)]->view());
  });
  for (const auto& out : outs) EXPECT_TRUE(same_bits(out->view(), o.out.view()));
}

TEST(Gemm, Avx2AndAvx512GiveTheSameBits) {
  const Restore restore;
  if (!supported(Isa::avx512)) GTEST_SKIP() << "this CPU has no avx512";
  ThreadPool pool(2);
  for (uint64_t seed = 1000; seed < 1060; ++seed) {
    Operands<float> o(random_case(RandomKey(seed), seed % 4 == 0), seed);
    limit_isa(Isa::avx2);
    ASSERT_EQ(current_isa(), Isa::avx2);
    run(pool, o);
    Guarded<float> avx2(o.c.m, o.c.n, 0, 0);
    avx2.copy(o.out);
    limit_isa(Isa::avx512);
    ASSERT_EQ(current_isa(), Isa::avx512);
    o.reset();
    run(pool, o);
    ASSERT_TRUE(same_bits(o.out.view(), avx2.view())) << o.c.text();
  }
}

RC_GTEST_PROP(Gemm, FloatEqualsThePlainSum, ()) {
  Case c = random_case(RandomKey(*rc::gen::arbitrary<uint64_t>()), false);
  c.m = *rc::gen::inRange<int64_t>(0, 40);
  c.n = *rc::gen::inRange<int64_t>(0, 140);
  c.k = *rc::gen::inRange<int64_t>(0, 80);
  const Operands<float> o(c, 23);
  gemm_serial<float>(o.a.view(), c.ta, o.b.view(), c.tb, o.out.view(), c.accumulate, o.epilogue());
  RC_ASSERT(first_difference(o, o.out.view()).value_or("") == "");
}

TEST(Gemm, DoubleEqualsThePlainSum) {
  ThreadPool pool(2);
  for (uint64_t seed = 0; seed < 80; ++seed) {
    const Operands<double> o(random_case(RandomKey(seed), seed % 8 == 0), seed);
    run(pool, o);
    const auto difference = first_difference(o, o.out.view());
    ASSERT_FALSE(difference) << *difference;
    ASSERT_TRUE(o.out.surroundings_untouched());
  }
}

// The comparison above must be able to fail.
TEST(Gemm, TheComparisonSeesZeroSwappedOperandsAndNaN) {
  const Case c{.m = 20, .n = 20, .k = 20};
  const Operands<float> o(c, 1);
  ThreadPool pool(1);
  run(pool, o);
  ASSERT_FALSE(first_difference(o, o.out.view()));
  const Guarded<float> wrong(20, 20, 0, 0);
  EXPECT_TRUE(first_difference(o, wrong.view())) << "all NaN";
  wrong.view().row(0)[0] = 0;
  for (int64_t i = 0; i < 20; ++i) std::fill_n(wrong.view().row(i), 20, 0.0f);
  EXPECT_TRUE(first_difference(o, wrong.view())) << "all zero";
  gemm<float>(pool, o.b.view(), c.ta, o.a.view(), c.tb, wrong.view());
  EXPECT_TRUE(first_difference(o, wrong.view())) << "swapped operands";
  gemm<float>(pool, o.a.view(), Transpose::yes, o.b.view(), c.tb, wrong.view());
  EXPECT_TRUE(first_difference(o, wrong.view())) << "transposed operand";
  o.out.view().row(19)[19] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(first_difference(o, o.out.view())) << "one NaN";
}

TEST(Gemm, ErrorsNameTheNumbers) {
  const Restore restore;
  ThreadPool pool(1);
  std::vector<float> memory(100);
  const Matrix<float> a{memory.data(), 2, 3, 3}, b{memory.data() + 10, 4, 5, 5},
      c{memory.data() + 40, 2, 5, 5};
  const auto message = [](const auto& call) {
    try {
      call();
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  EXPECT_EQ(message([&] { gemm<float>(pool, a, Transpose::no, b, Transpose::no, c); }),
            "a matrix product [2, 3] x [4, 5] does not give [2, 5]: make the shapes fit");
  EXPECT_THAT(message([&] { gemm_packed(pool, a, PackedMatrix(), c); }), testing::HasSubstr("empty"));
  EXPECT_THAT(
      message([&] { (void)parse_gemm_backend("mkl"); }),
      testing::HasSubstr("unknown matrix product backend 'mkl': choose one of automatic, own, onednn"));
  if (supported_isas().size() > 1) {
    const PackedMatrix packed = pack({memory.data(), 5, 3, 3});
    limit_isa(supported_isas().front());
    EXPECT_THAT(message([&] { gemm_packed(pool, a, packed, c); }), testing::HasSubstr("pack them again"));
  }
}

class GemmOnednn : public testing::Test {
 protected:
  void SetUp() override {
    if (!supported(Isa::avx512)) GTEST_SKIP() << "oneDNN's brgemm needs avx512, which this CPU lacks";
    limit_isa(Isa::avx512);
  }
  // The same product by oneDNN; `o.out` holds ours.
  static void expect_same(ThreadPool& pool, Operands<float>& o) {
    set_gemm_backend(GemmBackend::own);
    o.reset();
    run(pool, o);
    Guarded<float> own(o.c.m, o.c.n, 0, 0), own_pre(o.c.m, o.c.n, 0, 0);
    own.copy(o.out);
    own_pre.copy(o.pre);
    set_gemm_backend(GemmBackend::onednn);
    o.reset();
    run(pool, o);
    ASSERT_TRUE(same_bits(o.out.view(), own.view())) << o.c.text();
    if (o.c.keep) {
      ASSERT_TRUE(same_bits(o.pre.view(), own_pre.view())) << o.c.text();
    }
  }
  Restore restore_;
};

TEST_F(GemmOnednn, GivesTheBitsOfOurKernel) {
  ThreadPool pool(2);
  struct Size {
    int64_t n, k;
  };
  int served = 0;
  for (const Size size : {Size{64, 64}, {128, 128}, {512, 384}, {70, 1500}, {256, 2500}, {33, 17}}) {
    for (const int64_t m : {1, 7, 8, 9, 30, 33, 250, 256, 300, 700}) {
      for (const Transpose ta : kTransposes) {
        for (const Transpose tb : kTransposes) {
          Case c{.m = m, .n = size.n, .k = size.k, .ta = ta, .tb = tb};
          c.accumulate = m % 2 ? Accumulate::yes : Accumulate::no;
          c.bias = c.keep = m % 3 == 0;
          c.activation = static_cast<Activation>(m % 5);
          Operands<float> o(c, 29);
          ASSERT_NO_FATAL_FAILURE(expect_same(pool, o));
          Product p;
          p.a = o.a.view();
          p.b = o.b.view();
          p.ta = ta;
          p.tb = tb;
          p.c = o.out.view();
          p.k = c.k;
          served += onednn_serves(p, nullptr) ? 1 : 0;
        }
      }
    }
  }
  EXPECT_GT(served, 100) << "oneDNN computed too few of the 240 products for this test to mean anything";
}

TEST_F(GemmOnednn, LeavesToUsWhatItCannotDo) {
  ThreadPool pool(2);
  Operands<float> strided(Case{.m = 20, .n = 64, .k = 64, .slack = 5, .shift = 3}, 31);
  expect_same(pool, strided);
  Operands<float> empty(Case{.m = 20, .n = 64, .k = 0, .bias = true}, 31);
  expect_same(pool, empty);
  limit_isa(Isa::avx2);
  EXPECT_THAT(gemm_description(), testing::StartsWith("own Highway kernel (avx2)"));
}

TEST_F(GemmOnednn, PackedWeightsGiveTheBitsOfOurs) {
  ThreadPool pool(2);
  struct Size {
    int64_t n, k;
  };
  for (const Size size : {Size{128, 128}, {512, 128}, {200, 512}, {64, 2048}}) {
    for (const int64_t m : {1, 5, 12, 40, 257}) {
      const Case c{.m = m, .n = size.n, .k = size.k, .tb = Transpose::yes, .bias = true};
      const Operands<float> o(c, 37);
      const Guarded<float> theirs(m, c.n, 0, 0);
      set_gemm_backend(GemmBackend::own);
      gemm_packed(pool, o.a.view(), pack(o.b.view()), o.out.view(), Accumulate::no, o.epilogue());
      set_gemm_backend(GemmBackend::onednn);
      gemm_packed(pool, o.a.view(), pack(o.b.view()), theirs.view(), Accumulate::no, o.epilogue());
      ASSERT_TRUE(same_bits(o.out.view(), theirs.view())) << c.text();
    }
  }
  EXPECT_THAT(gemm_description(), testing::StartsWith("oneDNN"));
}

TEST_F(GemmOnednn, TasksOfAPoolMayEachRunAProduct) {
  const Case c{.m = 32, .n = 128, .k = 256, .tb = Transpose::yes};
  const Operands<float> o(c, 41);
  ThreadPool pool(3);
  set_gemm_backend(GemmBackend::onednn);
  run(pool, o);
  std::array<std::unique_ptr<Guarded<float>>, 64> outs;
  for (auto& out : outs) out = std::make_unique<Guarded<float>>(c.m, c.n, 0, 0);
  pool.parallel_for(64, [&](int64_t task) {
    gemm_serial<float>(o.a.view(), c.ta, o.b.view(), c.tb, outs[static_cast<size_t>(task)]->view());
  });
  for (const auto& out : outs) EXPECT_TRUE(same_bits(out->view(), o.out.view()));
}

}  // namespace
}  // namespace gloss::kernels
