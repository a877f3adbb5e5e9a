// What products with packed weights keep in every precision.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "gloss/kernels/packed_matrix.h"
#include "kernels/gemm_case.h"

namespace gloss::kernels {

// A product of plain or transposed weights with everything else drawn from `seed`.
inline Case drawn_case(int64_t m, int64_t n, int64_t k, uint64_t seed) {
  const RandomKey key(seed);
  Case c{.m = m, .n = n, .k = k};
  c.tb = key.below(0, 2) ? Transpose::yes : Transpose::no;
  c.accumulate = key.below(1, 2) ? Accumulate::yes : Accumulate::no;
  c.bias = key.below(2, 2) != 0;
  c.keep = key.below(3, 2) != 0;
  c.activation = static_cast<Activation>(key.below(4, 5));
  c.slack = static_cast<int64_t>(key.below(5, 30));
  c.shift = static_cast<int64_t>(key.below(6, 17));
  return c;
}

inline void run_packed(ThreadPool& pool, const Operands<float>& o, Precision precision) {
  gemm_packed(pool, o.a.view(), pack(o.b.view(), o.c.tb, precision), o.out.view(), o.c.accumulate,
              o.epilogue());
}

// A row's result is the same to the bit whatever the other rows, their number and the threads.
inline void expect_rows_alone(Precision precision) {
  struct Size {
    int64_t n, k;
  };
  for (const Size size : {Size{64, 64}, {200, 65}, {72, 1100}, {5, 33}, {520, 2500}, {20, 9000}}) {
    const Case c{.m = 600, .n = size.n, .k = size.k, .tb = Transpose::yes, .bias = true};
    const Operands<float> o(c, 11);
    ThreadPool one(1);
    const PackedMatrix packed = pack(o.b.view(), c.tb, precision);
    gemm_packed(one, o.a.view(), packed, o.out.view(), Accumulate::no, o.epilogue());
    for (const int threads : {1, 2, 3, 16}) {
      ThreadPool pool(threads);
      for (const int64_t m : {1, 2, 3, 4, 5, 6, 7, 12, 13, 49, 96, 97, 131, 600}) {
        const int64_t first = (c.m - m) / 2;  // rows from the middle
        const Guarded<float> out(m, c.n, 3, 1);
        gemm_packed(pool, rows<const float>(o.a.view(), first, m), packed, out.view(), Accumulate::no,
                    o.epilogue());
        ASSERT_TRUE(same_bits(out.view(), rows(o.out.view(), first, m)))
            << m << " rows, " << threads << " threads, " << c.text();
        ASSERT_TRUE(out.surroundings_untouched());
      }
    }
  }
}

// What comes in parts is gemm_packed's, each element once, whatever the cut and the threads.
inline void expect_parts_of_the_whole(Precision precision) {
  struct Size {
    int64_t m, n, k;
  };
  for (const Size size :
       {Size{1, 1, 1}, {5, 200, 65}, {13, 1000, 72}, {97, 640, 1100}, {200, 130, 33}, {0, 64, 8}}) {
    for (const bool bias : {false, true}) {
      const Case c{.m = size.m, .n = size.n, .k = size.k, .tb = Transpose::yes, .bias = bias};
      const Operands<float> o(c, 13);
      const PackedMatrix packed = pack(o.b.view(), c.tb, precision);
      ThreadPool one(1);
      gemm_packed(one, o.a.view(), packed, o.out.view(), Accumulate::no, o.epilogue());
      for (const ColumnParts parts : {ColumnParts{64, 64}, {64, 192}, {128, 512}, {512, 4096}}) {
        for (const int threads : {1, 3}) {
          ThreadPool pool(threads);
          const Guarded<float> out(c.m, c.n, 3, 1);
          std::vector<std::atomic<int64_t>> next(static_cast<size_t>((c.n + parts.run - 1) / parts.run));
          std::atomic<int64_t> elements{0};
          gemm_packed_parts(pool, o.a.view(), packed, o.epilogue().bias, parts,
                            [&](int64_t row, int64_t col, Matrix<float> y) {
                              EXPECT_EQ(col % parts.part, 0);
                              EXPECT_LE(y.cols, parts.part);
                              std::atomic<int64_t>& before = next[static_cast<size_t>(col / parts.run)];
                              EXPECT_GE(col, before.load());  // of a run from left to right
                              before = col;
                              elements += y.rows * y.cols;
                              for (int64_t i = 0; i < y.rows; ++i) {
                                std::copy_n(y.row(i), y.cols, out.view().row(row + i) + col);
                                std::fill_n(y.row(i), y.cols, -7.0f);  // it may be written to
                              }
                            });
          ASSERT_EQ(elements, c.m * c.n);
          ASSERT_TRUE(same_bits(out.view(), o.out.view())) << c.text() << ", parts of " << parts.part;
          ASSERT_TRUE(out.surroundings_untouched());
        }
      }
    }
  }
}

// Columns of products with some rows of W, in any order and more than once, are those of all of W.
inline void expect_gathered_rows(Precision precision) {
  struct Size {
    int64_t m, n, k;
  };
  for (const Size size : {Size{1, 1, 1}, {5, 200, 65}, {13, 1000, 72}, {97, 640, 1100}, {50, 131, 33}}) {
    const Case c{.m = size.m, .n = size.n, .k = size.k, .tb = Transpose::yes, .bias = true};
    const Operands<float> o(c, 17);
    const PackedMatrix packed = pack(o.b.view(), c.tb, precision);
    ThreadPool one(1);
    gemm_packed(one, o.a.view(), packed, o.out.view(), Accumulate::no, o.epilogue());
    for (const int64_t count : {1, 7, 15, 16, 17, 64, 65, 130, 300}) {
      std::vector<int32_t> rows;
      std::vector<float> bias;
      for (int64_t i = 0; i < count; ++i) {
        rows.push_back(
            static_cast<int32_t>(RandomKey(5).below(static_cast<uint64_t>(i), static_cast<uint64_t>(c.n))));
        bias.push_back(o.epilogue().bias[rows.back()]);
      }
      const Guarded<float> want(c.m, count, 0, 0);
      for (int64_t i = 0; i < c.m; ++i) {
        for (int64_t j = 0; j < count; ++j)
          want.view().row(i)[j] = o.out.view().row(i)[rows[static_cast<size_t>(j)]];
      }
      for (const int threads : {1, 3}) {
        ThreadPool pool(threads);
        const PackedMatrix gathered = gather_rows(pool, packed, rows);
        ASSERT_EQ(gathered.rows(), count);
        ASSERT_EQ(gathered.cols(), c.k);
        ASSERT_EQ(gathered.precision(), precision);
        const Guarded<float> out(c.m, count, 3, 1), parts(c.m, count, 3, 1);
        Epilogue<float> epilogue;
        epilogue.bias = bias.data();
        gemm_packed(pool, o.a.view(), gathered, out.view(), Accumulate::no, epilogue);
        ASSERT_TRUE(same_bits(out.view(), want.view())) << count << " rows of " << c.text();
        ASSERT_TRUE(out.surroundings_untouched());
        gemm_packed_parts(pool, o.a.view(), gathered, bias.data(), {64, 192},
                          [&](int64_t row, int64_t col, Matrix<float> y) {
                            for (int64_t i = 0; i < y.rows; ++i)
                              std::copy_n(y.row(i), y.cols, parts.view().row(row + i) + col);
                          });
        ASSERT_TRUE(same_bits(parts.view(), want.view())) << count << " rows of " << c.text();
        std::vector<float> a(static_cast<size_t>(c.k)), b(a);
        for (int64_t i = 0; i < count; ++i) {
          unpack_row(gathered, i, a.data());
          unpack_row(packed, rows[static_cast<size_t>(i)], b.data());
          ASSERT_EQ(a, b);
        }
      }
    }
  }
}

// Threads that use one packed matrix at the same time, each with a pool of its own.
inline void expect_shared_among_threads(Precision precision) {
  const Case c{.m = 50, .n = 200, .k = 130, .tb = Transpose::yes, .bias = true};
  const Operands<float> o(c, 19);
  const PackedMatrix packed = pack(o.b.view(), c.tb, precision);
  ThreadPool pool(1);
  gemm_packed(pool, o.a.view(), packed, o.out.view(), Accumulate::no, o.epilogue());
  std::array<std::unique_ptr<Guarded<float>>, 8> outs;
  std::vector<std::thread> threads;
  for (auto& out : outs) {
    out = std::make_unique<Guarded<float>>(c.m, c.n, 0, 0);
    threads.emplace_back([&o, &packed, view = out->view()] {
      ThreadPool mine(2);
      for (int round = 0; round < 20; ++round) {
        gemm_packed(mine, o.a.view(), packed, view, Accumulate::no, o.epilogue());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& out : outs) EXPECT_TRUE(same_bits(out->view(), o.out.view()));
}

}  // namespace gloss::kernels
