#include "gloss/lab/additive_to_dot.h"

#include <cmath>

#include "gloss/attention/additive.h"
#include "gloss/attention/scaled_dot_product.h"
#include "gloss/inspect/heat_map.h"
#include "gloss/lab/drawn.h"
#include "gloss/lab/numbers.h"
#include "gloss/nn/linear.h"

namespace gloss::lab {
namespace {

using autograd::Tape;
using autograd::Var;

// sum_j a_ij x_j with weights a [queries, n] and x [n, width].
std::vector<double> weighted_sums(std::span<const double> a, const Tensor<double>& x) {
  const auto n = static_cast<size_t>(x.rows());
  std::vector<double> sums;
  for (size_t i = 0; i < a.size() / n; ++i) {
    for (int64_t c = 0; c < x.cols(); ++c) {
      double sum = 0;
      for (size_t j = 0; j < n; ++j) sum += a[i * n + j] * x(static_cast<int64_t>(j), c);
      sums.push_back(sum);
    }
  }
  return sums;
}

Var<double> times(Tape<double>& tape, double factor, const Var<double>& x) {
  const Tensor<double> y = tape.allocate(x.shape());
  for (int64_t i = 0; i < y.size(); ++i) y.data()[i] = factor * x.value().data()[i];
  return Var<double>(y);
}

std::string shape_text(const Var<double>& x) {
  return x.shape().text();
}

}  // namespace

Report AdditiveToDot::run(const Options& options, Ingredient ingredient) {
  Context context(1);
  Tape<double> tape(context);
  Arena& arena = context.arena;
  const RandomKey key(static_cast<uint64_t>(options.seed));
  const auto matrix = [&](const char* name, int64_t out, int64_t in) {
    return Var<double>(drawn(arena, {out, in}, key.with(name), 1 / std::sqrt(static_cast<double>(in))));
  };
  const Var<double> s(drawn(arena, {options.queries, options.d_s}, key.with("s"))),
      h(drawn(arena, {options.n, options.d_h}, key.with("h"))),
      v_a(drawn(arena, {options.d}, key.with("v_a")));
  const Var<double> W_a = matrix("W_a", options.d, options.d_s), U_a = matrix("U_a", options.d, options.d_h),
                    W_v = matrix("W_v", options.d_v, options.d_h);
  const Offsets queries({0, options.queries}), sources({0, options.n});
  constexpr attention::Request kBoth{.scores = true, .weights = true};

  // The same queries and keys for both.
  const Var<double> q = nn::linear(tape, s, W_a, {}), k = nn::linear(tape, h, U_a, {});
  const Var<double> v = ingredient == Ingredient::kept ? nn::linear(tape, h, W_v, {}) : h;
  const auto additive = [&](const Var<double>& q_add) {
    return attention::additive_attention(tape, q_add, queries, k, h, sources, v_a, kBoth);
  };
  const auto product = [&](const Var<double>& query) {
    return attention::scaled_dot_product_attention<double>(tape, {query, queries}, {k, sources}, {v, sources},
                                                           {}, kBoth);
  };
  const auto sum = additive(q);
  const auto dots = product(q);

  std::vector<double> from_formula, reference;  // scores
  for (int64_t i = 0; i < options.queries; ++i) {
    const auto step =
        attention::additive_attention(tape, Var<double>(s.value().slice_rows(i, 1)), h, W_a, U_a, v_a);
    from_formula.insert(from_formula.end(), step.scores.data(), step.scores.data() + options.n);
    for (int64_t j = 0; j < options.n; ++j)
      reference.push_back(dot(row_of(q.value(), i), row_of(k.value(), j)) /
                          std::sqrt(static_cast<double>(options.d)));
  }
  Report report;
  report.tables.push_back(
      {"what each is made of",
       {"", "additive", "scaled dot product"},
       {{"query", "q_add = W_a s_i, " + shape_text(q), "q = W_q s_i, " + shape_text(q)},
        {"key", "k_add,j = U_a h_j, " + shape_text(k), "k_j = W_k h_j, " + shape_text(k)},
        {"score", "v_a^T tanh(q_add + k_add,j)", "q^T k_j / sqrt(d_k)"},
        {"tanh to compute", fmt::format("{}", options.queries * options.n * options.d), "0"},
        {"weights", "softmax over j", "softmax over j"},
        {"summed", "h_j itself", ingredient == Ingredient::kept ? "v_j = W_v h_j" : "h_j itself"},
        {"result", shape_text(sum.context), shape_text(dots.output)}}});
  const double additive_off = largest_difference(from_formula, sum.scores.values());
  report.claim(additive_off < 1e-12,
               "additive attention is a score of the pair q_add = W_a s, k_add,j = U_a h_j",
               fmt::format("at most {} off the formula of s and h_j", cell(additive_off)));
  const double product_off = largest_difference(reference, dots.scores.values());
  report.claim(product_off < 1e-12, "of the same pair the Transformer takes q^T k_j / sqrt(d_k)",
               fmt::format("at most {} off", cell(product_off)));

  double bound = 0, largest = 0, doubling = 0;
  for (const double w : v_a.value().values()) bound += std::abs(w);
  const auto longer = additive(times(tape, 1000, q));
  for (const double e : longer.scores.values()) largest = std::max(largest, std::abs(e));
  const auto doubled = product(times(tape, 2, q));
  for (int64_t i = 0; i < dots.scores.size(); ++i)
    doubling = worst_of(doubling, std::abs(doubled.scores.data()[i] - 2 * dots.scores.data()[i]));
  report.claim(largest <= bound * (1 + 1e-12) && doubling < 1e-12,
               "a longer query makes products larger in proportion, while |e_ij| stays below sum |v_a|",
               fmt::format("1000 q: {} of at most {}", cell(largest), cell(bound)));

  const double raw = largest_difference(weighted_sums(sum.weights.value().values(), h.value()),
                                        sum.context.value().values());
  report.claim(raw < 1e-12, "additive attention sums raw h_j: c_i = sum_j a_ij h_j",
               fmt::format("at most {} off", cell(raw)));
  // v_j from W_v again, whatever was summed above.
  std::vector<double> projected;
  for (int64_t i = 0; i < options.n; ++i) {
    for (int64_t c = 0; c < options.d_v; ++c)
      projected.push_back(dot(row_of(W_v.value(), c), row_of(h.value(), i)));
  }
  const Tensor<double> v_j = Tensor<double>::from(arena, {options.n, options.d_v}, projected);
  const double values =
      largest_difference(weighted_sums(dots.weights.value().values(), v_j), dots.output.value().values());
  report.claim(values < 1e-12, "the Transformer sums projected v_j = W_v h_j",
               fmt::format("at most {} off", cell(values)));
  // The same sum, projected after it: what is looked up may differ from what is matched, at no other cost.
  const Var<double> mixed(Tensor<double>::from(arena, {options.queries, options.d_h},
                                               weighted_sums(dots.weights.value().values(), h.value())));
  const double after =
      largest_difference(nn::linear(tape, mixed, W_v, {}).value().values(), dots.output.value().values());
  report.claim(after < 1e-12, "which is W_v times the sum of raw h_j under its weights",
               fmt::format("at most {} off", cell(after)));

  report.figure = [options, a = floats(sum.weights.value().values()),
                   b = floats(dots.weights.value().values())](inspect::PictureFormat format,
                                                              inspect::Theme theme) {
    inspect::HeatMapGrid grid;
    grid.title = "Two scores";
    grid.row_labels = numbered(options.queries);
    grid.column_labels = numbered(options.n);
    grid.row_axis = "query";
    grid.column_axis = "key";
    grid.grid_columns = {"additive", "dot-product"};
    grid.maps = {{a}, {b}};
    return inspect::draw(grid, format, {.theme = theme, .value_name = "weight"});
  };
  return report;
}

}  // namespace gloss::lab
