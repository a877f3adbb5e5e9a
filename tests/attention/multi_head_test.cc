// Multi-head attention is its formula: heads are slices, concatenated and projected.
#include <map>

#include "attention/support.h"
#include "gloss/nn/linear.h"

namespace gloss::attention {
namespace {

using tests::close;
using tests::random_tensor;
using tests::same_bits;

// Eq. in 3.2.2: head_i = Attention(Q W_i^Q, K W_i^K, V W_i^V), where W_i^Q is rows [i d_k, (i + 1) d_k) of
// the one stored matrix; each head is computed by itself here.
TEST(MultiHead, EqualsItsHeadsOneByOne) {
  for (const MultiHeadShape& shape :
       {MultiHeadShape{.d_model = 12, .heads = 3}, {.d_model = 12, .heads = 2, .d_k = 5, .d_v = 7}}) {
    Context context;
    Arena& arena = context.arena;
    Module<double> module(context, shape, Stacking::query_key_value);
    std::map<std::string, Tensor<double>> part;
    module.parameters.each_part(
        [&](const std::string& name, const Tensor<double>& value) { part[name] = value; });
    const MultiHeadShape& s = module.attention.shape();
    const Offsets queries = lengths({3, 1}), keys = lengths({5, 2});
    const Var<double> q(random_tensor<double>(arena, {4, 12}, 1)),
        k(random_tensor<double>(arena, {7, 12}, 2)), v(random_tensor<double>(arena, {7, 12}, 3));
    Tape<double> tape(context);
    const auto all =
        module.attention(tape, {q, queries}, {k, keys}, {v, keys}, {}, 0, {.scores = true, .weights = true});
    std::vector<Tensor<double>> heads;
    for (int64_t i = 0; i < s.heads; ++i) {
      const auto slice = [&](const Var<double>& x, const std::string& name, int64_t d) {
        const Tensor<double> bias = part[name + ".bias"].reshaped({s.heads * d, 1}).slice_rows(i * d, d);
        return nn::linear(tape, x, Var<double>(part[name + ".weight"].slice_rows(i * d, d)),
                          Var<double>(bias.reshaped({d})));
      };
      const auto head = scaled_dot_product_attention<double>(
          tape, {slice(q, "q_proj", s.d_k), queries}, {slice(k, "k_proj", s.d_k), keys},
          {slice(v, "v_proj", s.d_v), keys}, {}, {.scores = true, .weights = true});
      heads.push_back(head.output.value());
      // The weights and scores of this head among those of all.
      for (int64_t n = 0; n < 2; ++n) {
        const int64_t size = queries.length(n) * keys.length(n);
        const auto of = [&](const Tensor<double>& x, const std::vector<int64_t>& offsets, int64_t h) {
          return x.reshaped({x.size(), 1}).slice_rows(offsets[static_cast<size_t>(n)] + h * size, size);
        };
        EXPECT_TRUE(
            close(of(all.weights.value(), all.offsets, i), of(head.weights.value(), head.offsets, 0), 1e-12));
        EXPECT_TRUE(close(of(all.scores, all.offsets, i), of(head.scores, head.offsets, 0), 1e-12));
      }
    }
    const Var<double> concat(beside<double>(arena, heads));
    const Var<double> output =
        nn::linear(tape, concat, Var<double>(part["out_proj.weight"]), Var<double>(part["out_proj.bias"]));
    EXPECT_TRUE(close(all.output.value(), output.value(), 1e-12));
  }
}

TEST(MultiHead, KeyDefaultsToQueryAndValueToKey) {
  Context context;
  Module<float> module(context, {.d_model = 8, .heads = 2}, Stacking::query_key_value);
  Tape<float> tape(context);
  const Ragged<Var<float>> x{Var<float>(random_tensor<float>(context.arena, {5, 8}, 1)), lengths({3, 2})},
      y{Var<float>(random_tensor<float>(context.arena, {6, 8}, 2)), lengths({4, 2})};
  const auto& attend = module.attention;
  EXPECT_TRUE(same_bits(attend(tape, x).output.value(), attend(tape, x, x, x).output.value()));
  EXPECT_TRUE(same_bits(attend(tape, x, y).output.value(), attend(tape, x, y, y).output.value()));
  EXPECT_FALSE(close(attend(tape, x, y).output.value(), attend(tape, x, x).output.value(), 1e-2));
}

// Which projections share a product, and whether weights are packed, changes no bit of the result.
TEST(MultiHead, StackingAndPackingChangeNoNumber) {
  Context context(2);
  std::vector<Tensor<float>> outputs;
  const Ragged<Var<float>> x{Var<float>(random_tensor<float>(context.arena, {9, 24}, 1)), lengths({6, 0, 3})};
  for (const Stacking stacking : {Stacking::query_key_value, Stacking::key_value, Stacking::none}) {
    for (const bool packed : {false, true}) {
      Module<float> module(context, {.d_model = 24, .heads = 3}, stacking);
      // The vectors of the module are filled by position in their parameter; give them by name instead.
      module.parameters.each_part([](const std::string& name, const Tensor<float>& value) {
        for (int64_t i = 0; i < value.size(); ++i) {
          value.data()[i] =
              static_cast<float>(0.2 * RandomKey(4).with(name).normal(static_cast<uint64_t>(i)));
        }
      });
      if (packed) module.parameters.pack();
      Tape<float> tape(context);
      outputs.push_back(module.attention(tape, x, Mask{Causal::yes, {}}).output.value());
    }
  }
  for (const Tensor<float>& output : outputs) EXPECT_TRUE(same_bits(output, outputs.front()));
}

TEST(MultiHead, FloatFollowsDouble) {
  Context context;
  const MultiHeadShape shape{.d_model = 24, .heads = 3};
  Module<float> single(context, shape, Stacking::query_key_value, true);
  Module<double> twice(context, shape, Stacking::query_key_value, true);
  for (size_t i = 0; i < single.parameters.values().size(); ++i) {
    twice.parameters.values()[i] = static_cast<double>(single.parameters.values()[i]);
  }
  const auto x = random_tensor<double>(context.arena, {150, 24}, 1),
             up = random_tensor<double>(context.arena, {150, 24}, 2);
  const auto run = [&]<class T>(const Module<T>& module) {
    Tape<T> tape(context, Tape<T>::Mode::train, RandomKey(9));
    const auto narrow = [&](const Tensor<double>& of) {
      const Tensor<T> y(context.arena, of.shape());
      std::copy(of.values().begin(), of.values().end(), y.data());
      return y;
    };
    const Var<T> leaf = tape.leaf(narrow(x));
    const auto output = module.attention(tape, {leaf, lengths({140, 10})}, Mask{Causal::yes, {}}, 0.1).output;
    tape.backward(output, narrow(up));
    std::vector<double> all = tests::doubles(output.value());
    for (const double g : tests::doubles(tape.gradient(leaf))) all.push_back(g);
    return std::pair(all, tests::doubles(std::span<const T>(module.parameters.gradients())));
  };
  const auto a = run(single);
  const auto b = run(twice);
  EXPECT_TRUE(close(a.first, b.first, 1e-4));
  EXPECT_TRUE(close(a.second, b.second, 1e-4));
}

}  // namespace
}  // namespace gloss::attention
