#include "gloss/lab/saturation.h"

#include <array>
#include <cmath>

#include "gloss/attention/scaled_dot_product.h"
#include "gloss/inspect/chart.h"
#include "gloss/lab/drawn.h"
#include "gloss/lab/numbers.h"

namespace gloss::lab {
namespace {

using autograd::Tape;
using autograd::Var;

// p = softmax(s) and dp_i / ds_k [n, n] as the library has them: with keys sqrt(n) e_k the scores
// q^T k_k / sqrt(d_k) of a query q of d_k = n numbers are these numbers.
struct Softmax {
  std::vector<double> p, jacobian;
};
Softmax softmax_of(const std::vector<double>& s, bool with_jacobian) {
  const auto n = static_cast<int64_t>(s.size());
  Context context(1);
  const Tensor<double> keys = Tensor<double>::zeros(context.arena, {n, n});
  for (int64_t i = 0; i < n; ++i) keys(i, i) = std::sqrt(static_cast<double>(n));
  const Offsets one({0, 1}), all({0, n});
  Softmax result;
  for (int64_t i = 0; i < (with_jacobian ? n : 1); ++i) {
    Tape<double> tape(context, Tape<double>::Mode::train);
    const Var<double> q = tape.leaf(Tensor<double>::from(context.arena, {1, n}, s));
    const auto attended = attention::scaled_dot_product_attention<double>(
        tape, {q, one}, {Var<double>(keys), all}, {Var<double>(keys), all}, {}, {.weights = true});
    const auto p = attended.weights.value().values();
    result.p.assign(p.begin(), p.end());
    if (!with_jacobian) continue;
    const Tensor<double> up = Tensor<double>::zeros(context.arena, attended.weights.shape());
    up.data()[i] = 1;  // of p_i alone
    tape.backward(attended.weights, up);
    const Tensor<double> row = tape.gradient(q);
    result.jacobian.insert(result.jacobian.end(), row.data(), row.data() + n);
  }
  return result;
}

std::vector<double> by_differences(const std::vector<double>& s) {
  constexpr double kStep = 1e-5;
  const size_t n = s.size();
  std::vector<double> jacobian(n * n);
  for (size_t k = 0; k < n; ++k) {
    std::vector<double> up = s, down = s;
    up[k] += kStep;
    down[k] -= kStep;
    const std::vector<double> a = softmax_of(up, false).p, b = softmax_of(down, false).p;
    for (size_t i = 0; i < n; ++i) jacobian[i * n + k] = (a[i] - b[i]) / (2 * kStep);
  }
  return jacobian;
}

void show_jacobian(Report& report) {
  Table table{"scores t (1, 1/2, 0, -1/2): p nears one-hot at 1, and dp_i / ds_k",
              {"t", "p_1", "i = k = 1", "i or k = 1", "neither", "from differences"},
              {}};
  double worst_formula = 0, worst_difference = 0, worst_bound = 0, last = 0;
  for (const double t : {0.0, 1.0, 4.0, 16.0, 64.0}) {
    const std::vector<double> s{t, t / 2, 0, -t / 2};
    const Softmax softmax = softmax_of(s, true);
    const std::vector<double>&p = softmax.p, &jacobian = softmax.jacobian;
    const std::vector<double> differences = by_differences(s);
    const double difference = largest_difference(differences, jacobian);
    const double rest = p[1] + p[2] + p[3];  // 1 - p_1 without its rounding
    std::array<double, 3> cases{};           // the entry that is largest in size
    for (size_t i = 0; i < 4; ++i) {
      for (size_t k = 0; k < 4; ++k) {
        const double entry = jacobian[i * 4 + k];
        worst_formula = worst_of(worst_formula, std::abs(entry - p[i] * ((i == k ? 1 : 0) - p[k])));
        double& shown = cases[i == 0 && k == 0 ? 0 : i == 0 || k == 0 ? 1 : 2];
        if (std::abs(entry) > std::abs(shown)) shown = entry;
        worst_bound = worst_of(worst_bound, std::abs(entry) - rest);
      }
    }
    last = std::abs(*std::ranges::max_element(jacobian, {}, [](double v) { return std::abs(v); }));
    worst_difference = worst_of(worst_difference, difference);
    table.rows.push_back(
        {cell(t), cell(p[0]), cell(cases[0]), cell(cases[1]), cell(cases[2]), cell(difference)});
  }
  report.tables.push_back(std::move(table));
  report.claim(worst_formula < 1e-14, "the backward pass has dp_i / ds_k = p_i (delta_ik - p_k)",
               fmt::format("at most {} off", cell(worst_formula)));
  // Central differences err by step^2 / 6 times a third derivative below 1, and by rounding / step.
  report.claim(worst_difference < 1e-9, "which finite differences confirm",
               fmt::format("at most {} off", cell(worst_difference)));
  // p_1 (1 - p_1), p_1 p_k and p_j (delta_jk - p_k) are each at most 1 - p_1; the slack is for rounding.
  report.claim(worst_bound < 1e-15 && last < 1e-12,
               "near a one-hot p all three cases vanish: no entry exceeds 1 - p_1",
               fmt::format("largest entry {} at t = 64", cell(last)));
}

// Norms of the gradients of q and of all k of a query, and the largest weight: the medians over queries.
struct Reached {
  std::vector<double> q, k, top;
};
double median(std::vector<double> x) {
  const auto middle = x.begin() + static_cast<std::ptrdiff_t>(x.size() / 2);
  std::ranges::nth_element(x, middle);
  return *middle;
}
double norm(std::span<const double> x) {
  return std::sqrt(dot(x, x));
}

struct Draw {
  Tensor<double> q, k, v;  // [samples, d_k], [samples * keys, d_k], [samples * keys, 1]
};

// The gradients of the summed outputs. Without scaling: the function divides by sqrt(d_k), so that it is
// given sqrt(d_k) q, and the chain rule takes its gradient back to q.
void attend(Context& context, const Draw& x, bool scaled, Reached& reached) {
  const int64_t samples = x.q.rows(), d_k = x.q.cols(), n = x.k.rows() / samples;
  const double factor = scaled ? 1 : std::sqrt(static_cast<double>(d_k));
  const Tensor<double> times(context.arena, x.q.shape()), up(context.arena, {samples, 1});
  for (int64_t i = 0; i < x.q.size(); ++i) times.data()[i] = factor * x.q.data()[i];
  up.fill(1);
  const std::vector<int64_t> ones(static_cast<size_t>(samples), 1), lengths(static_cast<size_t>(samples), n);
  const Offsets queries = Offsets::of_lengths(ones), keys = Offsets::of_lengths(lengths);
  Tape<double> tape(context, Tape<double>::Mode::train);
  const Var<double> q = tape.leaf(times), k = tape.leaf(x.k);
  const auto attended = attention::scaled_dot_product_attention<double>(
      tape, {q, queries}, {k, keys}, {Var<double>(x.v), keys}, {}, {.weights = true});
  tape.backward(attended.output, up);
  const Tensor<double> dq = tape.gradient(q), dk = tape.gradient(k);
  for (int64_t i = 0; i < samples; ++i) {
    reached.q.push_back(factor * norm(row_of(dq, i)));
    reached.k.push_back(norm(dk.slice_rows(i * n, n).values()));
    const double* p = attended.weights.value().data() + i * n;
    reached.top.push_back(*std::max_element(p, p + n));
  }
}

}  // namespace

Report Saturation::run(const Options& options, Ingredient ingredient) {
  constexpr int64_t kChunk = 50;  // samples at a time, which bounds the memory
  Report report;
  show_jacobian(report);

  Table table{fmt::format("medians over queries with {} keys: scores q.k, and {}", options.keys,
                          ingredient == Ingredient::kept ? "divided by sqrt(d_k)" : "again, not divided"),
              {"d_k", "largest p", "|dL/dq|", "|dL/dk|", "divided: p", "|dL/dq|", "|dL/dk|"},
              {}};
  std::array<inspect::Series, 2> of_q, of_k;  // undivided, divided
  double lowest = 0, highest = 0;
  std::array<std::array<double, 2>, 2> last{};  // at the largest d_k: [undivided, divided][q, k]
  for (int64_t d_k = 1; d_k <= options.largest; d_k *= 4) {
    std::array<Reached, 2> reached;
    const RandomKey key = RandomKey(static_cast<uint64_t>(options.seed)).with(static_cast<uint64_t>(d_k));
    Context context(1);
    for (int64_t done = 0; done < options.samples; done += kChunk) {
      const int64_t samples = std::min(kChunk, options.samples - done);
      const RandomKey part = key.with(static_cast<uint64_t>(done));
      const Draw x{drawn(context.arena, {samples, d_k}, part.with("q")),
                   drawn(context.arena, {samples * options.keys, d_k}, part.with("k")),
                   drawn(context.arena, {samples * options.keys, 1}, part.with("v"))};
      attend(context, x, false, reached[0]);
      attend(context, x, ingredient == Ingredient::kept, reached[1]);
    }
    std::vector<std::string> row{fmt::format("{}", d_k)};
    for (size_t i = 0; i < 2; ++i) {
      last[i] = {median(reached[i].q), median(reached[i].k)};
      for (const double value : {median(reached[i].top), last[i][0], last[i][1]}) row.push_back(cell(value));
      of_q[i].x.push_back(static_cast<double>(d_k));
      of_q[i].y.push_back(last[i][0]);
      of_k[i].x.push_back(static_cast<double>(d_k));
      of_k[i].y.push_back(last[i][1]);
    }
    table.rows.push_back(std::move(row));
    if (d_k < 16) continue;  // in few dimensions norms of q and k themselves still vary
    for (const double value : last[1]) {
      lowest = lowest == 0 ? value : least_of(lowest, value);
      highest = worst_of(highest, value);
    }
  }
  report.tables.push_back(std::move(table));
  // The deviation of a median of 400 or more is about 5 % of it, so that two of them are rarely a fifth
  // apart.
  report.claim(highest < 2 * lowest, "divided, the gradient of q and k keeps its size from d_k = 16 up",
               fmt::format("{} to {}", cell(lowest), cell(highest)));
  // Undivided, the lead of the best score over the next is about exponential with mean
  // sqrt(d_k) / sqrt(2 ln keys), 12 or more at d_k = 1024 and 32 keys; the gradient is e^-lead of what it
  // was, and no more than e^-8 sqrt(d_k), 1 %, at the median. Sampling 400 moves that median of leads by 0.6.
  report.claim(last[0][0] < last[1][0] / 4 && last[0][1] < last[1][1] / 4,
               "undivided, the softmax saturates and the median gradient of q and k vanishes",
               fmt::format("{} and {} of the divided at the largest d_k", cell(last[0][0] / last[1][0]),
                           cell(last[0][1] / last[1][1])));
  report.figure = [of_q, of_k](inspect::PictureFormat format, inspect::Theme theme) {
    const auto panel = [](const char* name, const std::array<inspect::Series, 2>& of) {
      inspect::Panel made{.name = name, .series = {of[0], of[1]}, .scaling = inspect::Scaling::logarithmic};
      made.series[0].name = "q.k";
      made.series[1].name = "q.k / sqrt(d_k)";
      made.series[1].style = 1;
      made.series[0].marks = made.series[1].marks = true;
      return made;
    };
    return inspect::draw(
        inspect::Chart{"The gradient that passes the softmax",
                       "d_k",
                       {panel("median norm of dL/dq", of_q), panel("median norm of dL/dk", of_k)}},
        format, theme);
  };
  return report;
}

}  // namespace gloss::lab
