// Additive attention: PyTorch's numbers, the forms it comes in, and what every kind of attention must keep.
#include "gloss/attention/additive.h"

#include <cmath>
#include <limits>

#include "attention/support.h"
#include "gloss/nn/linear.h"
#include "support/golden.h"
#include "support/isas.h"

namespace gloss::attention {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using tests::close;
using tests::Golden;
using tests::kTolerance;
using tests::random_tensor;
using tests::same_bits;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

template <class T>
class AdditiveGolden : public ::testing::Test {};
using Numbers = ::testing::Types<float, double>;
TYPED_TEST_SUITE(AdditiveGolden, Numbers);

// A layer with the golden file's weights, or random ones.
template <class T>
struct Layer {
  Layer(Context& context, int64_t d_s, int64_t d_h, int64_t d_a, const Golden* golden = nullptr)
      : attention(parameters, "attention.", d_s, d_h, d_a) {
    parameters.allocate(context.arena);
    parameters.initialise(7);
    parameters.allocate_gradients(context.arena);
    if (golden == nullptr) return;
    parameters.each_part([&](const std::string& name, const Tensor<T>& value) {
      const Tensor<T> from = golden->read<T>(context.arena, name.substr(name.find('.') + 1));
      ASSERT_EQ(from.shape(), value.shape());
      std::copy_n(from.data(), from.size(), value.data());
    });
  }
  ParameterSet<T> parameters;
  AdditiveAttention<T> attention;
};

// Padded rows [batch, n] without what stands past the lengths.
std::vector<double> ragged(const Tensor<double>& padded, const std::vector<int64_t>& length) {
  std::vector<double> all;
  for (int64_t i = 0; i < padded.rows(); ++i) {
    all.insert(all.end(), padded.row(i), padded.row(i) + length[static_cast<size_t>(i)]);
  }
  return all;
}

TYPED_TEST(AdditiveGolden, Layer) {
  using T = TypeParam;
  tests::on_every_isa([](kernels::Isa) {
    Context context(2);
    Arena& arena = context.arena;
    const Golden golden("additive_attention");
    const Layer<T> layer(context, 6, 8, 7, &golden);
    const std::vector<int64_t> length = golden.ints("length");
    const Padding live(length, 5);
    Tape<T> tape(context, Tape<T>::Mode::train);
    const Var<T> s_prev = tape.leaf(golden.read<T>(arena, "s_prev")),
                 h = tape.leaf(live.compact(arena, golden.read<T>(arena, "h")));
    const AdditiveAttended<T> r = layer.attention(tape, {s_prev, lengths({1, 1, 1})}, {h, live.offsets()},
                                                  {.scores = true, .weights = true});
    const auto want = [&](const char* name) { return golden.read<double>(arena, name); };
    EXPECT_TRUE(close(r.context.value(), want("context"), kTolerance<T>));
    EXPECT_TRUE(close(r.weights.value(), ragged(want("weights"), length), kTolerance<T>));
    EXPECT_TRUE(close(r.scores, ragged(want("scores"), length), kTolerance<T>));
    EXPECT_THAT(r.offsets, ElementsAre(0, 5, 8, 8));
    const std::vector<double> up = ragged(want("up.weights"), length);
    tape.backward(
        {{r.context, golden.read<T>(arena, "up.context")},
         {r.weights, Tensor<T>::from(arena, r.weights.shape(), std::vector<T>(up.begin(), up.end()))}});
    EXPECT_TRUE(close(tape.gradient(s_prev), want("grad.s_prev"), kTolerance<T>));
    EXPECT_TRUE(close(live.expand(arena, tape.gradient(h)), want("grad.h"), kTolerance<T>));
    each_gradient<T>(layer.parameters, [&](const std::string& name, const Tensor<T>&,
                                           std::span<const T> gradient) {
      EXPECT_TRUE(close(tests::doubles(gradient), want(("grad." + name.substr(10)).c_str()), kTolerance<T>))
          << name;
    });
  });
}

// One query from the formula's own terms, its joint vectors, and the concatenated form
// v_a^T tanh([W_a U_a][s_{i-1}; h_j]).
TYPED_TEST(AdditiveGolden, OneQuery) {
  using T = TypeParam;
  Context context;
  Arena& arena = context.arena;
  const Golden golden("additive_attention");
  const std::vector<int64_t> length = golden.ints("length");
  const auto read = [&](const char* name) { return golden.read<T>(arena, name); };
  const Tensor<T> W_a = read("W_a"), U_a = read("U_a"), v_a = read("v_a"),
                  both = beside<T>(arena, {W_a, U_a});
  const Tensor<double> scores = golden.read<double>(arena, "scores"),
                       weights = golden.read<double>(arena, "weights"),
                       contexts = golden.read<double>(arena, "context");
  for (int64_t i = 0; i < 3; ++i) {
    const int64_t n = length[static_cast<size_t>(i)];
    const Tensor<T> s_prev = read("s_prev").slice_rows(i, 1), h = read("h").slice_rows(5 * i, n);
    Tape<T> tape(context);
    const AdditiveStep<T> step = additive_attention(tape, Var<T>(s_prev), Var<T>(h), Var<T>(W_a), Var<T>(U_a),
                                                    Var<T>(v_a), JointVectors::yes);
    EXPECT_TRUE(close(step.context.value(), contexts.slice_rows(i, 1), kTolerance<T>));
    const auto first = [&](const Tensor<double>& rows) {
      return std::vector<double>(rows.row(i), rows.row(i) + n);
    };
    EXPECT_TRUE(close(step.weights.value(), first(weights), kTolerance<T>));
    EXPECT_TRUE(close(step.scores, first(scores), kTolerance<T>));

    const Tensor<T> repeated(arena, {n, s_prev.cols()});
    for (int64_t j = 0; j < n; ++j) std::copy_n(s_prev.data(), s_prev.cols(), repeated.row(j));
    Tensor<T> z = nn::linear(tape, Var<T>(beside<T>(arena, {repeated, h})), Var<T>(both), Var<T>()).value();
    for (T& x : z.values()) x = std::tanh(x);
    EXPECT_TRUE(close(step.z, z, sizeof(T) == 4 ? 2e-6 : 1e-14));
    const Var<T> e = nn::linear(tape, Var<T>(z), Var<T>(v_a.reshaped({1, v_a.size()})), Var<T>());
    EXPECT_TRUE(close(step.scores, e.value(), sizeof(T) == 4 ? 2e-6 : 1e-14));
    // Not asked for, not made.
    EXPECT_FALSE(
        additive_attention(tape, Var<T>(s_prev), Var<T>(h), Var<T>(W_a), Var<T>(U_a), Var<T>(v_a)).z);
  }
}

// Random sequences, and what additive attention makes of them.
struct Sequences {
  Sequences(std::vector<int64_t> n_q, std::vector<int64_t> n, int64_t width = 21, int64_t height = 37)
      : queries(lengths(n_q)), sources(lengths(n)), d_a(width), d_h(height) {
    query = random_tensor<float>(context.arena, {queries.total(), d_a}, 1);
    keys = random_tensor<float>(context.arena, {sources.total(), d_a}, 2);
    h = random_tensor<float>(context.arena, {sources.total(), d_h}, 3);
    v_a = random_tensor<float>(context.arena, {d_a}, 4);
    up = random_tensor<float>(context.arena, {queries.total(), d_h}, 5);
  }
  struct Result {
    Tensor<float> context, weights, scores, dquery, dkeys, dh, dv_a;
    std::vector<int64_t> offsets;
  };
  Result run(Request request = {.scores = true, .weights = true}) {
    Tape<float> tape(context, Tape<float>::Mode::train);
    const Var<float> q = tape.leaf(query), k = tape.leaf(keys), values = tape.leaf(h), v = tape.leaf(v_a);
    const AdditiveAttended<float> a =
        additive_attention<float>(tape, q, queries, k, values, sources, v, request);
    tape.backward(a.context, up);
    return {a.context.value(), a.weights.value(),     a.scores,         tape.gradient(q),
            tape.gradient(k),  tape.gradient(values), tape.gradient(v), a.offsets};
  }
  // Sequence s alone.
  Result run_alone(int64_t s) const {
    Sequences one({queries.length(s)}, {sources.length(s)}, d_a, d_h);
    one.query = query.slice_rows(queries.begin(s), queries.length(s));
    one.keys = keys.slice_rows(sources.begin(s), sources.length(s));
    one.h = h.slice_rows(sources.begin(s), sources.length(s));
    one.up = up.slice_rows(queries.begin(s), queries.length(s));
    return one.run();
  }

  Context context{2};
  Offsets queries, sources;
  int64_t d_a, d_h;
  Tensor<float> query, keys, h, v_a, up;
};

TEST(AdditiveProperty, RowsSumToOneAndAnEmptySourceGivesZeros) {
  tests::on_every_isa([](kernels::Isa) {
    Sequences s({3, 0, 5, 2, 20}, {7, 2, 1, 0, 200});
    const Sequences::Result r = s.run();
    EXPECT_THAT(r.offsets, ElementsAre(0, 21, 21, 26, 26, 4026));
    ASSERT_EQ(r.weights.size(), 4026);
    for (int64_t n = 0; n < 5; ++n) {
      const int64_t length = s.sources.length(n);
      for (int64_t i = 0; i < s.queries.length(n); ++i) {
        const float* w = r.weights.data() + r.offsets[static_cast<size_t>(n)] + i * length;
        double sum = 0;
        for (int64_t j = 0; j < length; ++j) {
          sum += static_cast<double>(w[j]);
          EXPECT_GT(w[j], 0);
        }
        EXPECT_NEAR(sum, length > 0 ? 1 : 0, 1e-5);
      }
    }
    for (const float x : r.context.slice_rows(8, 2).values()) EXPECT_EQ(x, 0);
    for (const float x : r.dquery.slice_rows(8, 2).values()) EXPECT_EQ(x, 0);
    for (const Tensor<float>& g : {r.dquery, r.dkeys, r.dh, r.dv_a}) {
      for (const float x : g.values()) EXPECT_TRUE(std::isfinite(x));
    }
  });
}

TEST(AdditiveProperty, AskingForScoresAndWeightsChangesNothing) {
  Sequences s({4, 20}, {50, 60});
  const Sequences::Result asked = s.run(), quiet = s.run({});
  EXPECT_TRUE(same_bits(asked.context, quiet.context));
  EXPECT_TRUE(same_bits(asked.dquery, quiet.dquery));
  EXPECT_TRUE(same_bits(asked.dv_a, quiet.dv_a));
  EXPECT_FALSE(quiet.weights);
  EXPECT_FALSE(quiet.scores);
  EXPECT_TRUE(quiet.offsets.empty());
}

TEST(AdditiveProperty, BatchedEqualsSingle) {
  tests::on_every_isa([](kernels::Isa) {
    Sequences s({3, 20, 0, 1, 2}, {7, 150, 2, 4, 0});
    const Sequences::Result batch = s.run();
    for (int64_t n = 0; n < s.queries.count(); ++n) {
      const Sequences::Result single = s.run_alone(n);
      const auto of = [&](const Tensor<float>& x, const Offsets& o) {
        return x.slice_rows(o.begin(n), o.length(n));
      };
      EXPECT_TRUE(same_bits(single.context, of(batch.context, s.queries)));
      EXPECT_TRUE(same_bits(single.dquery, of(batch.dquery, s.queries)));
      EXPECT_TRUE(same_bits(single.dkeys, of(batch.dkeys, s.sources)));
      EXPECT_TRUE(same_bits(single.dh, of(batch.dh, s.sources)));
    }
  });
}

// The negative control: what must matter does.
TEST(AdditiveProperty, OtherQueriesKeysAndVectorsDiffer) {
  Sequences s({1, 1}, {9, 9});
  const Tensor<float> before = s.run().context;
  const auto differs = [&](Tensor<float>& part) {
    const Tensor<float> kept = part;
    part = random_tensor<float>(s.context.arena, kept.shape(), 99);
    const bool differ = !close(s.run().context, before, 1e-2);
    part = kept;
    return differ;
  };
  EXPECT_TRUE(differs(s.query));
  EXPECT_TRUE(differs(s.keys));
  EXPECT_TRUE(differs(s.h));
  EXPECT_TRUE(differs(s.v_a));
}

// There is no recurrence: all queries at once are one by one, and so are all sentences in the translating
// form, in any order and with sources that several share.
TEST(AdditiveProperty, AtOnceEqualsStepByStepAndTranslating) {
  tests::on_every_isa([](kernels::Isa) {
    Sequences s({3, 14, 1}, {7, 40, 0});
    const Sequences::Result at_once = s.run();
    std::vector<RowsOfSource<float>> looks;
    const Tensor<float> backwards(s.context.arena, s.query.shape());
    for (int64_t i = s.queries.total(); i-- > 0;) {
      const int64_t n = i < 3 ? 0 : i < 17 ? 1 : 2, begin = s.sources.begin(n), count = s.sources.length(n);
      std::copy_n(s.query.row(i), s.d_a, backwards.row(static_cast<int64_t>(looks.size())));
      looks.push_back({kernels::rows(kernels::matrix(s.keys), begin, count),
                       kernels::rows(kernels::matrix(s.h), begin, count)});

      Sequences one({1}, {count}, s.d_a, s.d_h);
      one.query = s.query.slice_rows(i, 1);
      one.keys = s.keys.slice_rows(begin, count);
      one.h = s.h.slice_rows(begin, count);
      EXPECT_TRUE(same_bits(one.run().context, at_once.context.slice_rows(i, 1)));
    }
    const Tensor<float> contexts(s.context.arena, at_once.context.shape());
    additive_attention<float>(s.context.pool, kernels::matrix(backwards), looks, s.v_a,
                              kernels::matrix(contexts));
    for (int64_t i = 0; i < contexts.rows(); ++i) {
      EXPECT_TRUE(
          same_bits(contexts.slice_rows(i, 1), at_once.context.slice_rows(contexts.rows() - 1 - i, 1)));
    }
  });
}

TEST(AdditiveProperty, TheLayerTranslatesAsItTrains) {
  Context context(2);
  Layer<float> layer(context, 6, 20, 9);
  EXPECT_EQ(layer.attention.d_s(), 6);
  EXPECT_EQ(layer.attention.d_h(), 20);
  EXPECT_EQ(layer.attention.d_a(), 9);
  const Var<float> s_prev(random_tensor<float>(context.arena, {5, 6}, 1)),
      h(random_tensor<float>(context.arena, {9, 20}, 2));
  const Offsets queries = lengths({2, 3}), sources = lengths({4, 5});
  Tape<float> tape(context);
  const Tensor<float> trained = layer.attention(tape, {s_prev, queries}, {h, sources}).context.value();
  for (const bool packed : {false, true}) {
    if (packed) layer.parameters.pack();
    const Tensor<float> memory = layer.attention.project_memory(tape, h).value();
    std::vector<RowsOfSource<float>> looks;
    for (int64_t i = 0; i < 5; ++i) {
      const int64_t begin = i < 2 ? 0 : 4, count = i < 2 ? 4 : 5;
      looks.push_back({kernels::rows(kernels::matrix(memory), begin, count),
                       kernels::rows(kernels::matrix(h.value()), begin, count)});
    }
    EXPECT_TRUE(same_bits(layer.attention.memory_step(tape, s_prev, looks).value(), trained));
  }
}

TEST(AdditiveProperty, SoftmaxIsExactForHugeScores) {
  tests::on_every_isa([](kernels::Isa) {
    Context context;
    Tape<float> tape(context);
    const auto column = [&](std::vector<float> x) {
      return Var<float>(Tensor<float>::from(context.arena, {static_cast<int64_t>(x.size()), 1}, x));
    };
    // tanh is +-1, so the scores are those of v_a.
    const auto r = additive_attention<float>(tape, column({0}), lengths({1}), column({-30, 30, 0, 30}),
                                             column({1, 2, 4, 8}), lengths({4}), column({10000}),
                                             {.scores = true, .weights = true});
    EXPECT_THAT(r.scores.values(), ElementsAre(-10000, 10000, 0, 10000));
    EXPECT_THAT(r.weights.value().values(), ElementsAre(0, .5f, 0, .5f));
    EXPECT_THAT(r.context.value().values(), ElementsAre(5));
  });
}

TEST(AdditiveProperty, NanIsReadOnlyWhereAQueryLooks) {
  tests::on_every_isa([](kernels::Isa) {
    Sequences s({3, 0, 2}, {20, 6, 5});
    const Sequences::Result clean = s.run();
    s.keys.slice_rows(20, 6).fill(kNan);  // nobody looks at the second source
    s.h.slice_rows(20, 6).fill(kNan);
    const Sequences::Result dirty = s.run();
    EXPECT_TRUE(same_bits(clean.context, dirty.context));
    for (const auto& [a, b] : {std::pair{clean.dquery, dirty.dquery},
                               {clean.dkeys, dirty.dkeys},
                               {clean.dh, dirty.dh},
                               {clean.dv_a, dirty.dv_a}}) {
      EXPECT_TRUE(same_bits(a, b));
    }
    for (const int64_t row : {0, 7, 19}) {
      Sequences seen({3, 1}, {20, 5});
      seen.keys(row, 4) = kNan;
      const Tensor<float> context = seen.run().context;
      for (const float x : context.slice_rows(0, 3).values()) EXPECT_TRUE(std::isnan(x));
      for (const float x : context.slice_rows(3, 1).values()) EXPECT_FALSE(std::isnan(x));
    }
  });
}

TEST(AdditiveProperty, WhatDoesNotFitIsRefused) {
  Context context;
  Tape<float> tape(context);
  const auto of = [&](Shape shape) { return Var<float>(random_tensor<float>(context.arena, shape, 1)); };
  const auto run = [&](Shape query, std::vector<int64_t> n_q, Shape keys, Shape h, std::vector<int64_t> n,
                       Shape v_a) {
    return message_of(
        [&] { additive_attention(tape, of(query), lengths(n_q), of(keys), of(h), lengths(n), of(v_a)); });
  };
  EXPECT_EQ(run({3, 4}, {1, 2}, {5, 4}, {5, 6}, {2, 3}, {4}), "");
  EXPECT_THAT(run({3, 4}, {3}, {5, 4}, {5, 6}, {2, 3}, {4}),
              AllOf(HasSubstr("1 sequences"), HasSubstr("2 sources")));
  EXPECT_THAT(run({2, 4}, {1, 2}, {5, 4}, {5, 6}, {2, 3}, {4}),
              AllOf(HasSubstr("2 query"), HasSubstr("3 queries")));
  EXPECT_THAT(run({3, 4}, {1, 2}, {4, 4}, {5, 6}, {2, 3}, {4}),
              AllOf(HasSubstr("4 key"), HasSubstr("5 source rows")));
  EXPECT_THAT(run({3, 4}, {1, 2}, {5, 4}, {7, 6}, {2, 3}, {4}),
              AllOf(HasSubstr("7 h rows"), HasSubstr("5 source")));
  EXPECT_THAT(run({3, 5}, {1, 2}, {5, 4}, {5, 6}, {2, 3}, {4}),
              AllOf(HasSubstr("5 numbers"), HasSubstr("keys 4")));
  EXPECT_THAT(run({3, 4}, {1, 2}, {5, 4}, {5, 6}, {2, 3}, {7}), HasSubstr("v_a 7"));
  EXPECT_THAT(message_of([&] {
                additive_attention(tape, of({2, 6}), of({5, 8}), of({7, 6}), of({7, 8}), of({7}));
              }),
              HasSubstr("2 states"));

  const auto step = [&](Shape query, Shape keys, Shape h, Shape v_a, Shape contexts) {
    return message_of([&] {
      const Tensor<float> k = of(keys).value(), values = of(h).value();
      const std::vector<RowsOfSource<float>> looks{{kernels::matrix(k), kernels::matrix(values)}};
      additive_attention<float>(context.pool, kernels::matrix(of(query).value()), looks, of(v_a).value(),
                                kernels::matrix(of(contexts).value()));
    });
  };
  EXPECT_EQ(step({1, 4}, {5, 4}, {5, 6}, {4}, {1, 6}), "");
  EXPECT_THAT(step({2, 4}, {5, 4}, {5, 6}, {4}, {2, 6}),
              AllOf(HasSubstr("2 queries"), HasSubstr("1 sources")));
  EXPECT_THAT(step({1, 4}, {5, 4}, {5, 6}, {4}, {3, 6}), HasSubstr("3 contexts"));
  EXPECT_THAT(step({1, 4}, {5, 4}, {5, 6}, {3}, {1, 6}), AllOf(HasSubstr("4 numbers"), HasSubstr("v_a 3")));
  EXPECT_THAT(step({1, 4}, {5, 4}, {2, 6}, {4}, {1, 6}), AllOf(HasSubstr("5 keys"), HasSubstr("2 rows")));
  EXPECT_THAT(step({1, 4}, {5, 3}, {5, 6}, {4}, {1, 6}), AllOf(HasSubstr("keys of 3"), HasSubstr("have 4")));
  EXPECT_THAT(step({1, 4}, {5, 4}, {5, 6}, {4}, {1, 9}), AllOf(HasSubstr("h of 6"), HasSubstr("contexts 9")));

  ParameterSet<float> parameters;
  EXPECT_THAT(message_of([&] { AdditiveAttention<float>(parameters, "", 3, 0, 5); }),
              HasSubstr("3, 0 and 5"));
}

}  // namespace
}  // namespace gloss::attention
