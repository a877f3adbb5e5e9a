// A step of the recurrent decoder, the layers together, against PyTorch's numbers: GRU 1 on the embedding,
// additive attention whose query is the state after it, GRU 2 on the context.
#include "attention/support.h"
#include "gloss/attention/additive.h"
#include "nn/gru_support.h"
#include "support/isas.h"

namespace gloss::attention {
namespace {

using nn::expect_gradients;
using nn::live_rows;
using tests::close;
using tests::Golden;
using tests::kTolerance;

template <class T>
class ConditionalGru : public ::testing::Test {};
using Numbers = ::testing::Types<float, double>;
TYPED_TEST_SUITE(ConditionalGru, Numbers);

TYPED_TEST(ConditionalGru, EqualsPyTorch) {
  using T = TypeParam;
  const Golden golden("conditional_gru");
  const Offsets sources = lengths(golden.ints("length"));
  tests::on_every_isa([&](kernels::Isa) {
    Context context(2);
    const auto read = [&](const char* name) { return golden.read<T>(context.arena, name); };
    const auto wanted = [&](const std::string& name) { return golden.read<double>(context.arena, name); };
    Tape<T> tape(context, Tape<T>::Mode::train);
    const Var<T> embedding = tape.leaf(read("embedding")), s_prev = tape.leaf(read("s_prev")),
                 h = tape.leaf(live_rows(context.arena, read("h"), sources));
    const int64_t d_s = s_prev.cols(), d_h = h.cols();
    ParameterSet<T> parameters;
    const nn::Gru<T> first(parameters, "gru_1.", {.d_in = embedding.cols(), .d_h = d_s});
    const AdditiveAttention<T> attention(parameters, "", d_s, d_h, read("v_a").size());
    const nn::Gru<T> second(parameters, "gru_2.", {.d_in = d_h, .d_h = d_s});
    nn::read_parameters(context, golden, parameters);

    const Var<T> query = first.step(tape, first.input_gates(tape, embedding), s_prev);
    EXPECT_TRUE(close(query.value(), wanted("query"), kTolerance<T>));
    const auto attended = attention(tape, {query, lengths({1, 1, 1})}, {h, sources}, {.weights = true});
    EXPECT_TRUE(close(attended.context.value(), wanted("context"), kTolerance<T>));
    // Ragged, and padded with zeros in the file.
    const Tensor<double> weights = wanted("weights");
    std::vector<double> live;
    for (int64_t i = 0; i < 3; ++i)
      live.insert(live.end(), weights.row(i), weights.row(i) + sources.length(i));
    EXPECT_TRUE(close(attended.weights.value(), live, kTolerance<T>));
    const Var<T> s = second.step(tape, second.input_gates(tape, attended.context), query);
    EXPECT_TRUE(close(s.value(), wanted("s"), kTolerance<T>));

    tape.backward(s, read("up.s"));
    EXPECT_TRUE(close(tape.gradient(embedding), wanted("grad.embedding"), kTolerance<T>));
    EXPECT_TRUE(close(tape.gradient(s_prev), wanted("grad.s_prev"), kTolerance<T>));
    EXPECT_TRUE(close(tape.gradient(h), live_rows(context.arena, wanted("grad.h"), sources), kTolerance<T>));
    expect_gradients(context, golden, parameters);
  });
}

}  // namespace
}  // namespace gloss::attention
