#include "gloss/kernels/layer_norm.h"

#include <gtest/gtest.h>

#include "gloss/kernels/layer_norm_reference.h"
#include "support/framed.h"
#include "support/isas.h"

namespace gloss::kernels {
namespace {

using tests::Framed;

template <class T>
constexpr double kNear = sizeof(T) == 4 ? 2e-5 : 1e-11;
constexpr double kEpsilon = 0.1;  // large, so that rows of two numbers keep a gradient

template <class T>
class LayerNormKernel : public ::testing::Test {};
using Numbers = ::testing::Types<float, double>;
TYPED_TEST_SUITE(LayerNormKernel, Numbers);

template <class T>
struct Case {
  Case(int64_t rows, int64_t d, bool with_branch, double p)
      : x(Framed<T>::random(rows, d, 1, 3, 1)),
        branch(Framed<T>::random(rows, d, 5, 1, 2)),
        gamma(Framed<T>::random(1, d, 3, 0, 3)),
        beta(Framed<T>::random(1, d, 7, 0, 4)),
        dy(Framed<T>::random(rows, d, 2, 5, 5)),
        dropout(p, RandomKey(6)) {
    in = {x.view(), {}, dropout, gamma.view().data, beta.view().data, static_cast<T>(kEpsilon)};
    if (with_branch) in.branch = branch.view();
  }

  // y, sum, dx, dbranch, dgamma and dbeta, the gradients added to what was there when `accumulate`.
  std::vector<T> run(ThreadPool& pool, bool accumulate) {
    const int64_t rows = in.x.rows, d = in.x.cols;
    Framed<T> sum(rows, d, 9, 2), y(rows, d, 4, 1);
    Framed<T> statistics(rows, 2, 1, 0);
    add_norm_forward(pool, in, sum.view(), y.view(), statistics.view().data);
    Framed<T> dx(rows, d, 3, 3), dbranch(rows, d, 1, 0), dgamma(1, d, 2, 0), dbeta(1, d, 6, 0);
    dgamma.set(std::vector<T>(static_cast<size_t>(d), T{1}));
    dbeta.set(std::vector<T>(static_cast<size_t>(d), T{2}));
    AddNormGradient<T> gradient;
    gradient.dy = dy.view();
    gradient.sum = in.branch.data ? Matrix<const T>(sum.view()) : in.x;
    gradient.statistics = statistics.view().data;
    gradient.dx = dx.view();
    if (in.branch.data) gradient.dbranch = dbranch.view();
    gradient.dgamma = dgamma.view().data;
    gradient.dbeta = dbeta.view().data;
    if (accumulate) {
      gradient.accumulate_x = gradient.accumulate_branch = Accumulate::yes;
      dx.set(std::vector<T>(static_cast<size_t>(rows * d), T{3}));
      dbranch.set(std::vector<T>(static_cast<size_t>(rows * d), T{4}));
    }
    add_norm_backward(pool, in, gradient);
    std::vector<T> all;
    for (const Framed<T>* part : {&y, &sum, &dx, &dbranch, &dgamma, &dbeta}) {
      EXPECT_TRUE(part->frame_intact());
      if (!in.branch.data && (part == &sum || part == &dbranch)) continue;
      for (const T v : part->values()) all.push_back(v);
    }
    return all;
  }

  std::vector<double> want(bool accumulate) const {
    const int64_t rows = in.x.rows, d = in.x.cols;
    const std::vector<double> g = tests::doubles(gamma.values()), b = tests::doubles(beta.values());
    std::vector<double> y, sum, dx, dbranch, dgamma(g.size(), 1), dbeta(g.size(), 2);
    for (int64_t i = 0; i < rows; ++i) {
      std::vector<double> row, up;
      for (int64_t c = 0; c < d; ++c) {
        row.push_back(static_cast<double>(in.x.row(i)[c]));
        if (in.branch.data) {
          row.back() +=
              static_cast<double>(in.branch.row(i)[c]) * dropout.factor(static_cast<uint64_t>(i * d + c));
        }
        up.push_back(static_cast<double>(dy.view().row(i)[c]));
      }
      const reference::NormalisedRow normal = reference::layer_norm(row, g, b, kEpsilon);
      const std::vector<double> back = reference::layer_norm_gradient(normal, g, up);
      y.insert(y.end(), normal.y.begin(), normal.y.end());
      sum.insert(sum.end(), row.begin(), row.end());
      for (int64_t c = 0; c < d; ++c) {
        const auto at = static_cast<size_t>(c);
        dx.push_back(back[at] + (accumulate ? 3 : 0));
        dbranch.push_back(back[at] * dropout.factor(static_cast<uint64_t>(i * d + c)) + (accumulate ? 4 : 0));
        dgamma[at] += up[at] * normal.normal[at];
        dbeta[at] += up[at];
      }
    }
    std::vector<double> all(y);
    if (in.branch.data) all.insert(all.end(), sum.begin(), sum.end());
    all.insert(all.end(), dx.begin(), dx.end());
    if (in.branch.data) all.insert(all.end(), dbranch.begin(), dbranch.end());
    all.insert(all.end(), dgamma.begin(), dgamma.end());
    all.insert(all.end(), dbeta.begin(), dbeta.end());
    return all;
  }

  Framed<T> x, branch, gamma, beta, dy;
  Dropout dropout;
  AddNorm<T> in;
};

TYPED_TEST(LayerNormKernel, EqualsTheReference) {
  for (const int64_t rows : tests::kRowCounts) {
    for (const int64_t d : tests::kWidths) {
      for (const auto& [branch, p] : {std::pair{false, 0.0}, {true, 0.0}, {true, 0.3}}) {
        for (const bool accumulate : {false, true}) {
          SCOPED_TRACE(testing::Message() << rows << " x " << d << " branch " << branch << " dropout " << p);
          Case<TypeParam> c(rows, d, branch, p);
          tests::same_everywhere<TypeParam>(
              [&](ThreadPool& pool) { return c.run(pool, accumulate); },
              [&](const auto& got) { EXPECT_TRUE(tests::close(got, c.want(accumulate), kNear<TypeParam>)); });
        }
      }
    }
  }
}

// The gradient of the input may take the place of that of the result.
TYPED_TEST(LayerNormKernel, WorksInPlace) {
  for (const int64_t d : tests::kWidths) {
    Case<TypeParam> c(5, d, false, 0);
    ThreadPool pool(1);
    Framed<TypeParam> y(5, d, 1, 0), statistics(5, 2, 1, 0), dx(5, d, 3, 1), in_place = c.dy;
    add_norm_forward(pool, c.in, {}, y.view(), statistics.view().data);
    AddNormGradient<TypeParam> gradient;
    gradient.sum = c.in.x;
    gradient.statistics = statistics.view().data;
    gradient.dy = c.dy.view();
    gradient.dx = dx.view();
    add_norm_backward(pool, c.in, gradient);
    gradient.dy = in_place.view();
    gradient.dx = in_place.view();
    add_norm_backward(pool, c.in, gradient);
    EXPECT_TRUE(tests::same_bits(dx.values(), in_place.values()));
  }
}

// A row far from zero: the variance does not drown in the mean.
TEST(LayerNormRows, SurvivesALargeMean) {
  ThreadPool pool(1);
  tests::on_every_isa([&](Isa) {
    std::vector<float> x(128), y(128), ones(128, 1), zeros(128, 0);
    for (size_t i = 0; i < x.size(); ++i) x[i] = 10000.0F + static_cast<float>(i % 2);
    const AddNorm<float> in{{x.data(), 1, 128, 128}, {}, {}, ones.data(), zeros.data(), 1e-5F};
    add_norm_forward<float>(pool, in, {}, {y.data(), 1, 128, 128}, nullptr);
    for (size_t i = 0; i < y.size(); ++i) EXPECT_NEAR(y[i], i % 2 ? 1 : -1, 1e-3);
  });
}

}  // namespace
}  // namespace gloss::kernels
