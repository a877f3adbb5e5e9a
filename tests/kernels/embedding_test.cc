#include "gloss/kernels/embedding.h"

#include <gtest/gtest.h>

#include "gloss/kernels/embedding_reference.h"
#include "support/framed.h"
#include "support/isas.h"

namespace gloss::kernels {
namespace {

using tests::Framed;

template <class T>
constexpr double kNear = sizeof(T) == 4 ? 1e-5 : 1e-13;

template <class T>
class EmbeddingKernel : public ::testing::Test {};
using Numbers = ::testing::Types<float, double>;
TYPED_TEST_SUITE(EmbeddingKernel, Numbers);

TYPED_TEST(EmbeddingKernel, EqualsTheReference) {
  using T = TypeParam;
  const int64_t symbols = 37;
  for (const int64_t n : {0, 1, 5, 300}) {
    for (const int64_t d : tests::kWidths) {
      for (const double p : {0.0, 0.3}) {
        for (const bool placed : {false, true}) {
          SCOPED_TRACE(testing::Message() << n << " tokens of " << d << " dropout " << p);
          const auto table = Framed<T>::random(symbols, d, 1, 2, 1),
                     positions = Framed<T>::random(9, d, 3, 1, 2), dy = Framed<T>::random(n, d, 2, 5, 3);
          const std::vector<int32_t> ids = tests::random_ids(n, symbols, 4);  // with repeats
          std::vector<int64_t> position_of;
          for (int64_t i = 0; i < n; ++i) position_of.push_back(i % 9);
          const Dropout dropout(p, RandomKey(5));
          const T scale = T(2.5);
          const int64_t frozen = 3;

          const std::vector<double> dense = tests::doubles(table.values());
          const Matrix<const double> plain{dense.data(), symbols, d, d};
          std::vector<double> dropped;
          std::vector<double> want;
          for (int64_t i = 0; i < n; ++i) {
            for (int64_t c = 0; c < d; ++c) {
              const double factor = dropout.factor(static_cast<uint64_t>(i * d + c));
              const double position = placed ? static_cast<double>(positions.view().row(i % 9)[c]) : 0;
              want.push_back(factor *
                             (reference::embedded(plain, ids[static_cast<size_t>(i)], 2.5, c) + position));
              dropped.push_back(factor * static_cast<double>(dy.view().row(i)[c]));
            }
          }
          tests::same_everywhere<T>(
              [&](ThreadPool& pool) {
                Framed<T> y(n, d, 7, 1);
                embed_forward<T>(pool, table.view(), ids, scale,
                                 placed ? positions.view() : Matrix<const T>{}, position_of, dropout,
                                 y.view());
                EXPECT_TRUE(y.frame_intact());
                return y.values();
              },
              [&](const auto& got) { EXPECT_TRUE(tests::close(got, want, kNear<T>)); });

          std::vector<double> gradient;
          for (int64_t row = 0; row < symbols; ++row) {
            for (int64_t c = 0; c < d; ++c) {
              const double sum = reference::embedding_gradient(ids, {dropped.data(), n, d, d}, 2.5, row, c);
              gradient.push_back(1 + (row == frozen ? 0 : sum));
            }
          }
          tests::same_everywhere<T>(
              [&](ThreadPool& pool) {
                Framed<T> dtable(symbols, d, 2, 3);
                dtable.set(std::vector<T>(static_cast<size_t>(symbols * d), T{1}));
                embed_backward<T>(pool, ids, scale, dropout, dy.view(), dtable.view(), frozen);
                EXPECT_TRUE(dtable.frame_intact());
                return dtable.values();
              },
              [&](const auto& got) { EXPECT_TRUE(tests::close(got, gradient, kNear<T>)); });
        }
      }
    }
  }
}

}  // namespace
}  // namespace gloss::kernels
