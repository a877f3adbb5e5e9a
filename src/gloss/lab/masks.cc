#include "gloss/lab/masks.h"

#include <array>
#include <cmath>
#include <limits>

#include "gloss/attention/scaled_dot_product.h"
#include "gloss/inspect/heat_map.h"
#include "gloss/lab/drawn.h"
#include "gloss/lab/numbers.h"

namespace gloss::lab {
namespace {

using attention::Causal;
using attention::Mask;
using attention::Padding;
using autograd::Tape;
using autograd::Var;

constexpr double kInfinite = std::numeric_limits<double>::infinity();

// Which keys are hidden, in words.
struct Named {
  const char* name;
  bool causal, padding;
};
constexpr std::array<Named, 3> kMasks{
    {{"causal", true, false}, {"padding", false, true}, {"both", true, true}}};

// M [n, n] from its definition: -inf where query i must not look at key j.
std::vector<double> matrix_m(const Named& mask, int64_t n, int64_t padded) {
  std::vector<double> m;
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < n; ++j)
      m.push_back((mask.causal && j > i) || (mask.padding && j >= n - padded) ? -kInfinite : 0);
  }
  return m;
}

// q, k and v of n tokens, [n, d_k] each.
struct Heads {
  Tensor<double> q, k, v;
};

struct Seen {
  std::vector<double> scores, weights;  // [n, n]; a key that was taken out: -inf and 0
  std::vector<double> output;           // [n, d_k]
};

// The library's masks: a length hides padding, Causal::yes the future.
Seen attend(Context& context, const Heads& x, const Named& mask, int64_t padded) {
  const int64_t n = x.q.rows(), length = mask.padding ? n - padded : n;
  Tape<double> tape(context);
  const Padding padding(std::vector<int64_t>{length}, n);
  const Var<double> k(padding.compact(context.arena, x.k)), v(padding.compact(context.arena, x.v));
  const auto attended = attention::scaled_dot_product_attention<double>(
      tape, {Var<double>(x.q), Offsets({0, n})}, {k, padding.offsets()}, {v, padding.offsets()},
      mask.causal ? Mask{Causal::yes, 0} : Mask{}, {.scores = true, .weights = true});
  Seen seen;
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      const int64_t at = i * length + j;
      seen.scores.push_back(j < length ? attended.scores.data()[at] : -kInfinite);
      seen.weights.push_back(j < length ? attended.weights.value().data()[at] : 0);
    }
  }
  const auto output = attended.output.value().values();
  seen.output.assign(output.begin(), output.end());
  return seen;
}

std::vector<double> sum(std::vector<double> a, const std::vector<double>& b) {
  for (size_t i = 0; i < a.size(); ++i) a[i] += b[i];
  return a;
}

void fill_rows(const Tensor<double>& x, int64_t first, double value) {
  for (int64_t i = first; i < x.rows(); ++i) std::fill_n(x.row(i), x.cols(), value);
}

Heads draw_heads(Context& context, int64_t n, int64_t d_k, const RandomKey& key) {
  return {drawn(context.arena, {n, d_k}, key.with("q")), drawn(context.arena, {n, d_k}, key.with("k")),
          drawn(context.arena, {n, d_k}, key.with("v"))};
}

// Of the outputs of query 0 to t, how many rows move when every token behind t is another one?
int64_t moved_by_future(Context& context, const Heads& x, const Named& mask, const RandomKey& key) {
  const int64_t n = x.q.rows(), d_k = x.q.cols();
  const std::vector<double> before = attend(context, x, mask, 0).output;
  const Heads other = draw_heads(context, n, d_k, key.with("future"));
  int64_t moved = 0;
  for (int64_t t = 0; t + 1 < n; ++t) {
    const auto mixed = [&](const Tensor<double>& now, const Tensor<double>& later) {
      const Tensor<double> y(context.arena, now.shape());
      for (int64_t i = 0; i < n; ++i) std::copy_n((i <= t ? now : later).row(i), d_k, y.row(i));
      return y;
    };
    const std::vector<double> after =
        attend(context, {mixed(x.q, other.q), mixed(x.k, other.k), mixed(x.v, other.v)}, mask, 0).output;
    for (int64_t i = 0; i <= t; ++i) {
      const auto row = [&](const std::vector<double>& of) {
        return std::span(of).subspan(static_cast<size_t>(i * d_k), static_cast<size_t>(d_k));
      };
      moved += same_bits(row(before), row(after)) ? 0 : 1;
    }
  }
  return moved;
}

// Beside a sequence of n keys one without any, as all of its keys are padding: n queries each.
void claim_empty_row(Report& report, Context& context, const Heads& x) {
  const int64_t n = x.q.rows(), d_k = x.q.cols();
  Tape<double> tape(context, Tape<double>::Mode::train);
  const Tensor<double> both(context.arena, {2 * n, d_k}), up(context.arena, {2 * n, d_k});
  for (int64_t i = 0; i < 2 * n; ++i) std::copy_n(x.q.row(i % n), d_k, both.row(i));
  up.fill(1);
  const Padding padding(std::vector<int64_t>{n, 0}, n);
  const Var<double> q = tape.leaf(both), k = tape.leaf(x.k), v = tape.leaf(x.v);
  const auto attended = attention::scaled_dot_product_attention<double>(
      tape, {q, Offsets({0, n, 2 * n})}, {k, padding.offsets()}, {v, padding.offsets()});
  tape.backward(attended.output, up);
  const auto zeros = [&](const Tensor<double>& of) {
    return std::ranges::all_of(of.slice_rows(n, n).values(), [](double g) { return g == 0; });
  };
  const auto finite = [&](const Var<double>& of) {
    return std::ranges::all_of(tape.gradient(of).values(), [](double g) { return std::isfinite(g); });
  };
  const double written_down = softmax(std::vector<double>(static_cast<size_t>(n), -kInfinite)).front();
  report.claim(zeros(attended.output.value()) && zeros(tape.gradient(q)) && finite(q) && finite(k) &&
                   finite(v) && std::isnan(written_down),
               "a fully masked row gives zeros and zero gradients, where the formula alone gives 0 / 0",
               fmt::format("0, not {}", cell(written_down)));
}

}  // namespace

Report Masks::run(const Options& options, Ingredient ingredient) {
  const int64_t n = options.n, padded = options.padded;
  if (padded >= n)
    throw UsageError(fmt::format("--padded {} leaves no token of {}: give less, or a larger --n", padded, n));
  Report report;
  Table m{"M for n = 3, causal: 0 where query i may look at key j, -inf elsewhere",
          {"M", "key 1", "key 2", "key 3"},
          {}};
  const std::vector<double> three = matrix_m(kMasks[0], 3, 0);
  for (size_t i = 0; i < 3; ++i) {
    m.rows.push_back(
        {fmt::format("query {}", i + 1), cell(three[3 * i]), cell(three[3 * i + 1]), cell(three[3 * i + 2])});
  }
  report.tables.push_back(std::move(m));

  Context context(1);
  const RandomKey key(static_cast<uint64_t>(options.seed));
  const Heads x = draw_heads(context, n, options.d_k, key);
  const auto by_name = [&](const Named& mask) {
    return ingredient == Ingredient::kept ? mask : Named{mask.name, false, false};
  };
  const std::vector<double> scores = attend(context, x, {"none", false, false}, 0).scores;
  Table table{fmt::format("{} tokens, the last {} padding where padding is masked", n, padded),
              {"mask", "hidden", "scores that differ", "weight under M", "off softmax(S + M)"},
              {}};
  std::vector<Seen> seen;
  double worst_under = 0, worst_off = 0;
  for (const Named& mask : kMasks) {
    const Seen& named = seen.emplace_back(attend(context, x, by_name(mask), padded));
    const std::vector<double> M = matrix_m(mask, n, padded), masked = sum(scores, M);
    int64_t hidden = 0, differ = 0;
    double under = 0, off = row_sums_off(named.weights, static_cast<size_t>(n));
    for (size_t i = 0; i < M.size(); ++i) {
      hidden += M[i] < 0 ? 1 : 0;
      differ += same_bits({&masked[i], 1}, {&named.scores[i], 1}) ? 0 : 1;
      if (M[i] < 0) under = std::max(under, named.weights[i]);
    }
    for (size_t i = 0; i < static_cast<size_t>(n); ++i) {
      const size_t begin = i * static_cast<size_t>(n), count = static_cast<size_t>(n);
      off = std::max(off, largest_difference(softmax(std::span(masked).subspan(begin, count)),
                                             std::span(named.weights).subspan(begin, count)));
    }
    worst_under = worst_of(worst_under, under);
    worst_off = worst_of(worst_off, off);
    table.rows.push_back({mask.name, fmt::format("{} of {}", hidden, n * n), fmt::format("{}", differ),
                          cell(under), cell(off)});
    report.claim(differ == 0,
                 fmt::format("scores + M are the scores of the named mask, bit for bit: {}", mask.name),
                 fmt::format("{} of {} differ", differ, n * n));
  }
  report.tables.push_back(std::move(table));
  report.claim(worst_under == 0 && worst_off < 1e-12,
               "hidden keys weigh exactly 0, the others are softmax(S + M), rows sum to 1",
               fmt::format("{}; at most {} off", cell(worst_under), cell(worst_off)));

  // What stands in a padded place: 1 or NaN.
  const auto with_padding = [&](double value) {
    Heads filled = draw_heads(context, n, options.d_k, key);
    fill_rows(filled.k, n - padded, value);
    fill_rows(filled.v, n - padded, value);
    return attend(context, filled, by_name(kMasks[1]), padded).output;
  };
  report.claim(same_bits(with_padding(1), with_padding(std::numeric_limits<double>::quiet_NaN())),
               "what stands in a padded place is never read, be it NaN", "outputs compared bit for bit");
  const int64_t moved = moved_by_future(context, x, by_name(kMasks[0]), key);
  report.claim(moved == 0, "under the causal mask other tokens behind t change no output up to t",
               fmt::format("{} of {} rows moved", moved, n * (n - 1) / 2));
  claim_empty_row(report, context, x);

  report.figure = [seen, n](inspect::PictureFormat format, inspect::Theme theme) {
    inspect::HeatMapGrid grid;
    grid.title = "Masks";
    grid.row_labels = numbered(n);
    grid.column_labels = grid.row_labels;
    grid.row_axis = "query";
    grid.column_axis = "key";
    grid.grid_columns = {"causal", "causal, padded"};
    for (const size_t i : {size_t{0}, size_t{2}}) {
      inspect::Cells cells{floats(seen[i].weights)};
      for (const double score : seen[i].scores) cells.hidden.push_back(score == -kInfinite ? 1 : 0);
      grid.maps.push_back(std::move(cells));
    }
    return inspect::draw(grid, format, {.theme = theme, .value_name = "weight"});
  };
  return report;
}

}  // namespace gloss::lab
