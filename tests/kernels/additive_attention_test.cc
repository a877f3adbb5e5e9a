#include "gloss/kernels/additive_attention.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>

#include "gloss/kernels/additive_attention_reference.h"
#include "support/framed.h"
#include "support/isas.h"

namespace gloss::kernels {
namespace {

using tests::Framed;

template <class T>
constexpr double kNear = sizeof(T) == 4 ? 5e-5 : 1e-11;

struct Shape {
  int64_t d_a, d_h;
  std::vector<int64_t> n_q, n;
};

template <class T>
std::vector<double> dense(const Framed<T>& from, int64_t row, int64_t rows) {
  std::vector<double> all;
  for (int64_t i = row; i < row + rows; ++i) {
    for (int64_t c = 0; c < from.view().cols; ++c) all.push_back(static_cast<double>(from.view().row(i)[c]));
  }
  return all;
}

enum class Upstream { context, weights, both };

// Ragged sequences in hostile memory, and what additive attention and its reference make of them.
template <class T>
struct Case {
  explicit Case(const Shape& of)
      : shape(of),
        queries(Offsets::of_lengths(of.n_q)),
        sources(Offsets::of_lengths(of.n)),
        query(Framed<T>::random(queries.total(), of.d_a, 3, 5, 1)),
        keys(Framed<T>::random(sources.total(), of.d_a, 1, 2, 2)),
        h(Framed<T>::random(sources.total(), of.d_h, 7, 1, 3)),
        v_a(Framed<T>::random(1, of.d_a, 5, 0, 4)),
        up(Framed<T>::random(queries.total(), of.d_h, 2, 3, 5)) {
    // What belongs to sequences without queries is not read.
    const T nan = std::numeric_limits<T>::quiet_NaN();
    for (int64_t s = 0; s < queries.count(); ++s) {
      if (queries.length(s) > 0) continue;
      for (int64_t j = sources.begin(s); j < sources.end(s); ++j) {
        std::fill_n(keys.view().row(j), of.d_a, nan);
        std::fill_n(h.view().row(j), of.d_h, nan);
      }
    }
    in = {query.view(), keys.view(), h.view(), queries, sources, v_a.view().data};
    total = weight_offsets(in).back();
    up_weights = tests::random_values<T>(total, 6, 0.3);
  }

  std::vector<T> run_forward(ThreadPool& pool) const {
    Framed<T> context(queries.total(), shape.d_h, 5, 2), scores(1, total, 1, 0), weights(1, total, 2, 0),
        quiet = context;
    additive_attention_forward<T>(pool, in, context.view(), scores.view().data, weights.view().data);
    additive_attention_forward<T>(pool, in, quiet.view(), nullptr, nullptr);
    EXPECT_TRUE(context.frame_intact() && scores.frame_intact() && weights.frame_intact());
    EXPECT_TRUE(tests::same_bits(context.values(), quiet.values()));
    EXPECT_TRUE(tests::same_bits(context.values(), step(pool)));
    std::vector<T> all = context.values();
    for (const T x : scores.values()) all.push_back(x);
    for (const T x : weights.values()) all.push_back(x);
    return all;
  }

  // The translating form, every query with rows of its own.
  std::vector<T> step(ThreadPool& pool) const {
    std::vector<RowsOfSource<T>> looks;
    for (int64_t s = 0; s < queries.count(); ++s) {
      const int64_t begin = sources.begin(s), n = sources.length(s);
      const RowsOfSource<T> source{rows(in.keys, begin, n), rows(in.h, begin, n)};
      looks.insert(looks.end(), static_cast<size_t>(queries.length(s)), source);
    }
    Framed<T> context(queries.total(), shape.d_h, 1, 4);
    additive_attention_step<T>(pool, in.query, looks, in.v_a, context.view());
    EXPECT_TRUE(context.frame_intact());
    return context.values();
  }

  // dquery, dkeys, dh and dv_a.
  std::vector<T> run_backward(ThreadPool& pool, Upstream upstream, Accumulate accumulate) const {
    Framed<T> context(queries.total(), shape.d_h, 5, 2), weights(1, total, 2, 0);
    additive_attention_forward<T>(pool, in, context.view(), nullptr, weights.view().data);
    Framed<T> dq(queries.total(), shape.d_a, 1, 3), dk(sources.total(), shape.d_a, 2, 1),
        dh(sources.total(), shape.d_h, 3, 4), dv(1, shape.d_a, 6, 0);
    const auto ones = [](Framed<T>& x) { x.set(std::vector<T>(x.values().size(), T{1})); };
    ones(dv);
    if (accumulate == Accumulate::yes) {
      for (Framed<T>* x : {&dq, &dk, &dh}) ones(*x);
    }
    AdditiveAttentionGradient<T> gradient;
    gradient.weights = weights.view().data;
    if (upstream != Upstream::weights) gradient.dcontext = up.view();
    if (upstream != Upstream::context) gradient.dweights = up_weights.data();
    gradient.dquery = dq.view();
    gradient.dkeys = dk.view();
    gradient.dh = dh.view();
    gradient.dv_a = dv.view().data;
    gradient.accumulate_query = gradient.accumulate_keys = gradient.accumulate_h = accumulate;
    additive_attention_backward(pool, in, gradient);
    std::vector<T> all;
    for (const Framed<T>* x : {&dq, &dk, &dh, &dv}) {
      EXPECT_TRUE(x->frame_intact());
      for (const T g : x->values()) all.push_back(g);
    }
    return all;
  }

  // Calls visit(sequence, reference, upstream gradient, where its weights begin) for sequences with queries.
  template <class Visit>
  void each_sequence(Visit visit) const {
    const std::vector<double> v = dense(v_a, 0, 1);
    const std::vector<int64_t> at = weight_offsets(in);
    for (int64_t s = 0; s < queries.count(); ++s) {
      const int64_t n_q = queries.length(s), n = sources.length(s);
      if (n_q == 0) continue;
      const std::vector<double> q = dense(query, queries.begin(s), n_q), k = dense(keys, sources.begin(s), n),
                                values = dense(h, sources.begin(s), n), d = dense(up, queries.begin(s), n_q);
      const reference::AdditiveSequence sequence{{q.data(), n_q, shape.d_a, shape.d_a},
                                                 {k.data(), n, shape.d_a, shape.d_a},
                                                 {values.data(), n, shape.d_h, shape.d_h},
                                                 v.data()};
      visit(s, sequence, Matrix<const double>{d.data(), n_q, shape.d_h, shape.d_h},
            at[static_cast<size_t>(s)]);
    }
  }

  std::vector<double> want_forward() const {
    std::vector<double> context, scores, weights;
    each_sequence([&](int64_t, const reference::AdditiveSequence& sequence, Matrix<const double>, int64_t) {
      const auto r = reference::additive_attention(sequence);
      context.insert(context.end(), r.context.begin(), r.context.end());
      scores.insert(scores.end(), r.scores.begin(), r.scores.end());
      weights.insert(weights.end(), r.weights.begin(), r.weights.end());
    });
    context.insert(context.end(), scores.begin(), scores.end());
    context.insert(context.end(), weights.begin(), weights.end());
    return context;
  }

  std::vector<double> want_backward(Upstream upstream, double start) const {
    std::vector<double> dq(static_cast<size_t>(queries.total() * shape.d_a), start),
        dk(static_cast<size_t>(sources.total() * shape.d_a), start),
        dh(static_cast<size_t>(sources.total() * shape.d_h), start), dv(static_cast<size_t>(shape.d_a), 1);
    const auto add = [](std::vector<double>& to, const std::vector<double>& from, int64_t at) {
      for (size_t i = 0; i < from.size(); ++i) to[static_cast<size_t>(at) + i] += from[i];
    };
    each_sequence(
        [&](int64_t s, const reference::AdditiveSequence& sequence, Matrix<const double> d, int64_t at) {
          const std::vector<double> none(static_cast<size_t>(d.rows * d.cols), 0.0);
          if (upstream == Upstream::weights) d.data = none.data();
          std::vector<double> dw;
          if (upstream != Upstream::context) {
            const auto count = static_cast<size_t>(d.rows * sequence.keys.rows);
            dw = tests::doubles(std::span(up_weights).subspan(static_cast<size_t>(at), count));
          }
          const auto g = reference::additive_gradients(sequence, d, dw);
          add(dq, g.query, queries.begin(s) * shape.d_a);
          add(dk, g.keys, sources.begin(s) * shape.d_a);
          add(dh, g.h, sources.begin(s) * shape.d_h);
          add(dv, g.v_a, 0);
        });
    for (const auto* x : {&dk, &dh, &dv}) dq.insert(dq.end(), x->begin(), x->end());
    return dq;
  }

  Shape shape;
  Offsets queries, sources;
  Framed<T> query, keys, h, v_a, up;
  AdditiveAttention<T> in;
  int64_t total = 0;
  std::vector<T> up_weights;
};

std::vector<Shape> shapes() {
  std::vector<Shape> all{{5, 3, {}, {}}, {5, 3, {0, 0}, {4, 0}}};
  for (const int64_t width : tests::kWidths) {
    all.push_back({width, 17, {3, 0, 1, 4, 2, 0}, {5, 2, 0, 17, 1, 3}});
    all.push_back({8, width, {1, 1, 5}, {33, 16, 3}});
  }
  all.push_back({16, 300, {1, 1, 1}, {15, 16, 17}});        // several chunks of h at once
  all.push_back({7, 9, {11, 12, 13, 33}, {4, 5, 130, 7}});  // over the borders of tiles of 12 and 32 queries
  return all;
}

template <class T>
class AdditiveKernel : public ::testing::Test {};
using Numbers = ::testing::Types<float, double>;
TYPED_TEST_SUITE(AdditiveKernel, Numbers);

TYPED_TEST(AdditiveKernel, EqualsTheReference) {
  using T = TypeParam;
  for (const Shape& shape : shapes()) {
    SCOPED_TRACE(testing::Message() << "d_a " << shape.d_a << " d_h " << shape.d_h << ", " << shape.n_q.size()
                                    << " sequences");
    const Case<T> c(shape);
    const std::vector<double> want = c.want_forward();
    tests::same_everywhere<T>([&](ThreadPool& pool) { return c.run_forward(pool); },
                              [&](const auto& got) { EXPECT_TRUE(tests::close(got, want, kNear<T>)); });
    for (const Upstream upstream : {Upstream::context, Upstream::weights, Upstream::both}) {
      for (const Accumulate accumulate : {Accumulate::no, Accumulate::yes}) {
        const std::vector<double> gradients =
            c.want_backward(upstream, accumulate == Accumulate::yes ? 1 : 0);
        tests::same_everywhere<T>(
            [&](ThreadPool& pool) { return c.run_backward(pool, upstream, accumulate); },
            [&](const auto& got) { EXPECT_TRUE(tests::close(got, gradients, kNear<T>)); });
      }
    }
  }
}

RC_GTEST_PROP(AdditiveKernelProperty, AnyRaggedBatchEqualsTheReference, ()) {
  Shape shape;
  shape.d_a = *rc::gen::inRange<int64_t>(1, 40);
  shape.d_h = *rc::gen::inRange<int64_t>(1, 90);
  for (int64_t s = *rc::gen::inRange<int64_t>(0, 12); s > 0; --s) {
    shape.n_q.push_back(*rc::gen::inRange<int64_t>(0, 15));
    shape.n.push_back(*rc::gen::inRange<int64_t>(0, 60));
  }
  ThreadPool pool(2);
  const Case<float> c(shape);
  RC_ASSERT(bool(tests::close(c.run_forward(pool), c.want_forward(), kNear<float>)));
  RC_ASSERT(bool(tests::close(c.run_backward(pool, Upstream::both, Accumulate::no),
                              c.want_backward(Upstream::both, 0), kNear<float>)));
}

// Rows of sequences without queries are set to zero once, and left alone when there is something to add to.
TEST(AdditiveKernel, TouchesOnlyRowsOfSequencesWithQueries) {
  tests::on_every_isa([](Isa) {
    ThreadPool pool(2);
    const Case<float> c({20, 18, {0, 1, 0}, {3, 4, 5}});
    const int64_t dk = 20, dh = dk + 12 * 20;  // where dkeys and dh begin behind dquery [1, 20]
    for (const Accumulate accumulate : {Accumulate::no, Accumulate::yes}) {
      const std::vector<float> all = c.run_backward(pool, Upstream::both, accumulate);
      const float before = accumulate == Accumulate::yes ? 1 : 0;
      for (int64_t j = 0; j < 12; ++j) {
        const bool live = j >= 3 && j < 7;
        EXPECT_EQ(all[static_cast<size_t>(dk + j * 20)] == before, !live);
        EXPECT_EQ(all[static_cast<size_t>(dh + j * 18)] == before, !live);
      }
    }
  });
}

TEST(AdditiveKernel, AGradientThatNobodyWantsChangesNoOther) {
  tests::on_every_isa([](Isa) {
    ThreadPool pool(1);
    const Case<float> c({20, 18, {2, 1, 3}, {3, 4, 5}});
    std::vector<float> weights(static_cast<size_t>(c.total)), context(6 * 18);
    additive_attention_forward<float>(pool, c.in, {context.data(), 6, 18, 18}, nullptr, weights.data());
    const std::vector<size_t> sizes{6 * 20, 12 * 20, 12 * 18, 20};
    std::vector<std::vector<float>> all;
    for (size_t without = 0; without <= 4; ++without) {  // 4: all four are wanted
      std::vector<std::vector<float>> g;
      for (const size_t size : sizes) g.emplace_back(size, 0.0f);
      AdditiveAttentionGradient<float> gradient;
      gradient.weights = weights.data();
      gradient.dcontext = c.up.view();
      if (without != 0) gradient.dquery = {g[0].data(), 6, 20, 20};
      if (without != 1) gradient.dkeys = {g[1].data(), 12, 20, 20};
      if (without != 2) gradient.dh = {g[2].data(), 12, 18, 18};
      if (without != 3) gradient.dv_a = g[3].data();
      additive_attention_backward(pool, c.in, gradient);
      if (without < 4) {
        for (const float x : g[without]) EXPECT_EQ(x, 0);
        g[without].clear();
      }
      all.insert(all.end(), g.begin(), g.end());
    }
    for (size_t i = 0; i < 16; ++i) {
      if (!all[i].empty()) {
        EXPECT_TRUE(tests::same_bits(all[i], all[16 + i % 4])) << i;
      }
    }
  });
}

TYPED_TEST(AdditiveKernel, JointVectors) {
  using T = TypeParam;
  for (const int64_t width : tests::kWidths) {
    for (const int64_t n : tests::kRowCounts) {
      const auto query = Framed<T>::random(1, width, 3, 0, 1), keys = Framed<T>::random(n, width, 1, 2, 2);
      std::vector<double> want;
      for (int64_t j = 0; j < n; ++j) {
        for (int64_t c = 0; c < width; ++c) {
          want.push_back(std::tanh(static_cast<double>(query.view().row(0)[c]) +
                                   static_cast<double>(keys.view().row(j)[c])));
        }
      }
      tests::same_everywhere<T>(
          [&](ThreadPool& pool) {
            Framed<T> z(n, width, 2, 1);
            joint_vectors<T>(pool, query.view().data, keys.view(), z.view());
            EXPECT_TRUE(z.frame_intact());
            return z.values();
          },
          [&](const auto& got) { EXPECT_TRUE(tests::close(got, want, sizeof(T) == 4 ? 1e-6 : 1e-14)); });
    }
  }
}

}  // namespace
}  // namespace gloss::kernels
