#include "gloss/lab/complexity.h"

#include <array>
#include <chrono>
#include <cmath>
#include <vector>

#include "gloss/attention/additive.h"
#include "gloss/attention/scaled_dot_product.h"
#include "gloss/inspect/chart.h"
#include "gloss/lab/drawn.h"
#include "gloss/nn/gru.h"
#include "gloss/nn/rows.h"

namespace gloss::lab {
namespace {

using autograd::Tape;
using autograd::Var;

// Forward and backward over one sequence.
struct Cost {
  int64_t products = 0;  // multiplications of the forward pass, projections of the inputs left out
  int64_t steps = 0;     // that must wait for each other
  int64_t bytes = 0;     // taken at most at a time, beside the rows that came in
  double milliseconds = 0;
};

// Runs `forward`, which gives its result and counts into `cost`, and backward from there.
template <class F>
Cost measured(Context& context, F forward) {
  Cost cost;
  context.arena.reset_peak();
  const auto live = static_cast<int64_t>(context.arena.counters().bytes_live);
  const auto before = std::chrono::steady_clock::now();
  {
    Tape<double> tape(context, Tape<double>::Mode::train);
    const Var<double> y = forward(tape, cost);
    const Tensor<double> upstream(context.arena, y.shape());
    upstream.fill(1);
    tape.backward(y, upstream);
  }
  const std::chrono::duration<double, std::milli> taken = std::chrono::steady_clock::now() - before;
  cost.milliseconds = taken.count();
  cost.bytes = static_cast<int64_t>(context.arena.counters().bytes_peak) - live;
  return cost;
}

// Each sequence of n rows of d numbers through the three layers, with one head.
struct Layers {
  Layers(const Complexity::Options& options, Ingredient kept_or_removed)
      : d(options.d_model), ingredient(kept_or_removed), gru(parameters, "", {d, d}) {
    const RandomKey seed(static_cast<uint64_t>(options.seed));
    key = seed.with("rows");
    parameters.allocate(context.arena);
    parameters.allocate_gradients(context.arena);
    parameters.initialise(seed.state());
  }

  Tensor<double> rows(int64_t n) { return drawn(context.arena, {n, d}, key); }
  // Removed: the weights are asked for, and so they are made and kept.
  attention::Request request() const { return {.weights = ingredient == Ingredient::removed}; }

  Cost self_attention(int64_t n) {
    const Tensor<double> x = rows(n);
    const int64_t scores = counted_scores(x);
    Tensor<double> kept_weights;  // through the backward pass, as where it reads them
    return measured(context, [&](Tape<double>& tape, Cost& cost) {
      const Ragged<Var<double>> q{tape.leaf(x), Offsets({0, n})}, k{tape.leaf(x), Offsets({0, n})},
          v{tape.leaf(x), Offsets({0, n})};
      cost.products = scores * (d + d);  // d_k for a score, d_v for its part of the aggregate
      cost.steps = 1;
      const auto attended = attention::scaled_dot_product_attention<double>(tape, q, k, v, {}, request());
      if (ingredient == Ingredient::removed) kept_weights = attended.weights.value();
      return attended.output;
    });
  }
  int64_t counted_scores(const Tensor<double>& x) {
    Tape<double> tape(context);
    const Ragged<Var<double>> q{Var<double>(x), Offsets({0, x.rows()})};
    return attention::scaled_dot_product_attention<double>(tape, q, q, q, {}, {.scores = true}).scores.size();
  }

  Cost recurrence(int64_t n) {
    const Tensor<double> x = rows(n);
    return measured(context, [&](Tape<double>& tape, Cost& cost) {
      const Var<double> gates = gru.input_gates(tape, tape.leaf(x));
      const nn::GruWeights<double> weights = gru.weights(tape);
      Var<double> h(Tensor<double>::zeros(context.arena, {1, d}));
      std::vector<Var<double>> states;
      for (int64_t t = 0; t < n; ++t) {
        const std::array<int64_t, 1> at{t};
        h = gru.step(tape, nn::rows(tape, gates, std::span<const int64_t>(at)), h, weights);
        states.push_back(h);
        cost.products += weights.weight.value().size();  // W_hh h_{t-1}: [3 d_h, d_h]
        ++cost.steps;
      }
      return nn::stack_rows(tape, std::span<const Var<double>>(states));
    });
  }

  Cost additive(int64_t n) {
    const Tensor<double> x = rows(n);
    const Var<double> v_a(drawn(context.arena, {d}, key.with("v_a")));
    const Offsets one({0, n});
    int64_t scores = 0;
    {
      Tape<double> tape(context);
      const Var<double> c(x);
      scores = attention::additive_attention(tape, c, one, c, c, one, v_a, {.scores = true}).scores.size();
    }
    return measured(context, [&](Tape<double>& tape, Cost& cost) {
      cost.products = scores * (d + d);  // v_a^T tanh(...) of d_a numbers, and the aggregate
      cost.steps = 1;
      return attention::additive_attention(tape, tape.leaf(x), one, tape.leaf(x), tape.leaf(x), one, v_a,
                                           request())
          .context;
    });
  }

  int64_t d;
  Ingredient ingredient;
  RandomKey key;
  Context context{1};
  autograd::ParameterSet<double> parameters;
  nn::Gru<double> gru;
};

// Of the last doubling: 2 where something grows like n, 4 where like n^2.
double growth(const std::vector<Cost>& costs, int64_t Cost::*what) {
  const auto n = costs.size();
  return static_cast<double>(costs[n - 1].*what) / static_cast<double>(costs[n - 2].*what);
}

// How many numbers are kept for each of the n^2 scores, whatever else is kept for each of the n rows: what
// grows like n is gone from B(2n) - 2 B(n), and 2 n^2 times a number's bytes are left where each score has
// one.
double numbers_a_score(const std::vector<Cost>& costs, const std::vector<int64_t>& lengths) {
  const auto last = lengths.size() - 1;
  const auto half = static_cast<double>(lengths[last - 1]);
  return static_cast<double>(costs[last].bytes - 2 * costs[last - 1].bytes) /
         (2 * half * half * sizeof(double));
}

}  // namespace

Report Complexity::run(const Options& options, Ingredient ingredient) {
  Report report;
  Layers layers(options, ingredient);
  std::vector<int64_t> lengths;
  for (int64_t n = options.longest / 16; n <= options.longest; n *= 2) lengths.push_back(n);
  constexpr std::array<const char*, 3> kNames{"self-attention", "recurrence", "additive"};
  std::array<std::vector<Cost>, 3> costs;
  for (const int64_t n : lengths) {
    costs[0].push_back(layers.self_attention(n));
    costs[1].push_back(layers.recurrence(n));
    costs[2].push_back(layers.additive(n));
  }
  const auto table = [&](const char* caption, auto shown) {
    Table result{caption, {"n"}, {}};
    for (const char* name : kNames) result.columns.emplace_back(name);
    for (size_t i = 0; i < lengths.size(); ++i) {
      result.rows.push_back({fmt::format("{}", lengths[i])});
      for (const auto& of_layer : costs) result.rows.back().push_back(shown(of_layer[i]));
    }
    report.tables.push_back(std::move(result));
  };
  table("multiplications, forward, behind the projections of the inputs",
        [](const Cost& cost) { return fmt::format("{}", cost.products); });
  table("bytes taken, forward and backward", [](const Cost& cost) { return fmt::format("{}", cost.bytes); });
  table("milliseconds, forward and backward",
        [](const Cost& cost) { return fmt::format("{:.2f}", cost.milliseconds); });

  report.claim(growth(costs[0], &Cost::products) == 4 && growth(costs[2], &Cost::products) == 4,
               "both kinds of attention work like n^2: twice the length, four times the scores",
               fmt::format("{} and {} times", cell(growth(costs[0], &Cost::products)),
                           cell(growth(costs[2], &Cost::products))));
  report.claim(growth(costs[1], &Cost::products) == 2, "recurrence works like n",
               fmt::format("{} times", cell(growth(costs[1], &Cost::products))));
  const int64_t n = lengths.back(), d = options.d_model;
  report.claim(costs[0].back().steps == 1 && costs[2].back().steps == 1 && costs[1].back().steps == n,
               "attention takes all positions at once, recurrence n steps that wait for each other",
               fmt::format("{} and {} steps", costs[0].back().steps, costs[1].back().steps));
  bool agree = true;
  for (size_t i = 0; i < lengths.size(); ++i)
    agree = agree && (costs[0][i].products < costs[1][i].products) == (2 * lengths[i] < 3 * d);
  report.claim(agree, "self-attention works less than a GRU while n is below 1.5 d, and more above",
               fmt::format("1.5 d = {}", 3 * d / 2));
  const double by_self = growth(costs[0], &Cost::bytes), by_recurrence = growth(costs[1], &Cost::bytes);
  const double stored = numbers_a_score(costs[0], lengths);
  report.claim(
      stored < 0.5 && by_recurrence < 2.5,
      "memory grows like n even so: the scores of self-attention are never stored, forward or backward",
      fmt::format("{} and {} times, {} numbers a score", cell(by_self), cell(by_recurrence), cell(stored)));
  const auto additive_bytes = static_cast<double>(costs[2].back().bytes),
             square = static_cast<double>(n) * static_cast<double>(n) * sizeof(double);
  report.claim(additive_bytes < square * static_cast<double>(d) / 4 && additive_bytes > square,
               "additive attention keeps its n^2 weights and never the n^2 joint vectors of d_a numbers",
               fmt::format("{} numbers a score", cell(additive_bytes / square)));

  report.figure = [costs, lengths, kNames](inspect::PictureFormat format, inspect::Theme theme) {
    inspect::Chart chart{"What a layer costs", "n", {}};
    for (const bool memory : {false, true}) {
      inspect::Panel panel{.name = memory ? "bytes" : "multiplications",
                           .series = {},
                           .scaling = inspect::Scaling::logarithmic};
      for (size_t i = 0; i < costs.size(); ++i) {
        inspect::Series line{.name = kNames.at(i)};
        for (size_t j = 0; j < lengths.size(); ++j) {
          line.x.push_back(static_cast<double>(lengths[j]));
          line.y.push_back(static_cast<double>(memory ? costs.at(i)[j].bytes : costs.at(i)[j].products));
        }
        line.style = i;
        line.marks = true;
        panel.series.push_back(std::move(line));
      }
      chart.panels.push_back(std::move(panel));
    }
    return inspect::draw(chart, format, theme);
  };
  return report;
}

}  // namespace gloss::lab
