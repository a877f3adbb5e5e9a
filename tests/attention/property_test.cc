// What every kind of attention must keep, whatever the numbers.
#include <cmath>
#include <limits>

#include "attention/support.h"
#include "gloss/kernels/attention_reference.h"
#include "support/isas.h"

namespace gloss::attention {
namespace {

using tests::close;
using tests::random_tensor;
using tests::same_bits;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Random queries, keys and values of several heads, and what attention makes of them.
struct Heads {
  Heads(std::vector<int64_t> n_q, std::vector<int64_t> n_k, HeadShape of, uint64_t seed = 1)
      : queries(lengths(n_q)), keys(lengths(n_k)), shape(of) {
    q = random_tensor<float>(context.arena, {queries.total(), of.heads * of.d_k}, seed);
    k = random_tensor<float>(context.arena, {keys.total(), of.heads * of.d_k}, seed + 1);
    v = random_tensor<float>(context.arena, {keys.total(), of.heads * of.d_v}, seed + 2);
    up = random_tensor<float>(context.arena, {queries.total(), of.heads * of.d_v}, seed + 3);
  }
  struct Result {
    Tensor<float> output, weights, scores, dq, dk, dv;
    std::vector<int64_t> offsets;
  };
  Result run(const std::vector<int64_t>& visible, Request request = {.scores = true, .weights = true}) {
    Tape<float> tape(context, Tape<float>::Mode::train);
    const Var<float> vq = tape.leaf(q), vk = tape.leaf(k), vv = tape.leaf(v);
    const Attended<float> a = scaled_dot_product_attention<float>(tape, {vq, 0}, queries, {vk, 0}, {vv, 0},
                                                                  keys, shape, visible, 0, request);
    tape.backward(a.output, up);
    return {a.output.value(),  a.weights.value(), a.scores, tape.gradient(vq),
            tape.gradient(vk), tape.gradient(vv), a.offsets};
  }
  Result run(const Mask& mask, Request request = {.scores = true, .weights = true}) {
    return run(visible_keys(mask, queries, keys), request);
  }

  Context context{2};
  Offsets queries, keys;
  HeadShape shape;
  Tensor<float> q, k, v, up;
};

TEST(AttentionProperty, RowsSumToOneAndHiddenWeightsAreExactlyZero) {
  tests::on_every_isa([](kernels::Isa) {
    Heads s({3, 0, 5, 2, 40}, {7, 2, 1, 0, 200}, {2, 8, 3});
    const std::vector<int64_t> visible = visible_keys({Causal::yes, 2}, s.queries, s.keys);
    const Heads::Result r = s.run(visible);
    ASSERT_EQ(r.offsets.back(), r.weights.size());
    for (int64_t n = 0; n < s.queries.count(); ++n) {
      const int64_t n_k = s.keys.length(n);
      for (int64_t row = 0; row < s.shape.heads * s.queries.length(n); ++row) {
        const int64_t query = s.queries.begin(n) + row % s.queries.length(n);
        const float* w = r.weights.data() + r.offsets[static_cast<size_t>(n)] + row * n_k;
        const float* scores = r.scores.data() + r.offsets[static_cast<size_t>(n)] + row * n_k;
        double sum = 0;
        for (int64_t j = 0; j < n_k; ++j) {
          sum += static_cast<double>(w[j]);
          EXPECT_EQ(w[j] == 0, j >= visible[static_cast<size_t>(query)]);
          EXPECT_EQ(scores[j] == -kInfinity, j >= visible[static_cast<size_t>(query)]);
        }
        EXPECT_NEAR(sum, n_k > 0 ? 1 : 0, 1e-5);
      }
    }
  });
}

TEST(AttentionProperty, ANeutralMaskChangesNothing) {
  Heads s({4, 1, 60}, {4, 1, 60}, {2, 8, 5});
  const Heads::Result none = s.run(Mask{});
  // Causal from an offset past all keys, and a count of all keys, hide nothing.
  for (const Heads::Result& other :
       {s.run(Mask{Causal::yes, 1000}), s.run(Mask{Causal::yes, std::numeric_limits<int64_t>::max()}),
        s.run([&] {
          std::vector<int64_t> all;
          for (int64_t n = 0; n < 3; ++n)
            all.insert(all.end(), static_cast<size_t>(s.queries.length(n)), s.keys.length(n));
          return all;
        }())}) {
    EXPECT_TRUE(same_bits(none.output, other.output));
    EXPECT_TRUE(same_bits(none.weights, other.weights));
    EXPECT_TRUE(same_bits(none.dq, other.dq));
    EXPECT_TRUE(same_bits(none.dk, other.dk));
    EXPECT_TRUE(same_bits(none.dv, other.dv));
  }
}

TEST(AttentionProperty, AMaskThatHidesSomethingDiffers) {  // the negative control
  Heads s({4, 60}, {4, 60}, {2, 8, 5});
  const Heads::Result none = s.run(Mask{}), causal = s.run(Mask{Causal::yes, {}});
  EXPECT_FALSE(close(none.output, causal.output, 1e-2));
  EXPECT_FALSE(close(none.dk, causal.dk, 1e-2));
}

TEST(AttentionProperty, AskingForScoresAndWeightsChangesNothing) {
  Heads s({4, 60}, {150, 60}, {2, 8, 5});
  const Heads::Result asked = s.run(Mask{}), quiet = s.run(Mask{}, {});
  EXPECT_TRUE(same_bits(asked.output, quiet.output));
  EXPECT_TRUE(same_bits(asked.dq, quiet.dq));
  EXPECT_FALSE(quiet.weights);
  EXPECT_FALSE(quiet.scores);
}

TEST(AttentionProperty, BatchedEqualsSingle) {
  tests::on_every_isa([](kernels::Isa) {
    Heads s({3, 50, 0, 1}, {7, 150, 2, 0}, {2, 8, 5});
    const Heads::Result batch = s.run(Mask{});
    for (int64_t n = 0; n < s.queries.count(); ++n) {
      Heads one({s.queries.length(n)}, {s.keys.length(n)}, s.shape);
      one.q = s.q.slice_rows(s.queries.begin(n), s.queries.length(n));
      one.k = s.k.slice_rows(s.keys.begin(n), s.keys.length(n));
      one.v = s.v.slice_rows(s.keys.begin(n), s.keys.length(n));
      one.up = s.up.slice_rows(s.queries.begin(n), s.queries.length(n));
      const Heads::Result single = one.run(Mask{});
      const auto rows = [&](const Tensor<float>& x, const Offsets& o) {
        return x.slice_rows(o.begin(n), o.length(n));
      };
      EXPECT_TRUE(same_bits(single.output, rows(batch.output, s.queries)));
      EXPECT_TRUE(same_bits(single.dq, rows(batch.dq, s.queries)));
      EXPECT_TRUE(same_bits(single.dk, rows(batch.dk, s.keys)));
      EXPECT_TRUE(same_bits(single.dv, rows(batch.dv, s.keys)));
    }
  });
}

TEST(AttentionProperty, CausalRowsDoNotKnowTheFuture) {
  tests::on_every_isa([](kernels::Isa) {
    for (const int64_t n : {5, 40, 300}) {
      Heads s({n}, {n}, {2, 8, 5});
      const Heads::Result before = s.run(Mask{Causal::yes, {}});
      const int64_t changed = n / 2;
      s.k.slice_rows(changed, n - changed).fill(3);
      s.v.slice_rows(changed, n - changed).fill(-7);
      const Heads::Result after = s.run(Mask{Causal::yes, {}});
      EXPECT_TRUE(same_bits(before.output.slice_rows(0, changed), after.output.slice_rows(0, changed)));
      EXPECT_FALSE(same_bits(before.output.slice_rows(changed, 1), after.output.slice_rows(changed, 1)));
    }
  });
}

TEST(AttentionProperty, NanUnderAMaskChangesNothing) {
  tests::on_every_isa([](kernels::Isa) {
    for (const int64_t n_k : {6, 20, 300}) {
      SCOPED_TRACE(n_k);
      Heads s({3, 4}, {n_k, 5}, {2, 8, 5});
      // Nobody sees the last two keys of the first sequence; query 1 sees nothing at all.
      const std::vector<int64_t> visible{n_k - 2, 0, 3, 5, 5, 1, 5};
      const Heads::Result clean = s.run(visible);
      s.k.slice_rows(n_k - 2, 2).fill(kNan);
      s.v.slice_rows(n_k - 2, 2).fill(kNan);
      const Heads::Result dirty = s.run(visible);
      for (const auto& [a, b] : {std::pair{clean.output, dirty.output},
                                 {clean.weights, dirty.weights},
                                 {clean.dq, dirty.dq},
                                 {clean.dk, dirty.dk},
                                 {clean.dv, dirty.dv}}) {
        EXPECT_TRUE(same_bits(a, b));
      }
      for (const Tensor<float>& zero : {dirty.output.slice_rows(1, 1), dirty.dq.slice_rows(1, 1),
                                        dirty.dk.slice_rows(n_k - 2, 2), dirty.dv.slice_rows(n_k - 2, 2)}) {
        for (const float x : zero.values()) EXPECT_EQ(x, 0);
      }
      // What a query that sees nothing holds, and what comes back to it, is not read either.
      s.q.slice_rows(1, 1).fill(kNan);
      s.up.slice_rows(1, 1).fill(kNan);
      const Heads::Result dirtier = s.run(visible);
      EXPECT_TRUE(same_bits(clean.output, dirtier.output));
      EXPECT_TRUE(same_bits(clean.dk, dirtier.dk));
      EXPECT_TRUE(same_bits(clean.dv, dirtier.dv));
      EXPECT_TRUE(same_bits(clean.dq, dirtier.dq));
    }
  });
}

TEST(AttentionProperty, NanInSightIsNotLost) {
  tests::on_every_isa([](kernels::Isa) {
    for (const int64_t row : {0, 4, 299}) {
      Heads s({3}, {300}, {1, 8, 5});
      s.k.slice_rows(row, 1).fill(kNan);
      for (const float x : s.run(Mask{}).output.values()) EXPECT_TRUE(std::isnan(x));
    }
    Heads s({1}, {3}, {1, 8, 5});
    s.q.fill(kNan);
    const Heads::Result r = s.run(Mask{});
    for (const float x : r.output.values()) EXPECT_TRUE(std::isnan(x));
    for (const float x : r.dk.values()) EXPECT_TRUE(std::isnan(x));
  });
}

TEST(AttentionProperty, SoftmaxIsExactForHugeScores) {
  tests::on_every_isa([](kernels::Isa) {
    Context context;
    Tape<float> tape(context);
    const auto column = [&](std::vector<float> x) {
      return Var<float>(Tensor<float>::from(context.arena, {static_cast<int64_t>(x.size()), 1}, x));
    };
    const Var<float> query = column({1, -1}), key = column({-10000, 10000, 0, 10000});
    const Var<float> value = column({1, 2, 4, 8});
    const auto r =
        scaled_dot_product_attention<float>(tape, {query, lengths({2})}, {key, lengths({4})},
                                            {value, lengths({4})}, {}, {.scores = true, .weights = true});
    EXPECT_THAT(r.weights.value().values(), ::testing::ElementsAre(0, .5f, 0, .5f, 1, 0, 0, 0));
    EXPECT_THAT(r.output.value().values(), ::testing::ElementsAre(5, 1));
    EXPECT_THAT(r.scores.values(), ::testing::ElementsAre(-10000, 10000, 0, 10000, 10000, -10000, 0, -10000));
  });
}

// Sequences of several tiles against the reference, forward and backward, with dropout.
template <class T>
void check_long(int64_t n_q, int64_t n_k, double dropout, double tolerance) {
  Context context(2);
  Arena& arena = context.arena;
  const int64_t d_k = 5, d_v = 7;
  const auto q = random_tensor<double>(arena, {n_q, d_k}, 1), k = random_tensor<double>(arena, {n_k, d_k}, 2),
             v = random_tensor<double>(arena, {n_k, d_v}, 3),
             up = random_tensor<double>(arena, {n_q, d_v}, 4);
  const auto narrow = [&](const Tensor<double>& x) {
    const Tensor<T> y(arena, x.shape());
    std::copy(x.values().begin(), x.values().end(), y.data());
    return y;
  };
  Tape<T> tape(context, Tape<T>::Mode::train, RandomKey(5));
  const Var<T> vq = tape.leaf(narrow(q)), vk = tape.leaf(narrow(k)), vv = tape.leaf(narrow(v));
  std::vector<int64_t> visible;
  for (int64_t i = 0; i < n_q; ++i) visible.push_back((i * 37) % (n_k + 1));
  const auto r =
      scaled_dot_product_attention<T>(tape, {vq, 0}, lengths({n_q}), {vk, 0}, {vv, 0}, lengths({n_k}),
                                      {1, d_k, d_v}, visible, dropout, {.scores = true, .weights = true});
  const auto up_w = random_tensor<double>(arena, r.weights.shape(), 6, 0.3);
  tape.backward({{r.output, narrow(up)}, {r.weights, narrow(up_w)}});

  // The mask that was used, by the output of keys of equal weight onto unit values.
  Tape<double> probe(context, Tape<double>::Mode::train, RandomKey(5));
  const Tensor<double> unit = Tensor<double>::zeros(arena, {n_k, n_k});
  for (int64_t j = 0; j < n_k; ++j) unit(j, j) = 1;
  const Tensor<double> nothing = Tensor<double>::zeros(arena, {n_q, d_k}),
                       no_keys = Tensor<double>::zeros(arena, {n_k, d_k});
  const Tensor<double> kept = scaled_dot_product_attention<double>(
                                  probe, {Var<double>(nothing), 0}, lengths({n_q}), {Var<double>(no_keys), 0},
                                  {Var<double>(unit), 0}, lengths({n_k}), {1, d_k, n_k}, {}, dropout)
                                  .output.value();

  kernels::reference::AttentionHead head;
  head.query = kernels::matrix(q);
  head.key = kernels::matrix(k);
  head.value = kernels::matrix(v);
  head.scale = 1 / std::sqrt(static_cast<double>(d_k));
  head.sees = [&](int64_t i, int64_t j) { return j < visible[static_cast<size_t>(i)]; };
  head.kept = [&](int64_t i, int64_t j) { return kept(i, j) * static_cast<double>(n_k); };
  const auto want = kernels::reference::attention(head);
  EXPECT_TRUE(close(r.output.value(), want.output, tolerance));
  EXPECT_TRUE(close(r.weights.value(), want.weights, tolerance));
  const auto gradients =
      kernels::reference::attention_gradients(head, kernels::matrix(up), tests::doubles(up_w));
  EXPECT_TRUE(close(tape.gradient(vq), gradients.query, tolerance));
  EXPECT_TRUE(close(tape.gradient(vk), gradients.key, tolerance));
  EXPECT_TRUE(close(tape.gradient(vv), gradients.value, tolerance));
  if (dropout > 0) {
    int64_t dropped = 0;
    for (const double x : kept.values()) dropped += x == 0;
    EXPECT_NEAR(static_cast<double>(dropped) / static_cast<double>(kept.size()), dropout, 0.02);
  }
}
TEST(AttentionProperty, LongSequencesEqualTheReference) {
  for (const double dropout : {0.0, 0.3}) {
    check_long<double>(300, 300, dropout, 1e-9);
    check_long<float>(300, 300, dropout, 1e-4);
    check_long<float>(33, 129, dropout, 1e-4);
    check_long<float>(129, 33, dropout, 1e-4);
  }
}

}  // namespace
}  // namespace gloss::attention
