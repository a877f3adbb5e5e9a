#include "gloss/lab/add_norm.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "gloss/inspect/chart.h"
#include "gloss/lab/drawn.h"
#include "gloss/lab/numbers.h"
#include "gloss/nn/add_norm.h"
#include "gloss/nn/feed_forward.h"

namespace gloss::lab {
namespace {

using autograd::Tape;
using autograd::Var;

constexpr int64_t kWidening = 2;  // d_ff = 2 d_model

enum class Norm { none, post, pre };
enum class Residual { no, yes };

struct Moments {
  double mean = 0, variance = 0;
};
Moments moments(std::span<const double> x) {
  Moments m;
  const auto n = static_cast<double>(x.size());
  for (const double v : x) m.mean += v / n;
  for (const double v : x) m.variance += (v - m.mean) * (v - m.mean) / n;
  return m;
}

// Vectors of d numbers, the same one everywhere.
Var<double> constant(Arena& arena, int64_t d, double value) {
  const Tensor<double> tensor(arena, {d});
  tensor.fill(value);
  return Var<double>(tensor);
}

// x + f(x) of rows whose deviations run from 1e-3 to 1e3, through nn::add_norm.
void normalised_rows(Report& report, const AddNorm::Options& options) {
  Context context(1);
  Tape<double> tape(context);
  Arena& arena = context.arena;
  const int64_t d = options.d_model, n = 7;
  const RandomKey key = RandomKey(static_cast<uint64_t>(options.seed)).with("rows");
  const Tensor<double> x = drawn(arena, {n, d}, key.with("x")),
                       branch = drawn(arena, {n, d}, key.with("branch"));
  for (int64_t i = 0; i < n; ++i) {
    const double spread = std::pow(10, static_cast<double>(i - 3));
    for (int64_t j = 0; j < d; ++j) {
      x(i, j) = spread * x(i, j) + static_cast<double>(i);
      branch(i, j) *= spread;
    }
  }
  const Var<double> one = constant(arena, d, 1), zero = constant(arena, d, 0);
  const Tensor<double> y =
      nn::add_norm(tape, Var<double>(x), Var<double>(branch), 0, one, zero, options.epsilon).value();
  Table table{fmt::format("rows of x + f(x) before and after the norm, epsilon = {}", options.epsilon),
              {"row", "mean", "variance", "mean after", "variance after", "s^2 / (s^2 + epsilon)"},
              {}};
  double worst_mean = 0, worst_variance = 0;
  for (int64_t i = 0; i < n; ++i) {
    std::vector<double> sum(static_cast<size_t>(d));
    for (int64_t j = 0; j < d; ++j) sum[static_cast<size_t>(j)] = x(i, j) + branch(i, j);
    const Moments before = moments(sum), after = moments(y.slice_rows(i, 1).values());
    const double expected = before.variance / (before.variance + options.epsilon);
    worst_mean = worst_of(worst_mean, std::abs(after.mean));
    worst_variance = worst_of(worst_variance, std::abs(after.variance - expected));
    table.rows.push_back({fmt::format("{}", i), cell(before.mean), cell(before.variance),
                          cell(std::abs(after.mean) < 1e-9 ? 0 : after.mean), cell(after.variance),
                          cell(expected)});
  }
  report.tables.push_back(std::move(table));
  report.claim(worst_mean < 1e-9, "before gamma and beta each row has mean 0",
               fmt::format("at most {} off", cell(worst_mean)));
  report.claim(worst_variance < 1e-9, "and variance s^2 / (s^2 + epsilon): 1 where s^2 is well above epsilon",
               fmt::format("at most {} off", cell(worst_variance)));

  const Var<double> gamma(drawn(arena, {d}, key.with("gamma"))), beta(drawn(arena, {d}, key.with("beta")));
  const Tensor<double> scaled =
      nn::add_norm(tape, Var<double>(x), Var<double>(branch), 0, gamma, beta, options.epsilon).value();
  double error = 0;
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < d; ++j) {
      const double expected = gamma.value().data()[j] * y(i, j) + beta.value().data()[j];
      error = worst_of(error, std::abs(scaled(i, j) - expected));
    }
  }
  report.claim(error < 1e-12, "gamma and beta then give each number its own scale and place",
               fmt::format("at most {} off", cell(error)));

  const Tensor<double> flat = Tensor<double>(arena, {1, d});
  flat.fill(3);
  const Tensor<double> of_flat =
      nn::layer_norm(tape, Var<double>(flat), gamma, beta, options.epsilon).value();
  const double flat_error = largest_difference(of_flat.values(), beta.value().values());
  report.claim(flat_error < 1e-9, "epsilon keeps a row of equal numbers finite: it becomes beta",
               fmt::format("at most {} off", cell(flat_error)));
}

// The gradient at the bottom of `layers` layers: its length, and how much of what came from above is in it.
struct Arrived {
  double length = 0;  // |g| / |u|
  double share = 0;   // g.u / u.u: 1 for the path straight through
};
Arrived through_layers(const AddNorm::Options& options, int64_t layers, Norm norm, Residual residual) {
  Context context(1);
  Tape<double> tape(context, Tape<double>::Mode::train);
  Arena& arena = context.arena;
  const int64_t d = options.d_model, d_ff = kWidening * d;
  const RandomKey key = RandomKey(static_cast<uint64_t>(options.seed)).with("layers");
  const Var<double> one = constant(arena, d, 1), zero = constant(arena, d, 0),
                    zero_ff = constant(arena, d_ff, 0);
  const Var<double> first = tape.leaf(drawn(arena, {options.tokens, d}, key.with("x")));
  Var<double> x = first;
  for (int64_t l = 0; l < layers; ++l) {
    const RandomKey own = key.with(static_cast<uint64_t>(l));
    const Var<double> W_1(drawn_weight(arena, d_ff, d, own.with("W_1"))),
        W_2(drawn_weight(arena, d, d_ff, own.with("W_2")));
    const auto f = [&](const Var<double>& y) {
      return nn::feed_forward(tape, y, W_1, zero_ff, W_2, zero, kernels::Activation::relu, 0);
    };
    const auto normalised = [&](const Var<double>& y) {
      return nn::layer_norm(tape, y, one, zero, options.epsilon);
    };
    const Var<double> branch = f(norm == Norm::pre ? normalised(x) : x);
    if (residual == Residual::no) {
      x = norm == Norm::post ? normalised(branch) : branch;
    } else {
      x = norm == Norm::post ? nn::add_norm(tape, x, branch, 0, one, zero, options.epsilon)
                             : nn::add_dropout(tape, x, branch, 0);
    }
  }
  const Tensor<double> upstream = drawn(arena, x.shape(), key.with("upstream"));
  tape.backward(x, upstream);
  const Tensor<double> gradient = tape.gradient(first);
  double g = 0, u = 0, both = 0;
  for (int64_t i = 0; i < gradient.size(); ++i) {
    g += gradient.data()[i] * gradient.data()[i];
    u += upstream.data()[i] * upstream.data()[i];
    both += gradient.data()[i] * upstream.data()[i];
  }
  return {std::sqrt(g / u), both / u};
}

void gradients(Report& report, const AddNorm::Options& options, Ingredient ingredient) {
  const Residual residual = ingredient == Ingredient::kept ? Residual::yes : Residual::no;
  struct Column {
    const char* name;
    Norm norm;
    Residual residual;
    std::vector<Arrived> seen{};
  };
  std::vector<Column> columns{
      {"post-norm", Norm::post, residual},      {"pre-norm", Norm::pre, residual},
      {"no norm", Norm::none, residual},        {"f, post-norm", Norm::post, Residual::no},
      {"f, pre-norm", Norm::pre, Residual::no}, {"f alone", Norm::none, Residual::no}};
  Table lengths{"length of the gradient behind N layers; in three columns of f(x) without x", {"N"}, {}};
  Table shares{"share of the gradient from above that is still in it", {"N"}, {}};
  for (const Column& column : columns) {
    lengths.columns.emplace_back(column.name);
    shares.columns.emplace_back(column.name);
  }
  std::vector<double> depths;
  for (int64_t n = 1; n <= options.layers; n *= 2) {
    depths.push_back(static_cast<double>(n));
    lengths.rows.push_back({fmt::format("{}", n)});
    shares.rows.push_back({fmt::format("{}", n)});
    for (Column& column : columns) {
      column.seen.push_back(through_layers(options, n, column.norm, column.residual));
      lengths.rows.back().push_back(cell(column.seen.back().length));
      shares.rows.back().push_back(fmt::format("{:.3f}", column.seen.back().share));
    }
  }
  report.tables.push_back(std::move(lengths));
  report.tables.push_back(std::move(shares));

  // Glorot's weights make the variance of f(x) that of x times 2 r / (1 + r)^2 with r = d_ff / d_model (ReLU
  // halves it), and the same of a gradient on its way back.
  constexpr double kGain = 2.0 * kWidening / ((1.0 + kWidening) * (1.0 + kWidening));
  const double deepest = depths.back();
  const Arrived deep = columns[1].seen.back(), alone = columns[5].seen.back();
  // Each layer's factor is uncertain by some 1 / sqrt(d_model), their geometric mean by less.
  const double factor = std::pow(alone.length, 1 / deepest);
  report.claim(factor < 0.85 && factor > 0.5,
               fmt::format("f alone: each layer takes its part, about {:.2f}; nothing is left behind many",
                           std::sqrt(kGain)),
               fmt::format("{} a layer, {} behind {}", cell(factor), cell(alone.length), deepest));
  // The variance of x grows by kGain a layer, and the norm divides by it: the product of 1 + kGain / (1 +
  // kGain l) is 1 + kGain N.
  const double grown = std::sqrt(1 + kGain * deepest);
  report.claim(deep.length > grown / 2 && deep.length < 2 * grown,
               "x + f(x), pre-norm: the gradient grows like sqrt(N), no faster",
               fmt::format("{} behind {} layers, sqrt(1 + {:.2f} N) = {}", cell(deep.length), deepest, kGain,
                           cell(grown)));
  // The other paths are random and add nothing on average; at each depth they are as long as the gradient.
  // u.M u of a matrix M of independent numbers, against |M u| |u|: over rows that each go in a direction of
  // their own it deviates by 1 / sqrt(d_model tokens), and the trace of M, which all rows share, adds 1 /
  // d_model. Six deviations; they stay below 0.54 at the smallest sizes, where a share of 0 is off by 1.
  const auto width = static_cast<double>(options.d_model), rows = static_cast<double>(options.tokens);
  const double of_one = 6 * std::sqrt(1 / (width * width) + 1 / (width * rows));
  double pre_off = 0, post_off = 0, post_shortest = columns[0].seen[0].length, post_longest = post_shortest;
  for (size_t i = 0; i < depths.size(); ++i) {
    const Arrived post = columns[0].seen[i], pre = columns[1].seen[i];
    pre_off = worst_of(pre_off, std::abs(pre.share - 1) / pre.length);
    post_off = worst_of(post_off, std::abs(post.share - std::pow(1 + kGain, -depths[i] / 2)) / post.length);
    post_shortest = std::min(post_shortest, post.length);
    post_longest = std::max(post_longest, post.length);
  }
  report.claim(pre_off < of_one, "and what came from above is in it whole: the share stays 1",
               fmt::format("at most {} of the length off", cell(pre_off)));
  report.claim(post_shortest > 0.2 && post_longest < 5, "x + f(x), post-norm: the length stays",
               fmt::format("{} to {}", cell(post_shortest), cell(post_longest)));
  report.claim(post_off < of_one,
               fmt::format("but each norm takes its part of the straight path, {:.2f} a layer stay",
                           1 / std::sqrt(1 + kGain)),
               fmt::format("shares at most {} of the length off", cell(post_off)));

  report.figure = [columns, depths](inspect::PictureFormat format, inspect::Theme theme) {
    inspect::Panel panel{.name = "length", .series = {}, .scaling = inspect::Scaling::logarithmic};
    for (size_t i = 0; i < columns.size(); ++i) {
      inspect::Series line{.name = (i < 3 ? "x + f(x), " : "") + std::string(columns[i].name), .x = depths};
      for (const Arrived& arrived : columns[i].seen) line.y.push_back(arrived.length);
      line.style = i;
      line.marks = true;
      panel.series.push_back(std::move(line));
    }
    const inspect::Chart chart{"Gradients behind N layers", "N", {std::move(panel)}};
    return inspect::draw(chart, format, theme);
  };
}

// Rows become columns, so that layer norm works over the batch: batch norm while training.
Tensor<double> batch_norm(Tape<double>& tape, const Tensor<double>& x, double epsilon) {
  Arena& arena = tape.context().arena;
  const auto transposed = [&](const Tensor<double>& m) {
    const Tensor<double> t(arena, {m.cols(), m.rows()});
    for (int64_t i = 0; i < m.rows(); ++i) {
      for (int64_t j = 0; j < m.cols(); ++j) t(j, i) = m(i, j);
    }
    return t;
  };
  const int64_t n = x.rows();
  return transposed(
      nn::layer_norm(tape, Var<double>(transposed(x)), constant(arena, n, 1), constant(arena, n, 0), epsilon)
          .value());
}

void company(Report& report, const AddNorm::Options& options) {
  Context context(1);
  Tape<double> tape(context);
  Arena& arena = context.arena;
  const int64_t d = options.d_model, n = 4;
  const RandomKey key = RandomKey(static_cast<uint64_t>(options.seed)).with("company");
  const Tensor<double> a = drawn(arena, {n, d}, key.with("a")), b = drawn(arena, {n, d}, key.with("b"));
  std::copy_n(a.row(0), d, b.row(0));
  const auto layer = [&](const Tensor<double>& x) {
    return nn::layer_norm(tape, Var<double>(x), constant(arena, d, 1), constant(arena, d, 0), options.epsilon)
        .value();
  };
  const auto alone = a.slice_rows(0, 1);
  const double layer_moved =
      std::max(row_difference(layer(a), layer(b), 0), row_difference(layer(a), layer(alone), 0));
  const Tensor<double> batch_a = batch_norm(tape, a, options.epsilon),
                       batch_b = batch_norm(tape, b, options.epsilon),
                       batch_alone = batch_norm(tape, alone, options.epsilon);
  const double batch_moved = row_difference(batch_a, batch_b, 0);
  Table table{"the first number of a row among three others, three more, and alone",
              {"norm", "among a", "among b", "alone"},
              {}};
  table.rows.push_back({"layer", cell(layer(a)(0, 0)), cell(layer(b)(0, 0)), cell(layer(alone)(0, 0))});
  table.rows.push_back({"batch", cell(batch_a(0, 0)), cell(batch_b(0, 0)), cell(batch_alone(0, 0))});
  report.tables.push_back(std::move(table));
  report.claim(layer_moved == 0, "layer norm gives a row the same bits in any company",
               fmt::format("{} apart", cell(layer_moved)));
  report.claim(batch_moved > 0.01, "batch norm's answer depends on the company",
               fmt::format("up to {} apart", cell(batch_moved)));
}

}  // namespace

Report AddNorm::run(const Options& options, Ingredient ingredient) {
  // A layer's factor deviates by some 1 / sqrt(d_model), a product of N of them by sqrt(N / d_model).
  if (options.layers > options.d_model) {
    throw UsageError(fmt::format(
        "--layers must be at most --d-model, {}, not {}: behind more layers than a row has numbers "
        "lengths hang on the weights that were drawn",
        options.d_model, options.layers));
  }
  Report report;
  normalised_rows(report, options);
  gradients(report, options, ingredient);
  company(report, options);
  return report;
}

}  // namespace gloss::lab
