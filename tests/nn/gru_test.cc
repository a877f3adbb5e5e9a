// What a recurrence promises: steps and runs agree to the bit, whoever else is there and whatever computes.
#include "gloss/nn/gru.h"

#include <gtest/gtest.h>

#include <limits>

#include "gloss/kernels/gru_reference.h"
#include "gloss/kernels/layer_norm_reference.h"
#include "gloss/nn/rows.h"
#include "nn/gru_support.h"
#include "support/compare.h"
#include "support/isas.h"

namespace gloss::nn {
namespace {

using tests::random_tensor;
using tests::same_bits;

const std::vector<Direction> kDirections{Direction::forward, Direction::backward};

// Some hundred sequences of 0 to 9 tokens: several groups a thread.
std::vector<int64_t> many_lengths(int64_t count) {
  std::vector<int64_t> lengths;
  for (int64_t i = 0; i < count; ++i) {
    lengths.push_back(static_cast<int64_t>(RandomKey(5).below(static_cast<uint64_t>(i), 10)));
  }
  return lengths;
}

std::vector<float> row_values(const Tensor<float>& x, int64_t begin, int64_t count) {
  return {x.row(begin), x.row(begin) + count * x.cols()};
}

// --- A plain reference, one unit of one token after another ------------------------------------------------

class PlainGru {
 public:
  PlainGru(const ParameterSet<double>& parameters, const std::string& prefix, const GruShape& shape)
      : shape_(shape) {
    for (const auto& [name, of] : by_name(parameters)) {
      if (name.starts_with(prefix)) values_[name.substr(prefix.size())] = tests::doubles(of.value);
    }
  }
  // h' from x and h.
  std::vector<double> step(const std::vector<double>& x, const std::vector<double>& h) const {
    const auto d = static_cast<size_t>(shape_.d_h);
    const bool before = shape_.reset == ResetGate::before;
    std::vector<double> i = sums("ih", x, 0, 2 * d), s = sums("hh", h, 0, 2 * d), next;
    const std::vector<double> i_n = sums("ih", x, 2 * d, 3 * d);
    std::vector<double> reset;
    for (size_t c = 0; c < d; ++c) {
      reset.push_back(kernels::reference::gru_unit(shape_.reset, {i[c], 0, 0, s[c], 0, 0, h[c]}).reset.value);
    }
    const std::vector<double> s_n = sums("hh", before ? reset : h, 2 * d, 3 * d);
    for (size_t c = 0; c < d; ++c) {
      next.push_back(
          kernels::reference::gru_unit(shape_.reset, {i[c], i[d + c], i_n[c], s[c], s[d + c], s_n[c], h[c]})
              .next.value);
    }
    return next;
  }

 private:
  std::vector<double> sums(const std::string& side, const std::vector<double>& x, size_t begin,
                           size_t end) const {
    const std::vector<double>&w = values_.at("weight_" + side), &b = values_.at("bias_" + side);
    std::vector<double> s;
    for (size_t row = begin; row < end; ++row) {
      s.push_back(b[row]);
      for (size_t c = 0; c < x.size(); ++c) s.back() += w[row * x.size() + c] * x[c];
    }
    if (!shape_.layer_norm) return s;
    const auto cut = [&](const std::string& name) {
      const std::vector<double>& all = values_.at("norm_" + side + name);
      return std::vector<double>(all.begin() + static_cast<std::ptrdiff_t>(begin),
                                 all.begin() + static_cast<std::ptrdiff_t>(end));
    };
    return kernels::reference::layer_norm(s, cut(".weight"), cut(".bias"), shape_.epsilon).y;
  }
  GruShape shape_;
  std::map<std::string, std::vector<double>> values_;
};

TEST(Gru, EqualsThePlainReference) {
  const std::vector<int64_t> lengths{3, 0, 1, 7, 2};
  for (const GruShape& shape : gru_shapes()) {
    for (const Direction direction : kDirections) {
      SCOPED_TRACE(text(shape));
      Context context(2);
      Units<double> units(context, shape);
      const PlainGru plain(units.parameters, "forward.", shape);
      const auto x = random_tensor<double>(context.arena, {13, 5}, 1),
                 first = random_tensor<double>(context.arena, {5, 6}, 2);
      Tape<double> tape(context);
      const auto run =
          units.forward.run(tape, ragged(Var<double>(x), lengths), direction, Var<double>(first));
      std::vector<double> want(static_cast<size_t>(13 * 6));
      for (int64_t s = 0; s < run.offsets.count(); ++s) {
        std::vector<double> h(first.row(s), first.row(s) + 6);
        for (int64_t t = 0; t < run.offsets.length(s); ++t) {
          const int64_t token =
              direction == Direction::forward ? run.offsets.begin(s) + t : run.offsets.end(s) - 1 - t;
          h = plain.step({x.row(token), x.row(token) + 5}, h);
          std::ranges::copy(h, want.begin() + token * 6);
        }
      }
      EXPECT_TRUE(tests::close(run.rows.value(), want, 1e-12));
    }
  }
}

// --- The same bits
// --------------------------------------------------------------------------------------------

// One step after another, all live sequences of a step at once, in their own order.
template <class T>
Tensor<T> by_steps(Tape<T>& tape, const Gru<T>& unit, const Ragged<Var<T>>& x, Direction direction,
                   const Tensor<T>& first, bool with_weights) {
  const int64_t d = unit.shape().d_h;
  const Tensor<T> states(tape.context().arena, {x.offsets.total(), d});
  const Var<T> gates = unit.input_gates(tape, x.rows);
  const GruWeights<T> weights = unit.weights(tape);
  for (int64_t t = 0; t < x.offsets.longest(); ++t) {
    std::vector<int64_t> tokens, sequences;
    for (int64_t s = 0; s < x.offsets.count(); ++s) {
      if (x.offsets.length(s) <= t) continue;
      sequences.push_back(s);
      tokens.push_back(direction == Direction::forward ? x.offsets.begin(s) + t : x.offsets.end(s) - 1 - t);
    }
    std::vector<int64_t> from = sequences;
    if (t > 0) {
      from = tokens;
      for (int64_t& token : from) token += direction == Direction::forward ? -1 : 1;
    }
    const Var<T> h_prev = rows<T>(tape, Var<T>(t > 0 ? states : first), from);
    const Var<T> step_gates = rows<T>(tape, gates, tokens);
    const Var<T> h =
        with_weights ? unit.step(tape, step_gates, h_prev, weights) : unit.step(tape, step_gates, h_prev);
    for (size_t i = 0; i < tokens.size(); ++i) {
      std::copy_n(h.value().row(static_cast<int64_t>(i)), d, states.row(tokens[i]));
    }
  }
  return states;
}

template <class T>
void expect_steps_to_equal_runs() {
  const std::vector<int64_t> lengths = many_lengths(70);
  const Offsets offsets = Offsets::of_lengths(lengths);
  tests::on_every_isa([&](kernels::Isa) {
    for (const GruShape& shape : gru_shapes(5, 33)) {
      for (const Direction direction : kDirections) {
        for (const bool zeros : {false, true}) {
          SCOPED_TRACE(text(shape));
          Context context(2);
          Units<T> units(context, shape);
          const Ragged<Var<T>> x{Var<T>(random_tensor<T>(context.arena, {offsets.total(), 5}, 1)), offsets};
          const Tensor<T> first = zeros ? Tensor<T>::zeros(context.arena, {70, 33})
                                        : random_tensor<T>(context.arena, {70, 33}, 2);
          const Var<T> given = zeros ? Var<T>() : Var<T>(first);
          Tape<T> training(context, Tape<T>::Mode::train), translating(context);
          const Tensor<T> run = units.forward.run(training, x, direction, given).rows.value();
          EXPECT_TRUE(same_bits(run, units.forward.run(translating, x, direction, given).rows.value()));
          EXPECT_TRUE(same_bits(run, by_steps(translating, units.forward, x, direction, first, false)));
          EXPECT_TRUE(same_bits(run, by_steps(training, units.forward, x, direction, first, true)));
          units.parameters.pack();
          EXPECT_TRUE(same_bits(run, by_steps(translating, units.forward, x, direction, first, false)));
          EXPECT_TRUE(same_bits(run, units.forward.run(translating, x, direction, given).rows.value()));
        }
      }
    }
  });
}
TEST(Gru, StepsEqualRunsToTheBit) {
  expect_steps_to_equal_runs<float>();
  expect_steps_to_equal_runs<double>();
}

TEST(Gru, ASequenceDoesNotKnowItsCompany) {
  const std::vector<int64_t> lengths = many_lengths(150);
  const Offsets offsets = Offsets::of_lengths(lengths);
  tests::on_every_isa([&](kernels::Isa) {
    for (const GruShape& shape : gru_shapes(5, 17)) {
      SCOPED_TRACE(text(shape));
      Context context(2);
      Units<float> units(context, shape);
      const Tensor<float> x = random_tensor<float>(context.arena, {offsets.total(), 5}, 1);
      Tape<float> tape(context);
      const Tensor<float> all =
          bidirectional(tape, units.forward, units.backward, {Var<float>(x), offsets}).rows.value();
      const Tensor<float> reversed(context.arena, x.shape());
      std::vector<int64_t> backwards(lengths.rbegin(), lengths.rend());
      const Offsets other = Offsets::of_lengths(backwards);
      for (int64_t s = 0; s < 150; ++s) {
        std::ranges::copy(row_values(x, offsets.begin(s), offsets.length(s)),
                          reversed.row(other.begin(149 - s)));
      }
      const Tensor<float> in_reverse =
          bidirectional(tape, units.forward, units.backward, {Var<float>(reversed), other}).rows.value();
      for (int64_t s = 0; s < 150; ++s) {
        const auto mine = row_values(all, offsets.begin(s), offsets.length(s));
        EXPECT_TRUE(same_bits(mine, row_values(in_reverse, other.begin(149 - s), offsets.length(s)))) << s;
        if (s % 10 > 0) continue;
        const Ragged<Var<float>> alone =
            ragged(Var<float>(x.slice_rows(offsets.begin(s), offsets.length(s))), {offsets.length(s)});
        const Tensor<float> single = bidirectional(tape, units.forward, units.backward, alone).rows.value();
        EXPECT_TRUE(same_bits(mine, row_values(single, 0, single.rows()))) << s;
      }
    }
  });
}

// States and all gradients, on every instruction set and with any number of threads.
TEST(Gru, BitsDependOnNoThreads) {
  const Offsets offsets = Offsets::of_lengths(many_lengths(200));
  for (const GruShape& shape : gru_shapes(7, 33)) {
    SCOPED_TRACE(text(shape));
    tests::same_everywhere<float>(
        [&](const ThreadPool& pool) {
          Context context(pool.threads());
          Units<float> units(context, shape);
          Tape<float> tape(context, Tape<float>::Mode::train);
          const Var<float> x = tape.leaf(random_tensor<float>(context.arena, {offsets.total(), 7}, 1)),
                           first = tape.leaf(random_tensor<float>(context.arena, {200, 33}, 2));
          const auto both = bidirectional(tape, units.forward, units.backward, {x, offsets});
          const auto one = units.forward.run(tape, {x, offsets}, Direction::backward, first);
          const Var<float> step =
              units.backward.step(tape, units.backward.input_gates(tape, x),
                                  Var<float>(random_tensor<float>(context.arena, {offsets.total(), 33}, 3)));
          std::vector<std::pair<Var<float>, Tensor<float>>> upstream;
          for (const Var<float>& result : {both.rows, one.rows, step}) {
            upstream.emplace_back(result, random_tensor<float>(context.arena, result.shape(), 4));
          }
          tape.backward(upstream);
          std::vector<float> all(units.parameters.gradients().begin(), units.parameters.gradients().end());
          for (const Tensor<float>& part :
               {both.rows.value(), one.rows.value(), step.value(), tape.gradient(x), tape.gradient(first)}) {
            all.insert(all.end(), part.values().begin(), part.values().end());
          }
          return all;
        },
        [](const std::vector<float>& all) {
          for (const float v : all) ASSERT_TRUE(std::isfinite(v));
        });
  }
}

TEST(Gru, BothDirectionsAreTwoRuns) {
  const Offsets offsets = Offsets::of_lengths(many_lengths(70));
  for (const GruShape& shape : gru_shapes(5, 17)) {
    Context context(2);
    Units<float> units(context, shape);
    const Ragged<Var<float>> x{Var<float>(random_tensor<float>(context.arena, {offsets.total(), 5}, 1)),
                               offsets};
    Tape<float> tape(context);
    const auto both = bidirectional(tape, units.forward, units.backward, x);
    const auto a = units.forward.run(tape, x, Direction::forward),
               b = units.backward.run(tape, x, Direction::backward);
    EXPECT_TRUE(same_bits(both.rows.value(), concat_columns(tape, a.rows, b.rows).value()));
    for (const auto& [direction, single] : {std::pair{Direction::forward, a}, {Direction::backward, b}}) {
      const Tensor<float> last = last_states(tape, both, 17, direction).value();
      EXPECT_TRUE(same_bits(last, last_states(tape, single, 17, direction).value()));
      for (int64_t s = 0; s < 70; ++s) {
        const int64_t row = direction == Direction::forward ? offsets.end(s) - 1 : offsets.begin(s);
        const std::vector<float> want =
            offsets.length(s) > 0 ? row_values(single.rows.value(), row, 1) : std::vector<float>(17, 0);
        EXPECT_TRUE(same_bits(row_values(last, s, 1), want)) << s;
      }
    }
  }
}

// --- What is not there, and what must not spread
// -------------------------------------------------------------

TEST(Gru, NothingGivesNothing) {
  for (const GruShape& shape : gru_shapes()) {
    for (const std::vector<int64_t>& lengths : {std::vector<int64_t>{}, std::vector<int64_t>{0, 0, 0}}) {
      Context context(2);
      Units<float> units(context, shape);
      Tape<float> tape(context, Tape<float>::Mode::train);
      const auto count = static_cast<int64_t>(lengths.size());
      const Var<float> x = tape.leaf(Tensor<float>(context.arena, {0, 5})),
                       first = tape.leaf(random_tensor<float>(context.arena, {count, 6}, 1));
      const auto both = bidirectional(tape, units.forward, units.backward, ragged(x, lengths));
      const auto one = units.forward.run(tape, ragged(x, lengths), Direction::forward, first);
      EXPECT_EQ(both.rows.shape(), (Shape{0, 12}));
      EXPECT_EQ(one.rows.shape(), (Shape{0, 6}));
      const Var<float> last = last_states(tape, both, 6, Direction::backward);
      EXPECT_EQ(last.shape(), (Shape{count, 6}));
      for (const float v : last.value().values()) EXPECT_EQ(v, 0);
      const Var<float> step = units.forward.step(tape, units.forward.input_gates(tape, x), one.rows);
      EXPECT_EQ(step.shape(), (Shape{0, 6}));
      tape.backward({{both.rows, both.rows.value()},
                     {last, random_tensor<float>(context.arena, last.shape(), 2)},
                     {step, step.value()}});
      for (const float g : units.parameters.gradients()) EXPECT_EQ(g, 0);
      for (const float g : tape.gradient(first).values()) EXPECT_EQ(g, 0);
    }
  }
}

// A sequence without tokens passes no gradient to its first state; the others do.
TEST(Gru, AnEmptySequenceLeavesItsFirstStateAlone) {
  Context context;
  Units<float> units(context, {5, 6});
  Tape<float> tape(context, Tape<float>::Mode::train);
  const Var<float> x = tape.leaf(random_tensor<float>(context.arena, {3, 5}, 1)),
                   first = tape.leaf(random_tensor<float>(context.arena, {3, 6}, 2));
  const auto run = units.forward.run(tape, ragged(x, {2, 0, 1}), Direction::forward, first);
  tape.backward(run.rows, random_tensor<float>(context.arena, run.rows.shape(), 3));
  for (int64_t s = 0; s < 3; ++s) {
    for (int64_t c = 0; c < 6; ++c) EXPECT_EQ(tape.gradient(first)(s, c) == 0, s == 1);
  }
}

// NaN reaches the sequence it is in, from there on, and no other.
TEST(Gru, NanStaysInItsSequence) {
  const std::vector<int64_t> lengths{4, 6, 2};
  const Offsets offsets = Offsets::of_lengths(lengths);
  for (const GruShape& shape : gru_shapes()) {
    Context context(2);
    Units<float> units(context, shape);
    const Tensor<float> x = random_tensor<float>(context.arena, {12, 5}, 1);
    x(6, 2) = std::numeric_limits<float>::quiet_NaN();  // the third token of the second sequence
    Tape<float> tape(context);
    const auto both = bidirectional(tape, units.forward, units.backward, {Var<float>(x), offsets});
    for (int64_t token = 0; token < 12; ++token) {
      EXPECT_EQ(std::isnan(both.rows.value()(token, 0)), token >= 6 && token < 10) << token;
      EXPECT_EQ(std::isnan(both.rows.value()(token, 6)), token >= 4 && token <= 6) << token;
    }
  }
}

}  // namespace
}  // namespace gloss::nn
