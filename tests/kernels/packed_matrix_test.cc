#include "gloss/kernels/packed_matrix.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "gloss/base/error.h"
#include "kernels/packed_case.h"
#include "support/isas.h"

namespace gloss::kernels {
namespace {

using ::testing::HasSubstr;

std::string message(const auto& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

// Widths around vectors (4, 8, 16) and panels (8, 16, 64), and what is left of them.
constexpr int64_t kRows[] = {1, 3, 8, 15, 16, 17, 33, 63, 64, 65, 100, 130};
constexpr int64_t kCols[] = {0, 1, 2, 3, 5, 64, 71};

TEST(PackedMatrix, GivesItsRowsBack) {
  ThreadPool pool(3);
  tests::on_every_isa([&](Isa) {
    for (const int64_t rows : kRows) {
      for (const int64_t cols : kCols) {
        Guarded<float> weights(rows, cols, 3, 1);
        const Guarded<float> transposed(cols, rows, 2, 5);
        weights.fill(RandomKey(static_cast<uint64_t>(rows * 100 + cols)));
        for (int64_t i = 0; i < rows; ++i) {
          for (int64_t j = 0; j < cols; ++j) transposed.view().row(j)[i] = weights.view().row(i)[j];
        }
        for (const bool stored_transposed : {false, true}) {
          const PackedMatrix packed =
              stored_transposed ? pack(transposed.view(), Transpose::no) : pack(weights.view());
          ASSERT_EQ(packed.rows(), rows);
          ASSERT_EQ(packed.cols(), cols);
          const Guarded<float> one(rows, cols, 1, 3);
          for (int64_t i = 0; i < rows; ++i) unpack_row(packed, i, one.view().row(i));
          ASSERT_TRUE(same_bits(one.view(), weights.view())) << rows << " x " << cols;
          ASSERT_TRUE(one.surroundings_untouched());
          std::vector<int32_t> wanted;
          for (int64_t i = 0; i < 40; ++i) wanted.push_back(static_cast<int32_t>((i * 7 + 2) % rows));
          const Guarded<float> several(40, cols, 1, 3);
          unpack_rows(pool, packed, wanted, several.view());
          for (int64_t i = 0; i < 40; ++i) {
            ASSERT_EQ(std::memcmp(several.view().row(i), weights.view().row(wanted[static_cast<size_t>(i)]),
                                  static_cast<size_t>(cols) * sizeof(float)),
                      0);
          }
          ASSERT_TRUE(several.surroundings_untouched());
        }
      }
    }
  });
}

TEST(PackedMatrix, IsReadOnAnotherInstructionSet) {
  if (supported_isas().size() < 2) GTEST_SKIP() << "this CPU has one instruction set only";
  const Isa before = current_isa();
  Guarded<float> weights(70, 20, 0, 0);
  weights.fill(RandomKey(3));
  const PackedMatrix packed = pack(weights.view());
  limit_isa(supported_isas().front());
  const Guarded<float> out(70, 20, 0, 0);
  for (int64_t i = 0; i < 70; ++i) unpack_row(packed, i, out.view().row(i));
  ThreadPool pool(1);
  EXPECT_THAT(message([&] { gather_rows(pool, packed, std::vector<int32_t>{1}); }),
              HasSubstr("pack them again"));
  limit_isa(before);
  EXPECT_TRUE(same_bits(out.view(), weights.view()));
}

TEST(PackedMatrix, PartsAreThoseOfTheWhole) {
  tests::on_every_isa([](Isa) { expect_parts_of_the_whole(Precision::float32); });
}

TEST(PackedMatrix, RowsAreGatheredWithTheVeryNumbers) {
  tests::on_every_isa([](Isa) { expect_gathered_rows(Precision::float32); });
}

TEST(PackedMatrix, IsTheSameFromAFewRowsAtATime) {
  ThreadPool pool(2);
  tests::on_every_isa([&](Isa) {
    for (const Precision precision : {Precision::float32, Precision::bfloat16, Precision::int8}) {
      if (!precision_served(precision)) continue;
      for (const int64_t rows_of_all : {1, 64, 65, 200, 320}) {
        constexpr int64_t kIn = 37;
        Guarded<float> weights(rows_of_all, kIn, 3, 1), x(5, kIn, 0, 0);
        const Guarded<float> whole(5, rows_of_all, 0, 0), parts(5, rows_of_all, 0, 0);
        weights.fill(RandomKey(3));
        x.fill(RandomKey(4));
        gemm_packed(pool, x.view(), pack(weights.view(), Transpose::yes, precision), whole.view());
        for (const int64_t step : {64, 128}) {
          Packer packer(rows_of_all, kIn, precision);
          for (int64_t first = (rows_of_all - 1) / step * step; first >= 0; first -= step) {  // backwards
            const int64_t count = std::min(step, rows_of_all - first);
            packer.add(first, rows<const float>(weights.view(), first, count));
          }
          gemm_packed(pool, x.view(), std::move(packer).finish(), parts.view());
          ASSERT_TRUE(same_bits(parts.view(), whole.view()))
              << precision_name(precision) << ", " << rows_of_all << " rows by " << step;
        }
      }
    }
  });
}

TEST(PackedMatrix, RefusesRowsThatMakeNoPanels) {
  const std::vector<float> numbers(100 * 4);
  const auto refused = [&](int64_t first, int64_t count, int64_t cols) {
    return message([&] {
      Packer(100, 4, Precision::float32).add(first, {numbers.data(), count, cols, cols});
    });
  };
  EXPECT_EQ(refused(0, 100, 4), "no error");
  EXPECT_EQ(refused(64, 36, 4), "no error");
  EXPECT_THAT(refused(1, 64, 4), HasSubstr("whole panels of 64"));
  EXPECT_THAT(refused(0, 63, 4), HasSubstr("whole panels of 64"));
  EXPECT_THAT(refused(64, 64, 4), HasSubstr("do not fit into weights [100, 4]"));
  EXPECT_THAT(refused(-64, 64, 4), HasSubstr("do not fit"));
  EXPECT_THAT(refused(0, 64, 3), HasSubstr("do not fit"));
  EXPECT_THAT(message([] {
                Packer(1, 1, Precision::float32).add_int8(0, {nullptr, 1, 1, 1}, {});
              }),
              HasSubstr("1 outputs have 0 scales"));
}

TEST(PackedMatrix, RefusesRowsItHasNot) {
  std::vector<float> memory(100);
  ThreadPool pool(1);
  const PackedMatrix packed = pack({memory.data(), 5, 3, 3});
  EXPECT_EQ(message([&] { unpack_row(packed, 5, memory.data()); }), "packed weights of 5 rows have no row 5");
  EXPECT_THAT(message([&] { unpack_row(packed, -1, memory.data()); }), HasSubstr("no row -1"));
  EXPECT_THAT(message([&] { unpack_row(PackedMatrix(), 0, memory.data()); }), HasSubstr("no row 0"));
  const std::vector<int32_t> ids{1, 7};
  EXPECT_THAT(message([&] {
                unpack_rows(pool, packed, ids, {memory.data(), 2, 3, 3});
              }),
              HasSubstr("no row 7"));
  EXPECT_THAT(message([&] { gather_rows(pool, packed, ids); }), HasSubstr("5 rows have no row 7"));
  EXPECT_THAT(message([&] { gather_rows(pool, PackedMatrix(), ids); }), HasSubstr("no packed weights"));
  EXPECT_EQ(gather_rows(pool, packed, {}).rows(), 0);
  EXPECT_EQ(message([&] {
              unpack_rows(pool, packed, ids, {memory.data(), 2, 4, 4});
            }),
            "2 rows of packed weights [5, 3] do not fit into [2, 4]: make the shapes fit");
}

}  // namespace
}  // namespace gloss::kernels
