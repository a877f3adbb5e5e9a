// Attention against PyTorch's numbers.
#include "support/golden.h"
#include "attention/support.h"
#include "gloss/nn/linear.h"
#include "support/isas.h"

namespace gloss::attention {
namespace {

using tests::close;
using tests::Golden;
using tests::kTolerance;

template <class T>
class AttentionGolden : public ::testing::Test {};
using Numbers = ::testing::Types<float, double>;
TYPED_TEST_SUITE(AttentionGolden, Numbers);

// A golden case of padded tensors as ragged rows. Padded keys are taken out; padded queries are rows like any
// other there, so they stay.
template <class T>
struct Case {
  Case(Context& context, const std::string& name) : golden(name), arena(context.arena) {
    const Tensor<T> q = golden.read<T>(arena, "q"), k = golden.read<T>(arena, "k"),
                    v = golden.read<T>(arena, "v");
    batch = q.shape()[0];
    n_q = q.shape()[2];
    n_k = k.shape()[2];
    shape = {q.shape()[1], q.cols(), v.cols()};
    length = golden.ints("length");
    queries = std::make_unique<Padding>(std::vector<int64_t>(static_cast<size_t>(batch), n_q), n_q);
    keys = std::make_unique<Padding>(length, n_k);
    query = heads_to_rows(arena, q);
    key = keys->compact(arena, heads_to_rows(arena, k));
    value = keys->compact(arena, heads_to_rows(arena, v));
    Mask mask;
    if (golden.setting("causal") == "true") mask = {Causal::yes, n_k - n_q};
    visible = keys->visible_keys(mask, *queries);
  }
  // Weights [batch, heads, n_q, n_k] without padded keys, in our order.
  std::vector<double> ragged(const std::string& name) const {
    const Tensor<double> padded = golden.read<double>(arena, name);
    std::vector<double> all;
    for (int64_t i = 0; i < padded.rows(); ++i) {
      all.insert(all.end(), padded.row(i),
                 padded.row(i) + length[static_cast<size_t>(i / (shape.heads * n_q))]);
    }
    return all;
  }
  Tensor<double> rows(const std::string& name) const {
    return heads_to_rows(arena, golden.read<double>(arena, name));
  }

  Golden golden;
  Arena& arena;
  int64_t batch, n_q, n_k;
  HeadShape shape;
  std::vector<int64_t> length, visible;
  std::unique_ptr<Padding> queries, keys;
  Tensor<T> query, key, value;
};

enum class Packing { none, key_value, all };

template <class T>
void check_case(const std::string& name, Packing packing) {
  SCOPED_TRACE(testing::Message() << name << " packing " << static_cast<int>(packing));
  Context context(2);
  Arena& arena = context.arena;
  const Case<T> c(context, name);
  const int64_t w_k = c.shape.heads * c.shape.d_k, w_v = c.shape.heads * c.shape.d_v;
  if (packing == Packing::all && c.query.rows() != c.key.rows()) return;
  Tape<T> tape(context, Tape<T>::Mode::train);
  Projection<T> q, k, v;
  if (packing == Packing::none) {
    q = {tape.leaf(c.query), 0};
    k = {tape.leaf(c.key), 0};
    v = {tape.leaf(c.value), 0};
  } else if (packing == Packing::key_value) {
    const Var<T> both = tape.leaf(beside<T>(arena, {c.key, c.value}));
    q = {tape.leaf(c.query), 0};
    k = {both, 0};
    v = {both, w_k};
  } else {
    const Var<T> all = tape.leaf(beside<T>(arena, {c.query, c.key, c.value}));
    q = {all, 0};
    k = {all, w_k};
    v = {all, 2 * w_k};
  }
  const Attended<T> result =
      scaled_dot_product_attention(tape, q, c.queries->offsets(), k, v, c.keys->offsets(), c.shape, c.visible,
                                   0, {.scores = true, .weights = true});
  EXPECT_TRUE(close(result.output.value(), c.rows("out"), kTolerance<T>));
  EXPECT_TRUE(close(result.weights.value(), c.ragged("weights"), kTolerance<T>));
  const std::vector<double> up_weights = c.ragged("up.weights");
  const Tensor<T> up_out = heads_to_rows(arena, c.golden.template read<T>(arena, "up.out"));
  const auto up =
      Tensor<T>::from(arena, result.weights.shape(), std::vector<T>(up_weights.begin(), up_weights.end()));
  tape.backward({{result.output, up_out}, {result.weights, up}});
  const auto gradient = [&](const Projection<T>& p, int64_t width) {
    return cut_columns(arena, tape.gradient(p.rows), p.first, width);
  };
  EXPECT_TRUE(close(gradient(q, w_k), c.rows("grad.q"), kTolerance<T>));
  EXPECT_TRUE(close(c.keys->expand(arena, gradient(k, w_k)), c.rows("grad.k"), kTolerance<T>));
  EXPECT_TRUE(close(c.keys->expand(arena, gradient(v, w_v)), c.rows("grad.v"), kTolerance<T>));
}

TYPED_TEST(AttentionGolden, ScaledDotProduct) {
  tests::on_every_isa([](kernels::Isa) {
    for (const char* name : {"sdpa_none", "sdpa_padding", "sdpa_causal", "sdpa_causal_padding",
                             "sdpa_causal_cached_step", "sdpa_causal_chunk", "sdpa_empty_row"}) {
      for (const Packing packing : {Packing::none, Packing::key_value, Packing::all}) {
        check_case<TypeParam>(name, packing);
      }
    }
  });
}

// p_i (delta_ik - p_k): with queries of one number 1 and scores z, upstream e_i on the weights gives row i.
TYPED_TEST(AttentionGolden, SoftmaxJacobian) {
  using T = TypeParam;
  Context context;
  Arena& arena = context.arena;
  const Golden golden("softmax_jacobian");
  const Tensor<T> z = golden.read<T>(arena, "z"), jacobian = golden.read<T>(arena, "jacobian");
  const int64_t n = z.cols();
  for (int64_t b = 0; b < z.rows(); ++b) {
    for (int64_t i = 0; i < n; ++i) {
      Tape<T> tape(context, Tape<T>::Mode::train);
      const Tensor<T> one(arena, {1, 1});
      one.fill(1);
      const Var<T> keys = tape.leaf(z.slice_rows(b, 1).reshaped({n, 1}));
      const Var<T> values(tests::random_tensor<T>(arena, {n, 1}, 5));
      const Attended<T> result =
          scaled_dot_product_attention<T>(tape, {Var<T>(one), lengths({1})}, {keys, lengths({n})},
                                          {values, lengths({n})}, {}, {.weights = true});
      EXPECT_TRUE(
          close(result.weights.value(), golden.read<double>(arena, "p").slice_rows(b, 1), kTolerance<T>));
      const Tensor<T> up = Tensor<T>::zeros(arena, {n});
      up.data()[i] = 1;
      tape.backward(result.weights, up);
      EXPECT_TRUE(close(tape.gradient(keys), jacobian.slice_rows(b * n + i, 1), kTolerance<T>));
    }
  }
}

template <class T>
void load(const Golden& golden, Arena& arena, const ParameterSet<T>& parameters) {
  parameters.each_part([&](const std::string& name, const Tensor<T>& value) {
    const std::string golden_name = std::string(name.ends_with("weight") ? "W_" : "b_") + name.substr(0, 1);
    const Tensor<T> from = golden.read<T>(arena, golden_name);
    std::copy_n(from.data(), value.size(), value.data());
  });
}

template <class T>
void check_parameter_gradients(const Golden& golden, Arena& arena, const ParameterSet<T>& parameters) {
  each_gradient<T>(parameters, [&](const std::string& name, const Tensor<T>&, std::span<const T> gradient) {
    SCOPED_TRACE(name);
    const std::string of =
        std::string("grad.") + (name.ends_with("weight") ? "W_" : "b_") + name.substr(0, 1);
    // A bias of the keys moves all scores of a row alike: its gradient is zero but for rounding.
    const Tensor<double> want = golden.read<double>(arena, of);
    if (of == "grad.b_k") {
      for (const T g : gradient) EXPECT_NEAR(static_cast<double>(g), 0, kTolerance<T>);
    } else {
      EXPECT_TRUE(close(tests::doubles(gradient), want, kTolerance<T>));
    }
  });
}

TYPED_TEST(AttentionGolden, MultiHeadSelfCausalPadding) {
  using T = TypeParam;
  const Golden golden("mha_self_causal_padding");
  for (const Stacking stacking : {Stacking::query_key_value, Stacking::key_value, Stacking::none}) {
    Context context(2);
    Arena& arena = context.arena;
    Module<T> module(context, {.d_model = 16, .heads = 4}, stacking, true);
    load(golden, arena, module.parameters);
    const Tensor<T> x = golden.read<T>(arena, "query").reshaped({10, 16});
    const Padding all(std::vector<int64_t>{5, 5}, 5), live(golden.ints("length"), 5);
    Tape<T> tape(context, Tape<T>::Mode::train);
    const Var<T> query = tape.leaf(x), key = tape.leaf(live.compact(arena, x));
    const Attended<T> result =
        module.attention.attend(tape, {query, all.offsets()}, {key, live.offsets()}, {key, live.offsets()},
                                live.visible_keys({Causal::yes, {}}, all), 0, {.weights = true});
    EXPECT_TRUE(close(result.output.value(), golden.read<double>(arena, "out"), kTolerance<T>));
    std::vector<T> up_weights;
    std::vector<double> want_weights;
    const Tensor<T> up = golden.read<T>(arena, "up.weights");
    const Tensor<double> want = golden.read<double>(arena, "weights");
    for (int64_t i = 0; i < up.rows(); ++i) {  // [2, 4, 5, 5]
      const int64_t n = i < 20 ? 5 : 3;
      up_weights.insert(up_weights.end(), up.row(i), up.row(i) + n);
      want_weights.insert(want_weights.end(), want.row(i), want.row(i) + n);
    }
    EXPECT_TRUE(close(result.weights.value(), want_weights, kTolerance<T>));
    tape.backward({{result.output, golden.read<T>(arena, "up.out").reshaped({10, 16})},
                   {result.weights, Tensor<T>::from(arena, result.weights.shape(), up_weights)}});
    const Tensor<T> from_keys = live.expand(arena, tape.gradient(key)), sum = tape.gradient(query);
    for (int64_t i = 0; i < sum.size(); ++i) sum.data()[i] += from_keys.data()[i];
    EXPECT_TRUE(close(sum, golden.read<double>(arena, "grad.query"), kTolerance<T>));
    check_parameter_gradients<T>(golden, arena, module.parameters);

    // Without padded queries at all: the fused path gives the same live rows.
    Tape<T> fused(context, Tape<T>::Mode::train);
    const Tensor<T> only_live =
        module.attention(fused, {fused.leaf(live.compact(arena, x)), live.offsets()}, Mask{Causal::yes, {}})
            .output.value();
    EXPECT_TRUE(close(only_live, live.compact(arena, golden.read<double>(arena, "out")), kTolerance<T>));
  }
}

TYPED_TEST(AttentionGolden, MultiHeadCrossPadding) {
  using T = TypeParam;
  const Golden golden("mha_cross_padding");
  for (const Stacking stacking : {Stacking::key_value, Stacking::none}) {
    Context context(2);
    Arena& arena = context.arena;
    Module<T> module(context, {.d_model = 16, .heads = 4}, stacking, true);
    load(golden, arena, module.parameters);
    const Padding live(golden.ints("length"), 5);
    Tape<T> tape(context, Tape<T>::Mode::train);
    const Var<T> query = tape.leaf(golden.read<T>(arena, "query").reshaped({6, 16}));
    const Var<T> memory = tape.leaf(live.compact(arena, golden.read<T>(arena, "memory")));
    const Attended<T> result = module.attention(tape, {query, lengths({3, 3})}, {memory, live.offsets()},
                                                Mask{}, 0, {.weights = true});
    EXPECT_TRUE(close(result.output.value(), golden.read<double>(arena, "out"), kTolerance<T>));
    std::vector<T> up_weights;
    const Tensor<T> up = golden.read<T>(arena, "up.weights");
    for (int64_t i = 0; i < up.rows(); ++i) {  // [2, 4, 3, 5]
      up_weights.insert(up_weights.end(), up.row(i), up.row(i) + (i < 12 ? 5 : 3));
    }
    tape.backward({{result.output, golden.read<T>(arena, "up.out").reshaped({6, 16})},
                   {result.weights, Tensor<T>::from(arena, result.weights.shape(), up_weights)}});
    EXPECT_TRUE(close(tape.gradient(query), golden.read<double>(arena, "grad.query"), kTolerance<T>));
    EXPECT_TRUE(close(live.expand(arena, tape.gradient(memory)), golden.read<double>(arena, "grad.memory"),
                      kTolerance<T>));
    check_parameter_gradients<T>(golden, arena, module.parameters);
  }
}

}  // namespace
}  // namespace gloss::attention
