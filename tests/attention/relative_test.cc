// Relative positions: T5's buckets, attention with its bias against PyTorch's numbers and finite differences,
// and what must hold of it as of all attention.
#include "gloss/attention/relative_bias.h"

#include <cmath>

#include "attention/support.h"
#include "support/golden.h"
#include "support/gradient_check.h"
#include "support/isas.h"

namespace gloss::attention {
namespace {

using ::testing::HasSubstr;
using tests::close;
using tests::Golden;
using tests::kTolerance;
using tests::random_tensor;
using tests::same_bits;

constexpr RelativeBuckets kFew{8, 6};  // so that short sequences reach shared buckets and the last

TEST(RelativeBuckets, EqualThoseOfT5) {
  const Golden golden("relative_buckets");
  const std::vector<int64_t> distances = golden.ints("distances");
  for (const RelativeBuckets& buckets : std::vector<RelativeBuckets>{
           {32, 128}, {32, 64}, {16, 100}, {4, 3}, {8, 20}, {64, 500}, {128, 600}, {6, 1000}}) {
    for (const Causal causal : {Causal::no, Causal::yes}) {
      const std::string name = fmt::format("{}_{}_{}", causal == Causal::yes ? "causal" : "both",
                                           buckets.count, buckets.max_distance);
      const std::vector<int64_t> want = golden.ints(name);
      ASSERT_EQ(want.size(), distances.size());
      for (size_t i = 0; i < want.size(); ++i)
        EXPECT_EQ(relative_position_bucket(distances[i], causal, buckets), want[i])
            << name << " " << distances[i];
    }
  }
}

TEST(RelativeBuckets, RefuseWhatLeavesASideEmpty) {
  for (const int64_t count : {-2, 0, 2, 7, 65538})
    EXPECT_THAT(message_of([&] {
                  validate({count, 40'000});
                }),
                HasSubstr("must be an even number from 4 to 65536"))
        << count;
  for (const int64_t distance : {0, 15, 16, 65'537})
    EXPECT_THAT(message_of([&] {
                  validate(RelativeBuckets{32, distance});
                }),
                HasSubstr("must be above half their 32 buckets"))
        << distance;
  EXPECT_EQ(message_of([] { validate({32, 17}); }), "");
}

// A bias on its own.
template <class T>
struct Bias {
  Bias(Context& context, int64_t heads, Causal causal, const RelativeBuckets& buckets, bool gradients = false)
      : bias(parameters, "", heads, 16, causal, buckets) {
    parameters.allocate(context.arena);
    parameters.initialise(3);
    for (T& x : parameters.values()) x *= 4;  // of the size of scores
    if (gradients) parameters.allocate_gradients(context.arena);
  }
  const Tensor<T>& table() { return parameters.all().front().value; }
  ParameterSet<T> parameters;
  RelativeBias<T> bias;
};

template <class T>
class RelativeGolden : public ::testing::Test {};
using Numbers = ::testing::Types<float, double>;
TYPED_TEST_SUITE(RelativeGolden, Numbers);

template <class T>
void check_case(const std::string& name) {
  SCOPED_TRACE(name);
  Context context(2);
  Arena& arena = context.arena;
  const Golden golden(name);
  const Tensor<T> q = golden.read<T>(arena, "q"), k = golden.read<T>(arena, "k"),
                  v = golden.read<T>(arena, "v");
  const int64_t n_q = q.shape()[2], n_k = k.shape()[2];
  const HeadShape shape{q.shape()[1], q.cols(), v.cols()};
  const Causal causal = golden.setting("causal") == "true" ? Causal::yes : Causal::no;
  Bias<T> own(context, shape.heads, causal,
              {std::stoll(golden.setting("buckets")), std::stoll(golden.setting("max_distance"))}, true);
  const Tensor<T> table = golden.read<T>(arena, "table");
  ASSERT_EQ(table.shape(), own.table().shape());
  std::copy_n(table.data(), table.size(), own.table().data());

  Tape<T> tape(context, Tape<T>::Mode::train);
  const Var<T> query = tape.leaf(heads_to_rows(arena, q)), key = tape.leaf(heads_to_rows(arena, k)),
               value = tape.leaf(heads_to_rows(arena, v));
  const Offsets queries = lengths({n_q, n_q}), keys = lengths({n_k, n_k});
  const Mask mask = causal == Causal::yes ? Mask{causal, n_k - n_q} : Mask{};
  DistanceBias<T> bias = own.bias(tape, n_k);
  bias.first_query = n_k - n_q;
  const Attended<T> result = scaled_dot_product_attention<T>(tape, {query, 0}, queries, {key, 0}, {value, 0},
                                                             keys, shape, visible_keys(mask, queries, keys),
                                                             0, {.scores = true, .weights = true}, bias);
  EXPECT_TRUE(
      close(result.output.value(), heads_to_rows(arena, golden.read<double>(arena, "out")), kTolerance<T>));
  const auto flat = [&](const std::string& of) { return tests::doubles(golden.read<double>(arena, of)); };
  EXPECT_TRUE(close(result.weights.value(), flat("weights"), kTolerance<T>));
  const std::vector<double> scores = flat("scores");
  for (size_t i = 0; i < scores.size(); ++i) {
    const double got = static_cast<double>(result.scores.data()[i]);
    EXPECT_TRUE(got == scores[i] || std::abs(got - scores[i]) < 20 * kTolerance<T>) << i;
  }
  tape.backward({{result.output, heads_to_rows(arena, golden.read<T>(arena, "up.out"))},
                 {result.weights, golden.read<T>(arena, "up.weights").reshaped(result.weights.shape())}});
  const auto want = [&](const std::string& of) {
    return heads_to_rows(arena, golden.read<double>(arena, of));
  };
  EXPECT_TRUE(close(tape.gradient(query), want("grad.q"), kTolerance<T>));
  EXPECT_TRUE(close(tape.gradient(key), want("grad.k"), kTolerance<T>));
  EXPECT_TRUE(close(tape.gradient(value), want("grad.v"), kTolerance<T>));
  EXPECT_TRUE(
      close(own.parameters.all().front().gradient, golden.read<double>(arena, "grad.table"), kTolerance<T>));

  // One step of a cache, which has no gradient.
  if (n_q > 1) return;
  std::vector<kernels::CachedRows<T>> rows;
  const int64_t width = shape.heads * shape.d_k;
  for (int64_t s = 0; s < 2; ++s)
    rows.push_back({key.value().row(keys.begin(s)), value.value().row(keys.begin(s)), nullptr, n_k});
  const Tensor<T> out(arena, result.output.shape());
  kernels::cached_attention<T>(context.pool,
                               {kernels::matrix(query.value()),
                                rows,
                                width,
                                shape.heads * shape.d_v,
                                shape.heads,
                                shape.d_k,
                                shape.d_v,
                                static_cast<T>(1 / std::sqrt(static_cast<double>(shape.d_k))),
                                {kernels::matrix(bias.by_distance.value()), bias.zero}},
                               kernels::matrix(out));
  EXPECT_TRUE(close(out, want("out"), kTolerance<T>));
}

TYPED_TEST(RelativeGolden, AttentionWithItsBias) {
  tests::on_every_isa([](kernels::Isa) {
    for (const char* name : {"relative_both", "relative_causal", "relative_cached_step"})
      check_case<TypeParam>(name);
  });
}

// Queries, keys, values and the table, shared by two layers as in a stack, and dropout.
TEST(RelativeGradient, OfEveryInputAndTheTable) {
  Context context;
  for (const Causal causal : {Causal::no, Causal::yes}) {
    Module<double> module(context, {.d_model = 6, .heads = 2}, Stacking::query_key_value);
    Bias<double> own(context, 2, causal, kFew, true);
    const Offsets n = lengths({9, 0, 1, 4});
    tests::GradientCheck options;
    options.parameters = &own.parameters;
    EXPECT_EQ(tests::check_gradients(
                  context, {{"x", random_tensor<double>(context.arena, {14, 6}, 1)}},
                  [&](Tape<double>& tape, const std::vector<Var<double>>& in) {
                    const DistanceBias<double> bias = own.bias(tape, n.longest());
                    const Mask mask{causal, {}};
                    const auto first = module.attention(tape, {in[0], n}, mask, 0.2, {.weights = true}, bias);
                    const auto second = module.attention(tape, {first.output, n}, mask, 0, {}, bias);
                    return std::vector<Var<double>>{second.output, first.weights};
                  },
                  options),
              "");
  }
}

TEST(RelativeGradient, OfSeparateProjectionsBehindAnOffset) {
  Context context;
  const Offsets queries = lengths({2, 3}), keys = lengths({7, 5});
  Bias<double> own(context, 1, Causal::yes, kFew, true);
  tests::GradientCheck options;
  options.parameters = &own.parameters;
  EXPECT_EQ(tests::check_gradients(
                context,
                {{"query", random_tensor<double>(context.arena, {5, 3}, 1)},
                 {"key", random_tensor<double>(context.arena, {12, 3}, 2)},
                 {"value", random_tensor<double>(context.arena, {12, 4}, 3)}},
                [&](Tape<double>& tape, const std::vector<Var<double>>& in) {
                  DistanceBias<double> bias = own.bias(tape, 7);
                  bias.first_query = 2;
                  return std::vector<Var<double>>{
                      scaled_dot_product_attention<double>(
                          tape, {in[0], 0}, queries, {in[1], 0}, {in[2], 0}, keys, {1, 3, 4},
                          visible_keys({Causal::yes, 2}, queries, keys), 0, {}, bias)
                          .output};
                },
                options),
            "");
  // The bias alone wants a gradient.
  EXPECT_EQ(tests::check_gradients(
                context, {},
                [&](Tape<double>& tape, const std::vector<Var<double>>&) {
                  const Var<double> x(random_tensor<double>(context.arena, {5, 3}, 9));
                  return std::vector<Var<double>>{
                      scaled_dot_product_attention<double>(
                          tape, {x, 0}, queries, {x, 0}, {x, 0}, queries, {1, 3, 3},
                          visible_keys({Causal::yes, {}}, queries, queries), 0, {}, own.bias(tape, 3))
                          .output};
                },
                options),
            "");
}

struct Pass {
  Tensor<float> output, scores, dx, dtable;
};
Pass pass_of(int threads, const std::vector<int64_t>& n, const Tensor<float>& x, bool biased,
             int64_t longest = 0) {
  Context context(threads);
  Module<float> module(context, {.d_model = 12, .heads = 3}, Stacking::query_key_value);
  Bias<float> own(context, 3, Causal::no, kFew, true);
  Tape<float> tape(context, Tape<float>::Mode::train);
  const Var<float> input = tape.leaf(x);
  const Offsets offsets = lengths(n);
  const DistanceBias<float> bias =
      biased ? own.bias(tape, std::max(longest, offsets.longest())) : DistanceBias<float>{};
  const auto result = module.attention(tape, {input, offsets}, Mask{}, 0, {.scores = true}, bias);
  tape.backward(result.output, random_tensor<float>(context.arena, result.output.shape(), 5));
  return {result.output.value(), result.scores, tape.gradient(input), own.parameters.all().front().gradient};
}

// Neighbours, threads and how far the bias reaches change no bit, of the table's gradient either.
TEST(RelativeProperty, DoesNotDependOnCompany) {
  tests::on_every_isa([](kernels::Isa) {
    Arena arena;
    const Tensor<float> x = random_tensor<float>(arena, {190, 12}, 1);
    const std::vector<int64_t> n{33, 1, 0, 140, 16};
    const Pass batch = pass_of(1, n, x, true), threads = pass_of(3, n, x, true),
               farther = pass_of(2, n, x, true, 300);
    for (const Pass& other : {threads, farther}) {
      EXPECT_TRUE(same_bits(batch.output, other.output));
      EXPECT_TRUE(same_bits(batch.scores, other.scores));
      EXPECT_TRUE(same_bits(batch.dx, other.dx));
      EXPECT_TRUE(same_bits(batch.dtable, other.dtable));
    }
    const Offsets offsets = lengths(n);
    for (int64_t s = 0; s < offsets.count(); ++s) {
      const Pass alone =
          pass_of(1, {offsets.length(s)}, x.slice_rows(offsets.begin(s), offsets.length(s)), true);
      EXPECT_TRUE(same_bits(alone.output, batch.output.slice_rows(offsets.begin(s), offsets.length(s))));
    }
    // The negative control.
    EXPECT_FALSE(close(pass_of(1, n, x, false).output, batch.output, 1e-2));
  });
}

// Without positions self-attention gives tokens in another order the same rows in another order; with the
// bias it does not.
TEST(RelativeProperty, TellsOrder) {
  Arena arena;
  const int64_t n = 10;
  const Tensor<float> x = random_tensor<float>(arena, {n, 12}, 1), reversed(arena, {n, 12});
  for (int64_t i = 0; i < n; ++i) std::copy_n(x.row(i), 12, reversed.row(n - 1 - i));
  for (const bool biased : {false, true}) {
    const Pass a = pass_of(1, {n}, x, biased), b = pass_of(1, {n}, reversed, biased);
    const Tensor<float> back(arena, {n, 12});
    for (int64_t i = 0; i < n; ++i) std::copy_n(b.output.row(i), 12, back.row(n - 1 - i));
    EXPECT_EQ(bool(close(a.output, back, 1e-5)), !biased);
  }
}

TEST(RelativeProperty, IsPartOfTheScores) {
  Arena arena;
  Context context;
  const int64_t n = 9;
  const Tensor<float> x = random_tensor<float>(arena, {n, 12}, 1);
  const Pass with = pass_of(1, {n}, x, true), without = pass_of(1, {n}, x, false);
  Bias<float> own(context, 3, Causal::no, kFew);
  for (int64_t h = 0; h < 3; ++h) {
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        const int64_t at = (h * n + i) * n + j;
        EXPECT_NEAR(with.scores.data()[at] - without.scores.data()[at],
                    own.table()(relative_position_bucket(j - i, Causal::no, kFew), h), 1e-5F);
      }
    }
  }
}

TEST(RelativeProperty, CachedStepsEqualTheWholePass) {
  tests::on_every_isa([](kernels::Isa) {
    Context context(2);
    Arena& arena = context.arena;
    Module<float> module(context, {.d_model = 12, .heads = 3}, Stacking::query_key_value);
    Bias<float> own(context, 3, Causal::yes, kFew);
    KvCache<float> cache(arena, 1, module.attention.widths(), module.attention.widths());
    cache.open(0);
    cache.open(1);
    // Slot 1 begins 20 steps later, so that rows of one step stand at different positions.
    const int64_t n = 40, later = 20;
    const Tensor<float> x = random_tensor<float>(arena, {n, 12}, 1),
                        y = random_tensor<float>(arena, {n - later, 12}, 2);
    Tape<float> whole(context);
    const auto wanted = [&](const Tensor<float>& rows) {
      return module
          .attention(whole, {Var<float>(rows), lengths({rows.rows()})}, Mask{Causal::yes, {}}, 0, {},
                     own.bias(whole, rows.rows()))
          .output.value();
    };
    const Tensor<float> want_x = wanted(x), want_y = wanted(y);
    for (int64_t t = 0; t < n; ++t) {
      std::vector<KvCache<float>::Extension> rows{{0, 0}};
      if (t >= later) rows.push_back({1, 0});
      const Tensor<float> input(arena, {static_cast<int64_t>(rows.size()), 12});
      std::copy_n(x.row(t), 12, input.row(0));
      if (t >= later) std::copy_n(y.row(t - later), 12, input.row(1));
      Tape<float> tape(context);
      cache.begin_step(rows);
      const Tensor<float> got =
          module.attention.self_step(tape, Var<float>(input), cache, 0, own.bias(tape, t, 0)).value();
      for (int64_t c = 0; c < 12; ++c) {
        EXPECT_NEAR(got(0, c), want_x(t, c), 1e-5F);
        if (t >= later) {
          EXPECT_NEAR(got(1, c), want_y(t - later, c), 1e-5F);
        }
      }
    }
    // The negative control: the same step without the bias.
    Tape<float> tape(context);
    cache.begin_step(std::vector<KvCache<float>::Extension>{{0, 0}});
    const Tensor<float> last = x.slice_rows(n - 1, 1);
    EXPECT_FALSE(close(module.attention.self_step(tape, Var<float>(last), cache, 0).value(),
                       want_x.slice_rows(n - 1, 1), 1e-3));
  });
}

TEST(RelativeProperty, RefusesDistancesItDoesNotReach) {
  Context context;
  Bias<float> own(context, 2, Causal::no, kFew);
  Module<float> module(context, {.d_model = 4, .heads = 2}, Stacking::query_key_value);
  Tape<float> tape(context);
  const Var<float> x(random_tensor<float>(context.arena, {5, 4}, 1));
  const auto attend = [&](const DistanceBias<float>& bias) {
    return message_of([&] { module.attention(tape, {x, lengths({5})}, Mask{}, 0, {}, bias); });
  };
  EXPECT_EQ(attend(own.bias(tape, 5)), "");
  EXPECT_EQ(attend(own.bias(tape, 4)), "a bias for distances from -3 to 3 does not reach from -4 to 4");
  EXPECT_EQ(attend(own.bias(tape, 4, 3)), "a bias for distances from -4 to 3 does not reach from -4 to 4");
  DistanceBias<float> placed = own.bias(tape, 5);
  placed.first_query = 9;
  EXPECT_EQ(attend(placed), "a bias for distances from -4 is none for a query at position 9");
  Bias<float> other(context, 3, Causal::no, kFew);
  EXPECT_EQ(attend(other.bias(tape, 5)), "a bias of 3 heads does not fit attention of 2");

  KvCache<float> cache(context.arena, 1, module.attention.widths(), module.attention.widths());
  cache.open(0);
  for (int step = 0; step < 2; ++step) {
    cache.begin_step(std::vector<KvCache<float>::Extension>{{0, 0}});
    const Var<float> row(x.value().slice_rows(step, 1));
    EXPECT_EQ(message_of([&] { module.attention.self_step(tape, row, cache, 0, own.bias(tape, 0, 0)); }),
              step == 0 ? "" : "a bias of 2 heads for distances from 0 does not fit 2 heads and 2 rows");
  }
}

}  // namespace
}  // namespace gloss::attention
