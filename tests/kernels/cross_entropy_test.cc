#include "gloss/kernels/cross_entropy.h"

#include <gtest/gtest.h>

#include <cmath>

#include "gloss/kernels/cross_entropy_reference.h"
#include "support/framed.h"
#include "support/isas.h"

namespace gloss::kernels {
namespace {

using tests::Framed;

template <class T>
constexpr double kNear = sizeof(T) == 4 ? 2e-5 : 1e-12;

template <class T>
class CrossEntropyKernel : public ::testing::Test {
 protected:
  // Loss and likelihood of each row, then the gradients: [rows * 2 + rows * symbols].
  static std::vector<T> run(ThreadPool& pool, Framed<T> logits, const std::vector<int32_t>& targets,
                            const CrossEntropy& options, T gradient) {
    const auto rows = static_cast<int64_t>(targets.size());
    const std::vector<T> before = logits.values();
    Framed<T> loss(1, rows, 1, 0), nll(1, rows, 2, 0);
    cross_entropy<T>(pool, logits.view(), targets, options, gradient, loss.view().data, nll.view().data);
    EXPECT_TRUE(logits.frame_intact() && loss.frame_intact() && nll.frame_intact());
    std::vector<T> all = loss.values();
    for (const T x : nll.values()) all.push_back(x);
    if (gradient != 0) {
      for (const T x : logits.values()) all.push_back(x);
    }
    return all;
  }
};
using Numbers = ::testing::Types<float, double>;
TYPED_TEST_SUITE(CrossEntropyKernel, Numbers);

TYPED_TEST(CrossEntropyKernel, EqualsTheReference) {
  using T = TypeParam;
  for (const int64_t rows : tests::kRowCounts) {
    for (const int64_t symbols : {1, 2, 15, 16, 17, 31, 33, 128, 1000}) {
      for (const int64_t forbidden : {int64_t{-1}, symbols - 1}) {
        if (forbidden == 0) continue;  // no symbol would be left
        for (const double smoothing : {0.0, 0.1}) {
          for (const double gradient : {0.0, 1.0, -0.25}) {
            const auto logits = Framed<T>::random(rows, symbols, 3, 2, 1, 3);
            const std::vector<int32_t> targets =
                tests::random_ids(rows, forbidden > 0 ? symbols - 1 : symbols, 2);
            const CrossEntropy options{smoothing, forbidden};
            std::vector<double> loss, nll, gradients;
            for (int64_t i = 0; i < rows; ++i) {
              const auto row = logits.view().row(i);
              const auto want = reference::cross_entropy(std::vector<double>(row, row + symbols),
                                                         targets[static_cast<size_t>(i)], options);
              loss.push_back(want.loss);
              nll.push_back(want.negative_log_likelihood);
              for (const double g : want.gradient) gradients.push_back(gradient * g);
            }
            loss.insert(loss.end(), nll.begin(), nll.end());
            if (gradient != 0) loss.insert(loss.end(), gradients.begin(), gradients.end());
            SCOPED_TRACE(testing::Message() << rows << " rows of " << symbols << " smoothing " << smoothing);
            tests::same_everywhere<T>(
                [&](ThreadPool& pool) {
                  return this->run(pool, logits, targets, options, static_cast<T>(gradient));
                },
                [&](const auto& got) {
                  // A loss is a difference of logits: what is left of them is as good as they were.
                  ASSERT_EQ(got.size(), loss.size());
                  for (size_t k = 0; k < loss.size(); ++k) {
                    EXPECT_NEAR(static_cast<double>(got[k]), loss[k],
                                kNear<T> * std::max(1.0, std::abs(loss[k])));
                  }
                });
          }
        }
      }
    }
  }
}

// The logit of a symbol without probability changes nothing, whatever it is.
TYPED_TEST(CrossEntropyKernel, AForbiddenLogitIsNotRead) {
  using T = TypeParam;
  ThreadPool pool(1);
  tests::on_every_isa([&](Isa) {
    const std::vector<int32_t> targets{1, 2, 0};
    const auto logits = Framed<T>::random(3, 40, 0, 0, 1);
    const std::vector<T> want = this->run(pool, logits, targets, {0.1, 7}, T{1});
    for (const double other : {-1e30, 1e30, std::nan(""), HUGE_VAL}) {
      Framed<T> changed = logits;
      for (int64_t i = 0; i < 3; ++i) changed.view().row(i)[7] = static_cast<T>(other);
      EXPECT_TRUE(tests::same_bits(this->run(pool, changed, targets, {0.1, 7}, T{1}), want));
    }
  });
}

TYPED_TEST(CrossEntropyKernel, IsExactForHugeLogits) {
  using T = TypeParam;
  ThreadPool pool(1);
  tests::on_every_isa([&](Isa) {
    Framed<T> logits(2, 3, 0, 0);
    logits.set({10000, -10000, 10000, -10000, -10000, 10000});
    const auto r = this->run(pool, logits, {0, 0}, {}, T{1});
    EXPECT_NEAR(static_cast<double>(r[0]), std::log(2), 1e-3);  // 10,000 has an ulp of 1e-3
    EXPECT_EQ(r[1], 20000);
    EXPECT_TRUE(tests::same_bits(std::vector<T>(r.begin() + 4, r.end()),
                                 std::vector<T>{T(-0.5), 0, T(0.5), -1, 0, 1}));
  });
}

TYPED_TEST(CrossEntropyKernel, NanIsNotLost) {
  using T = TypeParam;
  ThreadPool pool(1);
  tests::on_every_isa([&](Isa) {
    for (const int64_t at : {0, 13, 39}) {
      auto logits = Framed<T>::random(1, 40, 0, 0, 1);
      logits.view().row(0)[at] = std::numeric_limits<T>::quiet_NaN();
      EXPECT_TRUE(std::isnan(this->run(pool, logits, {5}, {0.1, -1}, T{0})[0]));
    }
  });
}

}  // namespace
}  // namespace gloss::kernels
