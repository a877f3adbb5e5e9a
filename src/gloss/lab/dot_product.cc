#include "gloss/lab/dot_product.h"

#include <cmath>
#include <numbers>

#include "gloss/attention/scaled_dot_product.h"
#include "gloss/inspect/chart.h"
#include "gloss/lab/drawn.h"
#include "gloss/lab/numbers.h"
#include "gloss/nn/linear.h"

namespace gloss::lab {
namespace {

using autograd::Tape;
using autograd::Var;

struct Seen {
  std::vector<double> scores, weights;  // [queries, keys]
  std::vector<double> output;           // [queries, d_v]
};

Seen attend(Tape<double>& tape, const Tensor<double>& q, const Tensor<double>& k, const Tensor<double>& v) {
  const auto attended = attention::scaled_dot_product_attention<double>(
      tape, {Var<double>(q), Offsets({0, q.rows()})}, {Var<double>(k), Offsets({0, k.rows()})},
      {Var<double>(v), Offsets({0, v.rows()})}, {}, {.scores = true, .weights = true});
  const auto copy = [](std::span<const double> of) { return std::vector<double>(of.begin(), of.end()); };
  return {copy(attended.scores.values()), copy(attended.weights.value().values()),
          copy(attended.output.value().values())};
}

// Softmax over the wrong axis: with Q and K exchanged the weights of a key sum to 1 over the queries.
Seen attend_by_columns(Tape<double>& tape, const Tensor<double>& q, const Tensor<double>& k,
                       const Tensor<double>& v) {
  const Seen exchanged = attend(tape, k, q, q);
  const auto queries = static_cast<size_t>(q.rows()), keys = static_cast<size_t>(k.rows());
  Seen seen{transposed(exchanged.scores, queries), transposed(exchanged.weights, queries), {}};
  for (size_t i = 0; i < queries; ++i) {
    for (int64_t c = 0; c < v.cols(); ++c) {
      double sum = 0;
      for (size_t j = 0; j < keys; ++j) sum += seen.weights[i * keys + j] * v(static_cast<int64_t>(j), c);
      seen.output.push_back(sum);
    }
  }
  return seen;
}

// |q| |k| cos with the angle's cosine from the three sides of the triangle 0, q, k: no product of q and k.
double by_angle(std::span<const double> q, std::span<const double> k) {
  double opposite = 0;
  for (size_t i = 0; i < q.size(); ++i) opposite += (q[i] - k[i]) * (q[i] - k[i]);
  const double a = std::sqrt(dot(q, q)), b = std::sqrt(dot(k, k));
  return a * b * ((a * a + b * b - opposite) / (2 * a * b));
}

// q of length 1, keys of length 1 and 2 at every angle to it.
inspect::Chart show_angles(Report& report, Tape<double>& tape) {
  inspect::Panel scores{.name = "q.k", .series = {}},
      weights{.name = "weight among the keys of one length", .series = {}};
  Table table{"q of length 1 in the plane, k at an angle to it",
              {"angle", "cos", "q.k, |k| = 1", "q.k, |k| = 2"},
              {}};
  constexpr int64_t kAngles = 37;  // 5 degrees apart
  const Tensor<double> q = tape.allocate({1, 2});
  q(0, 0) = 1;
  q(0, 1) = 0;
  std::vector<std::vector<double>> all;
  for (const double length : {1.0, 2.0}) {
    const Tensor<double> k = tape.allocate({kAngles, 2});
    inspect::Series of_scores{.name = fmt::format("|k| = {}", length), .style = all.size()};
    inspect::Series of_weights = of_scores;
    for (int64_t i = 0; i < kAngles; ++i) {
      const double angle = std::numbers::pi * static_cast<double>(i) / static_cast<double>(kAngles - 1);
      k(i, 0) = length * std::cos(angle);
      k(i, 1) = length * std::sin(angle);
      of_scores.x.push_back(5 * static_cast<double>(i));
    }
    of_weights.x = of_scores.x;
    const Seen seen = attend(tape, q, k, k);
    for (const double score : seen.scores) of_scores.y.push_back(score * std::sqrt(2.0));  // d_k = 2
    of_weights.y = seen.weights;
    all.push_back(of_scores.y);
    scores.series.push_back(std::move(of_scores));
    weights.series.push_back(std::move(of_weights));
  }
  for (const int64_t degrees : {0, 45, 90, 135, 180}) {
    const auto at = static_cast<size_t>(degrees / 5);
    const auto shown = [](double v) { return cell(std::abs(v) < 1e-15 ? 0 : v); };
    table.rows.push_back({fmt::format("{}°", degrees),
                          shown(std::cos(static_cast<double>(degrees) * std::numbers::pi / 180)),
                          shown(all[0][at]), shown(all[1][at])});
  }
  report.tables.push_back(std::move(table));
  report.claim(std::abs(all[0][0] - 1) < 1e-15 && std::abs(all[0][18]) < 1e-15 &&
                   std::abs(all[0][36] + 1) < 1e-15 && std::ranges::is_sorted(all[0], std::greater<>()),
               "of keys of one length the one that points as q does scores most, an orthogonal one 0",
               fmt::format("{}, {}, {}", cell(all[0][0]), cell(std::abs(all[0][18]) < 1e-15 ? 0 : all[0][18]),
                           cell(all[0][36])));
  return {"Angle and length of a key", "angle between q and k, in degrees", {scores, weights}};
}

// x_i (tokens as rows) times W_Q [in, out], and W_Q^T [out, in] times the columns, and the stored matrix.
void claim_conventions(Report& report, Tape<double>& tape, const DotProduct::Options& options,
                       const RandomKey& key) {
  const int64_t n = options.queries, d = options.d_model, d_k = options.d_k;
  const Tensor<double> stored = drawn(tape.context().arena, {d_k, d}, key.with("W_Q")),
                       x = drawn(tape.context().arena, {n, d}, key.with("x"));
  const std::vector<double> W_Q = transposed(stored.values(), static_cast<size_t>(d));  // [d, d_k]
  std::vector<double> as_rows(static_cast<size_t>(n * d_k)), as_columns(static_cast<size_t>(d_k * n));
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t c = 0; c < d_k; ++c) {
      for (int64_t m = 0; m < d; ++m) {
        // q^T = s^T W_Q: row i of X along column c of W_Q.
        as_rows[static_cast<size_t>(i * d_k + c)] += x(i, m) * W_Q[static_cast<size_t>(m * d_k + c)];
        // q = W_Q^T s: row c of W_Q^T down column i of X^T.
        as_columns[static_cast<size_t>(c * n + i)] += W_Q[static_cast<size_t>(m * d_k + c)] * x(i, m);
      }
    }
  }
  const Tensor<double> q = nn::linear<double>(tape, Var<double>(x), Var<double>(stored), {}).value();
  const double rows = largest_difference(as_rows, q.values()),
               columns = largest_difference(transposed(as_columns, static_cast<size_t>(n)), q.values());
  report.claim(rows < 1e-12 * static_cast<double>(d) && columns < 1e-12 * static_cast<double>(d),
               "tokens as rows, q^T = s^T W_Q, and as columns, q = W_Q^T s, are the stored [out, in] = W_Q^T",
               fmt::format("at most {} off", cell(std::max(rows, columns))));
}

}  // namespace

Report DotProduct::run(const Options& options, Ingredient ingredient) {
  Context context(1);
  Tape<double> tape(context);
  const RandomKey key(static_cast<uint64_t>(options.seed));
  const Tensor<double> q = drawn(context.arena, {options.queries, options.d_k}, key.with("q")),
                       k = drawn(context.arena, {options.keys, options.d_k}, key.with("k")),
                       v = drawn(context.arena, {options.keys, options.d_k}, key.with("v"));
  const auto keys = static_cast<size_t>(options.keys);
  const double root = std::sqrt(static_cast<double>(options.d_k));
  Report report;
  const inspect::Chart chart = show_angles(report, tape);

  const Seen seen = ingredient == Ingredient::kept ? attend(tape, q, k, v) : attend_by_columns(tape, q, k, v);
  std::vector<double> products, angles, one_by_one;
  double largest = 0;
  for (int64_t i = 0; i < options.queries; ++i) {
    const Seen one = attend(tape, q.slice_rows(i, 1), k, v);
    one_by_one.insert(one_by_one.end(), one.scores.begin(), one.scores.end());
    for (int64_t j = 0; j < options.keys; ++j) {
      angles.push_back(by_angle(row_of(q, i), row_of(k, j)));
      products.push_back(root * seen.scores[products.size()]);
      largest = std::max(largest, std::abs(products.back()));
    }
  }
  const double off = largest_difference(products, angles);
  report.claim(off < 1e-12 * (1 + largest) * root, "q.k = |q| |k| cos(q, k), in any number of dimensions",
               fmt::format("at most {} off at d_k = {}", cell(off), options.d_k));
  report.claim(same_bits(one_by_one, seen.scores),
               "all queries in one product Q K^T have the scores that each has alone, bit for bit",
               fmt::format("{} x {} scores", options.queries, options.keys));

  const std::vector<double> turned = transposed(seen.weights, keys);
  const double rows = row_sums_off(seen.weights, keys),
               columns = row_sums_off(turned, static_cast<size_t>(options.queries));
  report.claim(rows < 1e-12 && columns > 1e-6,
               "rows are queries: each row of weights sums to 1, columns need not",
               fmt::format("rows at most {} off, columns {}", cell(rows), cell(columns)));
  // A weighted mean lies between the least and the largest of what it is a mean of.
  double outside = 0;
  for (size_t at = 0; at < seen.output.size(); ++at) {
    double least = v(0, 0), most = least;
    const auto c = static_cast<int64_t>(at) % options.d_k;
    for (int64_t j = 0; j < options.keys; ++j) {
      least = j == 0 ? v(j, c) : std::min(least, v(j, c));
      most = j == 0 ? v(j, c) : std::max(most, v(j, c));
    }
    outside = std::max({outside, least - seen.output[at], seen.output[at] - most});
  }
  std::vector<double> expected;
  for (size_t i = 0; i < static_cast<size_t>(options.queries); ++i) {
    const std::vector<double> p = softmax(std::span(seen.scores).subspan(i * keys, keys));
    for (int64_t c = 0; c < options.d_k; ++c) {
      double sum = 0;
      for (size_t j = 0; j < keys; ++j) sum += p[j] * v(static_cast<int64_t>(j), c);
      expected.push_back(sum);
    }
  }
  const double output_off = largest_difference(expected, seen.output);
  report.claim(output_off < 1e-12 && outside < 1e-12,
               "so that each output is a mean of the values, weighted by softmax(q.k / sqrt(d_k))",
               fmt::format("at most {} off", cell(output_off)));
  claim_conventions(report, tape, options, key);
  report.figure = [chart](inspect::PictureFormat format, inspect::Theme theme) {
    return inspect::draw(chart, format, theme);
  };
  return report;
}

}  // namespace gloss::lab
