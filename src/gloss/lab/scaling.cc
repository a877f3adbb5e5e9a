#include "gloss/lab/scaling.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "gloss/attention/scaled_dot_product.h"
#include "gloss/base/random.h"
#include "gloss/inspect/chart.h"
#include "gloss/lab/numbers.h"

namespace gloss::lab {
namespace {

using autograd::Tape;
using autograd::Var;

double draw(Scaling::Distribution distribution, const RandomKey& key, uint64_t index) {
  switch (distribution) {
    case Scaling::Distribution::normal:
      return key.normal(index);
    case Scaling::Distribution::uniform:
      return (2 * key.uniform(index) - 1) * std::sqrt(3.0);
    case Scaling::Distribution::sign:
      return key.bits(index) % 2 == 0 ? 1 : -1;
  }
  return 0;
}

struct Moments {
  double mean = 0, variance = 0;
};
Moments moments(const std::vector<double>& x) {
  Moments m;
  for (const double v : x) m.mean += v / static_cast<double>(x.size());
  for (const double v : x) m.variance += (v - m.mean) * (v - m.mean) / static_cast<double>(x.size());
  return m;
}

// What the attention function makes of pairs of q and k, one query and one key a sequence.
std::vector<double> scores_of(const Scaling::Options& options, int64_t d_k) {
  Context context(1);
  Tape<double> tape(context);
  const int64_t n = options.samples;
  const Tensor<double> q(context.arena, {n, d_k}), k(context.arena, {n, d_k});
  const RandomKey key = RandomKey(static_cast<uint64_t>(options.seed)).with(static_cast<uint64_t>(d_k));
  for (int64_t i = 0; i < q.size(); ++i) {
    q.data()[i] = draw(options.distribution, key.with("q"), static_cast<uint64_t>(i));
    k.data()[i] = draw(options.distribution, key.with("k"), static_cast<uint64_t>(i));
  }
  const Offsets offsets = Offsets::of_lengths(std::vector<int64_t>(static_cast<size_t>(n), 1));
  const auto attended = attention::scaled_dot_product_attention<double>(
      tape, {Var<double>(q), offsets}, {Var<double>(k), offsets}, {Var<double>(k), offsets}, {},
      {.scores = true});
  const auto values = attended.scores.values();
  return {values.begin(), values.end()};
}

std::vector<double> times(std::vector<double> x, double factor) {
  for (double& v : x) v *= factor;
  return x;
}

}  // namespace

Report Scaling::run(const Options& options, Ingredient ingredient) {
  Report report;
  Table table{"q and k of d_k numbers with mean 0 and variance 1",
              {"d_k", "mean of q.k", "variance", "deviation", "sqrt(d_k)", "mean after", "variance after"},
              {}};
  inspect::Series before{.name = "deviation of q.k"}, after{.name = "of the scores"};
  double worst_mean = 0, worst_variance = 0, worst_after = 0, of_one_mean = 0, of_one_variance = 0;
  for (int64_t d_k = 1; d_k <= options.largest; d_k *= 2) {
    const double root = std::sqrt(static_cast<double>(d_k));
    const std::vector<double> scaled = scores_of(options, d_k), products = times(scaled, root);
    const Moments raw = moments(products),
                  score = moments(ingredient == Ingredient::kept ? scaled : products);
    if (d_k == 1) {
      of_one_mean = raw.mean;
      of_one_variance = raw.variance;
    }
    worst_mean = worst_of(worst_mean, std::abs(raw.mean) / root);
    worst_variance = worst_of(worst_variance, std::abs(raw.variance / static_cast<double>(d_k) - 1));
    worst_after = worst_of(worst_after, std::abs(score.variance - 1));
    table.rows.push_back({fmt::format("{}", d_k), cell(raw.mean), cell(raw.variance),
                          cell(std::sqrt(raw.variance)), cell(root), cell(score.mean), cell(score.variance)});
    before.x.push_back(static_cast<double>(d_k));
    before.y.push_back(std::sqrt(raw.variance));
    after.x.push_back(static_cast<double>(d_k));
    after.y.push_back(std::sqrt(score.variance));
  }
  report.tables.push_back(std::move(table));
  // Sampling moves a mean by 1 / sqrt(samples) deviations, a variance by up to three times as much.
  const double slack = 6 / std::sqrt(static_cast<double>(options.samples));
  report.claim(std::abs(of_one_mean) < slack && std::abs(of_one_variance - 1) < 3 * slack,
               "one term q_i k_i has mean 0 and variance 1",
               fmt::format("{} and {}", cell(of_one_mean), cell(of_one_variance)));
  report.claim(worst_mean < slack, "the sum of d_k terms has mean 0",
               fmt::format("at most {} deviations off", cell(worst_mean)));
  report.claim(worst_variance < 3 * slack, "its variance is d_k, its deviation sqrt(d_k)",
               fmt::format("at most {} % off", cell(100 * worst_variance)));
  report.claim(worst_after < 3 * slack, "after the division by sqrt(d_k) the variance is 1 for every d_k",
               fmt::format("at most {} off", cell(worst_after)));
  report.figure = [before, after](inspect::PictureFormat format, inspect::Theme theme) {
    inspect::Series a = before, b = after;
    b.style = 1;
    a.marks = b.marks = true;
    const inspect::Chart chart{
        "The spread of scores", "d_k", {{.name = "standard deviation", .series = {a, b}, .from_zero = true}}};
    return inspect::draw(chart, format, theme);
  };
  return report;
}

}  // namespace gloss::lab
