#include "gloss/lab/additive.h"

#include <cmath>

#include "gloss/attention/additive.h"
#include "gloss/inspect/heat_map.h"
#include "gloss/lab/drawn.h"
#include "gloss/lab/numbers.h"
#include "gloss/nn/linear.h"
#include "gloss/nn/vanilla_rnn.h"

namespace gloss::lab {
namespace {

using autograd::Tape;
using autograd::Var;

struct Drawn {
  Var<double> s, h, W_a, U_a, v_a;
};

Drawn draw(Arena& arena, const Additive::Options& options) {
  const RandomKey key(static_cast<uint64_t>(options.seed));
  // Sums of d_s and of d_h terms have about variance 1, so that the tanh bends and does not saturate.
  const auto deviation = [](int64_t width) { return 1 / std::sqrt(static_cast<double>(width)); };
  return {Var<double>(drawn(arena, {options.queries, options.d_s}, key.with("s"))),
          Var<double>(drawn(arena, {options.n, options.d_h}, key.with("h"))),
          Var<double>(drawn(arena, {options.d_a, options.d_s}, key.with("W_a"), deviation(options.d_s))),
          Var<double>(drawn(arena, {options.d_a, options.d_h}, key.with("U_a"), deviation(options.d_h))),
          Var<double>(drawn(arena, {options.d_a}, key.with("v_a")))};
}

// e_ij and z_ij = tanh(W_a s_i + U_a h_j) written down, number by number.
struct Reference {
  std::vector<double> scores, z;  // [queries, n], [queries, n, d_a]
};
Reference written_down(const Drawn& x) {
  Reference result;
  for (int64_t i = 0; i < x.s.rows(); ++i) {
    for (int64_t j = 0; j < x.h.rows(); ++j) {
      double score = 0;
      for (int64_t a = 0; a < x.W_a.rows(); ++a) {
        const double z = std::tanh(dot(row_of(x.W_a.value(), a), row_of(x.s.value(), i)) +
                                   dot(row_of(x.U_a.value(), a), row_of(x.h.value(), j)));
        score += x.v_a.value().data()[a] * z;
        result.z.push_back(z);
      }
      result.scores.push_back(score);
    }
  }
  return result;
}

struct Seen {
  std::vector<double> scores, weights;  // [queries, n]
  Tensor<double> context;               // [queries, d_h]
};

// All queries and all h_j at once. Softmax over the wrong axis: score and sum treat W_a s_i and U_a h_j
// alike, so that exchanged they are queries h_j, whose weights sum to 1 over the states.
Seen attend(Tape<double>& tape, const Drawn& x, Ingredient ingredient) {
  const Var<double> q_add = nn::linear(tape, x.s, x.W_a, {}), k_add = nn::linear(tape, x.h, x.U_a, {});
  const Offsets queries({0, x.s.rows()}), sources({0, x.h.rows()});
  constexpr attention::Request kBoth{.scores = true, .weights = true};
  Seen seen;
  if (ingredient == Ingredient::kept) {
    const auto attended =
        attention::additive_attention(tape, q_add, queries, k_add, x.h, sources, x.v_a, kBoth);
    seen.scores.assign(attended.scores.values().begin(), attended.scores.values().end());
    const auto weights = attended.weights.value().values();
    seen.weights.assign(weights.begin(), weights.end());
    seen.context = attended.context.value();
    return seen;
  }
  const auto attended =
      attention::additive_attention(tape, k_add, sources, q_add, x.s, queries, x.v_a, kBoth);
  const auto columns = static_cast<size_t>(x.s.rows());
  seen.scores = transposed(attended.scores.values(), columns);
  seen.weights = transposed(attended.weights.value().values(), columns);
  seen.context = tape.allocate({x.s.rows(), x.h.cols()});
  for (int64_t i = 0; i < x.s.rows(); ++i) {
    for (int64_t c = 0; c < x.h.cols(); ++c) {
      double sum = 0;
      for (int64_t j = 0; j < x.h.rows(); ++j)
        sum += seen.weights[static_cast<size_t>(i * x.h.rows() + j)] * x.h.value()(j, c);
      seen.context(i, c) = sum;
    }
  }
  return seen;
}

void show_steps(Report& report, const Drawn& x, const Seen& seen) {
  const int64_t n = x.h.rows();
  Table table{
      "one query s_i, step by step", {"", "score e_ij", "normalise a_ij", "first number of a_ij h_j"}, {}};
  double sum = 0, of_context = 0;
  for (int64_t j = 0; j < std::min<int64_t>(n, 8); ++j) {
    const double weight = seen.weights[static_cast<size_t>(j)];
    table.rows.push_back({fmt::format("h_{}", j + 1), cell(seen.scores[static_cast<size_t>(j)]), cell(weight),
                          cell(weight * x.h.value()(j, 0))});
  }
  for (int64_t j = 0; j < n; ++j) {
    sum += seen.weights[static_cast<size_t>(j)];
    of_context += seen.weights[static_cast<size_t>(j)] * x.h.value()(j, 0);
  }
  table.rows.push_back({fmt::format("sum of {}", n), "", cell(sum), cell(of_context) + " = c_i"});
  report.tables.push_back(std::move(table));
  report.tables.push_back({"row by row beside vanilla_rnn_step",
                           {"", "additive attention", "vanilla_rnn_step"},
                           {{"reads", "s_{i-1} and h_j", "x_t and h_{t-1}"},
                            {"sum", "W_a s_{i-1} + U_a h_j", "W_h h_{t-1} + W_x x_t + b"},
                            {"bends it", "z_ij = tanh(sum)", "h_t = tanh(sum)"},
                            {"then", "one number, v_a^T z_ij", "the next step reads h_t"},
                            {"order", "all j at once", "t waits for t - 1"},
                            {"remembers", "nothing: c_i sums h_j", "all of x_1 ... x_t in h_t"}}});
}

void claim_recurrence(Report& report, Tape<double>& tape, const Drawn& x, const Seen& seen,
                      const Reference& reference) {
  const int64_t n = x.h.rows(), d_h = x.h.cols();
  // z_ij is a step with x_t = h_j and h_{t-1} = s_i.
  std::vector<double> steps, joint, one_by_one;
  for (int64_t i = 0; i < x.s.rows(); ++i) {
    const Var<double> s_prev(x.s.value().slice_rows(i, 1));
    const auto step =
        attention::additive_attention(tape, s_prev, x.h, x.W_a, x.U_a, x.v_a, attention::JointVectors::yes);
    joint.insert(joint.end(), step.z.data(), step.z.data() + step.z.size());
    for (int64_t j = 0; j < n; ++j) {
      const Var<double> h_j(x.h.value().slice_rows(j, 1));
      const Tensor<double> state = nn::vanilla_rnn_step<double>(tape, h_j, s_prev, x.U_a, x.W_a, {}).value();
      steps.insert(steps.end(), state.data(), state.data() + state.size());
      one_by_one.push_back(
          attention::additive_attention(tape, s_prev, h_j, x.W_a, x.U_a, x.v_a).scores.data()[0]);
    }
  }
  const double from_step = std::max(largest_difference(steps, joint), largest_difference(joint, reference.z));
  report.claim(from_step < 1e-12,
               "z_ij is vanilla_rnn_step of x_t = h_j, h_{t-1} = s_{i-1}, W_x = U_a, W_h = W_a, b = 0",
               fmt::format("at most {} off", cell(from_step)));
  report.claim(same_bits(one_by_one, seen.scores),
               "no recurrence: the scores of all j at once are those one by one, bit for bit",
               fmt::format("{} scores", one_by_one.size()));

  // The other way round: each score stays with its h_j, the state at the end is another.
  const Tensor<double> backward(tape.context().arena, x.h.shape());
  for (int64_t j = 0; j < n; ++j) std::copy_n(x.h.value().row(n - 1 - j), d_h, backward.row(j));
  Drawn turned = x;
  turned.h = Var<double>(backward);
  const Seen again = attend(tape, turned, Ingredient::kept);
  std::vector<double> expected;
  for (int64_t i = 0; i < x.s.rows(); ++i) {
    for (int64_t j = 0; j < n; ++j)
      expected.push_back(reference.scores[static_cast<size_t>(i * n + n - 1 - j)]);
  }
  const RandomKey key(7);
  const Var<double> W_x(drawn(tape.context().arena, {d_h, d_h}, key.with("W_x"), 0.5)),
      W_h(drawn(tape.context().arena, {d_h, d_h}, key.with("W_h"), 0.5));
  const auto last_state = [&](const Var<double>& h) {
    Var<double> state(Tensor<double>::zeros(tape.context().arena, {1, d_h}));
    for (int64_t t = 0; t < n; ++t)
      state =
          nn::vanilla_rnn_step<double>(tape, Var<double>(h.value().slice_rows(t, 1)), state, W_x, W_h, {});
    return state.value();
  };
  const double moved = largest_difference(last_state(x.h).values(), last_state(turned.h).values());
  const double kept = largest_difference(again.scores, expected);
  report.claim(kept < 1e-12 && moved > 1e-6,
               "turned round, the h_j keep their scores, while a recurrent network ends in another state",
               fmt::format("{} against {}", cell(kept), cell(moved)));
}

}  // namespace

Report Additive::run(const Options& options, Ingredient ingredient) {
  Context context(1);
  Tape<double> tape(context);
  const Drawn x = draw(context.arena, options);
  const Seen seen = attend(tape, x, ingredient);
  const Reference reference = written_down(x);
  const auto n = static_cast<size_t>(options.n);
  Report report;
  show_steps(report, x, seen);

  const double score_off = largest_difference(seen.scores, reference.scores);
  report.claim(score_off < 1e-12, "score: e_ij = v_a^T tanh(W_a s_{i-1} + U_a h_j)",
               fmt::format("at most {} off", cell(score_off)));
  double weights_off = 0, context_off = 0;
  for (size_t i = 0; i < static_cast<size_t>(options.queries); ++i) {
    const std::vector<double> a = softmax(std::span(reference.scores).subspan(i * n, n));
    weights_off = std::max(weights_off, largest_difference(a, std::span(seen.weights).subspan(i * n, n)));
    std::vector<double> c(static_cast<size_t>(options.d_h), 0);
    for (size_t j = 0; j < n; ++j) {
      for (size_t d = 0; d < c.size(); ++d) c[d] += a[j] * x.h.value().row(static_cast<int64_t>(j))[d];
    }
    context_off = std::max(context_off, largest_difference(c, row_of(seen.context, static_cast<int64_t>(i))));
  }
  const double sums_off = row_sums_off(seen.weights, n);
  report.claim(weights_off < 1e-12 && sums_off < 1e-12,
               "normalise: a_ij is the softmax over j, rows sum to 1",
               fmt::format("at most {} off, sums {}", cell(weights_off), cell(sums_off)));
  report.claim(context_off < 1e-12, "aggregate: c_i = sum_j a_ij h_j",
               fmt::format("at most {} off", cell(context_off)));
  claim_recurrence(report, tape, x, seen, reference);
  report.figure = [weights = floats(seen.weights), options](inspect::PictureFormat format,
                                                            inspect::Theme theme) {
    const inspect::HeatMap map{.title = "Additive attention",
                               .row_labels = numbered(options.queries),
                               .column_labels = numbered(options.n),
                               .cells = {weights},
                               .row_axis = "s_i",
                               .column_axis = "h_j"};
    return inspect::draw(map, format, {.theme = theme, .value_name = "weight", .numbers = true});
  };
  return report;
}

}  // namespace gloss::lab
