#include "gloss/lab/kernel_regression.h"

#include <array>
#include <cmath>
#include <numeric>

#include "gloss/attention/kernel_regression.h"
#include "gloss/base/random.h"
#include "gloss/inspect/chart.h"
#include "gloss/lab/csv.h"
#include "gloss/lab/numbers.h"

namespace gloss::lab {
namespace {

using autograd::Tape;
using autograd::Var;

constexpr size_t kQueries = 301;

struct Points {
  std::vector<double> x, y;  // by x
  std::string x_name = "x", y_name = "y";
  double low() const { return x.front(); }
  double width() const { return x.back() > x.front() ? x.back() - x.front() : 1; }
  double height() const {
    const auto [least, most] = std::ranges::minmax(y);
    return most - least;
  }
};

Points points_of(const KernelRegression::Options& options) {
  Points points;
  std::vector<double> x, y;
  const KernelRegression::Options usual;
  if (options.data.empty()) {
    if (options.x != usual.x || options.y != usual.y)
      throw UsageError("--x and --y are columns of a CSV: add --data FILE");
    const RandomKey key(static_cast<uint64_t>(options.seed));
    for (int64_t i = 0; i < options.n; ++i) {
      x.push_back(20 * key.with("x").uniform(static_cast<uint64_t>(i)));
      y.push_back(std::sin(x.back() / 3) + 0.2 * key.with("y").normal(static_cast<uint64_t>(i)));
    }
  } else {
    if (options.n != usual.n || options.seed != usual.seed)
      throw UsageError("--n and --seed are for the wave that --data FILE takes the place of: leave them out");
    NumberColumns table = read_csv(options.data, {options.x, options.y});
    x = std::move(table.columns[0]);
    y = std::move(table.columns[1]);
    points.x_name = table.names[0];
    points.y_name = table.names[1];
  }
  std::vector<size_t> order(x.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, {}, [&](size_t i) { return x[i]; });
  for (const size_t i : order) {
    points.x.push_back(x[i]);
    points.y.push_back(y[i]);
  }
  for (const auto& [name, column] :
       {std::pair(points.x_name, points.x), std::pair(points.y_name, points.y)}) {
    const auto [least, most] = std::ranges::minmax(column);
    require(std::isfinite(most - least), "{} runs from {} to {}: so far apart, no distance is a number", name,
            cell(least), cell(most));
  }
  return points;
}

struct Fit {
  std::vector<double> weights;     // [queries, n]
  std::vector<double> prediction;  // [queries]
};

// Softmax over the wrong axis: with the roles of x and x_i exchanged the weights of an x_i sum to 1 over the
// queries.
Fit fit(const Points& points, const std::vector<double>& queries, double b, Ingredient ingredient) {
  Context context(1);
  Tape<double> tape(context);
  const auto column = [&](const std::vector<double>& of) {
    return Var<double>(Tensor<double>::from(context.arena, {static_cast<int64_t>(of.size()), 1}, of));
  };
  const Var<double> width(Tensor<double>::from(context.arena, {1}, std::vector<double>{b}));
  Fit result;
  if (ingredient == Ingredient::kept) {
    const auto regression = attention::kernel_regression<double>(tape, column(queries), column(points.x),
                                                                 column(points.y), width);
    const auto weights = regression.weights.value().values(), f = regression.prediction.value().values();
    result.weights.assign(weights.begin(), weights.end());
    result.prediction.assign(f.begin(), f.end());
    return result;
  }
  const auto regression =
      attention::kernel_regression<double>(tape, column(points.x), column(queries), column(queries), width);
  result.weights = transposed(regression.weights.value().values(), queries.size());
  for (size_t q = 0; q < queries.size(); ++q)
    result.prediction.push_back(
        dot(std::span(result.weights).subspan(q * points.x.size(), points.x.size()), points.y));
  return result;
}

// How much x_i is farther than the nearest, in squares: exact where the squares themselves are large.
std::vector<double> farther(const Points& points, double x) {
  const double nearest =
      *std::ranges::min_element(points.x, {}, [x](double x_i) { return std::abs(x_i - x); });
  std::vector<double> squares;
  for (const double x_i : points.x)
    squares.push_back(std::max(0.0, (x_i - nearest) * ((x_i - x) + (nearest - x))));
  return squares;
}

// What one bandwidth did, at its worst query; values of y in parts of their range.
struct Seen {
  double b = 0;
  double nearest = 0, effective = 0;       // means: the largest weight, 1 / sum w^2
  double from_formula = 0, sums_off = 0;   // weights
  double from_nearest = 0, from_mean = 0;  // predictions
  bool nearer_weighs_more = true;
  std::vector<double> largest;  // weight of each query's nearest
};

Seen look(const Points& points, const std::vector<double>& queries, const Fit& of, double b) {
  const size_t n = points.x.size();
  const double height = points.height() > 0 ? points.height() : 1;
  const double mean = std::accumulate(points.y.begin(), points.y.end(), 0.0) / static_cast<double>(n);
  Seen seen;
  seen.b = b;
  seen.sums_off = row_sums_off(of.weights, n);
  for (size_t q = 0; q < queries.size(); ++q) {
    const std::span<const double> w = std::span(of.weights).subspan(q * n, n);
    const std::vector<double> squares = farther(points, queries[q]);
    std::vector<size_t> order(n);
    std::iota(order.begin(), order.end(), size_t{0});
    std::ranges::sort(order, {}, [&](size_t i) { return squares[i]; });
    for (size_t i = 1; i < n; ++i) {
      // Distances that differ by rounding alone, 10^-16 of the width squared, may come in either order.
      if (w[order[i]] > w[order[i - 1]] * (1 + 1e-7)) seen.nearer_weighs_more = false;
    }
    std::vector<double> scores;
    double least = points.y[order[0]], most = least;  // of y, among those as near as the nearest
    for (size_t i = 0; i < n; ++i) {
      scores.push_back(-squares[i] / b / b / 2);
      if (scores.back() > -40) {  // farther ones weigh less than e^-40
        least = std::min(least, points.y[i]);
        most = std::max(most, points.y[i]);
      }
    }
    seen.from_formula = std::max(seen.from_formula, largest_difference(softmax(scores), w));
    const double f = of.prediction[q];
    seen.from_nearest = std::max({seen.from_nearest, (least - f) / height, (f - most) / height});
    seen.from_mean = std::max(seen.from_mean, std::abs(f - mean) / height);
    seen.largest.push_back(w[order[0]]);
    seen.nearest += w[order[0]] / static_cast<double>(queries.size());
    seen.effective += 1 / dot(w, w) / static_cast<double>(queries.size());
  }
  return seen;
}

// Marks without a line between them: a gap behind each. A chart shows every mark of a few, so that they come
// in several series of one name.
std::vector<inspect::Series> marks(const Points& points) {
  constexpr size_t kFew = 20;
  std::vector<inspect::Series> all;
  for (size_t i = 0; i < points.x.size(); ++i) {
    if (i % kFew == 0) all.push_back({.name = "(x_i, y_i)", .marks = true});
    all.back().x.insert(all.back().x.end(), 2, points.x[i]);
    all.back().y.push_back(points.y[i]);
    all.back().y.push_back(std::nan(""));
  }
  return all;
}

}  // namespace

Report KernelRegression::run(const Options& options, Ingredient ingredient) {
  const Points points = points_of(options);
  std::vector<double> queries;
  for (size_t i = 0; i < kQueries; ++i)
    queries.push_back(points.low() +
                      points.width() * static_cast<double>(i) / static_cast<double>(kQueries - 1));

  // The ends of the scale follow from the data: where those that are not as near as the nearest weigh
  // nothing, and where the farthest weighs as much as the nearest but for one part in 10^10. Below the one,
  // distances that should be equal differ by rounding.
  const double least = 1e-4 * points.width(), most = 1e5 * points.width(), b = options.bandwidth;
  if (b <= least || b >= most)
    throw UsageError(fmt::format("--bandwidth must lie between {} and {} for x from {} to {}, not {}",
                                 cell(least), cell(most), cell(points.x.front()), cell(points.x.back()),
                                 cell(b)));
  std::vector<Seen> all;
  std::vector<inspect::Series> lines = marks(points);
  size_t drawn = 0;
  for (const double width : {least, b / 10, b, 10 * b, most}) {
    if (width < least || width > most) continue;
    const Fit found = fit(points, queries, width, ingredient);
    all.push_back(look(points, queries, found, width));
    if (width == least || width == b || width == most)
      lines.push_back({.name = width == b  ? fmt::format("b = {}", cell(b))
                               : width < b ? "b near 0"
                                           : "b very large",
                       .x = queries,
                       .y = found.prediction,
                       .style = ++drawn});
  }
  Report report;
  Table table{
      fmt::format("{} points, {} queries from the least x to the largest", points.x.size(), queries.size()),
      {"bandwidth b", "weight of the nearest", "1 / sum w^2", "f off the mean of y"},
      {}};
  bool ordered = true, falls = true;
  double formula = 0, sums = 0;
  for (size_t i = 0; i < all.size(); ++i) {
    const Seen& seen = all[i];
    table.rows.push_back({cell(seen.b), cell(seen.nearest), cell(seen.effective), cell(seen.from_mean)});
    ordered = ordered && seen.nearer_weighs_more;
    formula = std::max(formula, seen.from_formula);
    sums = std::max(sums, seen.sums_off);
    for (size_t q = 0; i > 0 && q < queries.size(); ++q)
      falls = falls && seen.largest[q] <= all[i - 1].largest[q] * (1 + 1e-7);
  }
  report.tables.push_back(std::move(table));
  report.claim(formula < 1e-7 && sums < 1e-9,
               "weights are softmax(-|x - x_i|^2 / (2 b^2)) over x_i, and sum to 1",
               fmt::format("at most {} off, sums {}", cell(formula), cell(sums)));
  report.claim(ordered, "nearer x_i weigh more, at every query and bandwidth",
               fmt::format("{} queries, {} bandwidths", queries.size(), all.size()));
  report.claim(falls, "the larger b, the less the nearest weighs",
               fmt::format("{} to {}", cell(all.front().nearest), cell(all.back().nearest)));
  report.claim(all.front().from_nearest < 1e-9, "for small b, f(x) is the y of the nearest x_i",
               fmt::format("b = {}: {} of the range of y off", cell(all.front().b),
                           cell(std::max(0.0, all.front().from_nearest))));
  report.claim(
      all.back().from_mean < 1e-9, "for large b, f(x) is the plain mean of all y_i",
      fmt::format("b = {}: {} of the range of y off", cell(all.back().b), cell(all.back().from_mean)));
  report.figure = [lines, points](inspect::PictureFormat format, inspect::Theme theme) {
    return inspect::draw(inspect::Chart{"Kernel regression, from the nearest neighbour to the plain mean",
                                        points.x_name,
                                        {{.name = points.y_name, .series = lines}}},
                         format, theme);
  };
  return report;
}

}  // namespace gloss::lab
