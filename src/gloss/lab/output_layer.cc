#include "gloss/lab/output_layer.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "gloss/inspect/heat_map.h"
#include "gloss/lab/drawn.h"
#include "gloss/lab/numbers.h"
#include "gloss/models/transformer.h"
#include "gloss/nn/loss.h"

namespace gloss::lab {
namespace {

using autograd::Tape;
using autograd::Var;

enum class Tied { no, yes };

struct Network {
  Network(const OutputLayer::Options& options, Context& context, Tied tied)
      : config(configured(options, tied)), model(config, context.arena) {
    const RandomKey key(static_cast<uint64_t>(options.seed));
    model.parameters().initialise(key.state());
    W_vocab = part_named(model.parameters(), tied == Tied::yes ? "model.shared.weight" : "lm_head.weight");
    table = part_named(model.parameters(), "model.shared.weight");
    b = part_named(model.parameters(), "final_logits_bias");
    const Tensor<double> start = drawn(context.arena, b.shape(), key.with("bias"));
    std::copy_n(start.data(), b.size(), b.data());  // zeros would hide it
    source = drawn_sentence(key.with("source"), 6, options.vocabulary);
    target = drawn_sentence(key.with("target"), options.target, options.vocabulary);
  }
  static models::TransformerConfig configured(const OutputLayer::Options& options, Tied tied) {
    models::TransformerConfig config = small_config(options.vocabulary, options.d_model, 1, 2);
    config.tie_output = tied == Tied::yes;
    return config;
  }
  Tensor<double> states(Tape<double>& tape) const {
    return model.decode(tape, model.decoder_input(target), model.encode(tape, source)).rows.value();
  }

  models::TransformerConfig config;
  models::Transformer<double> model;
  Tensor<double> W_vocab, table, b;  // [V, d_model], the embeddings, [V]
  Tokens source, target;
};

// P[t, w] of every word at every position, from the function that scores translations. Removed: the same
// function over the matrix turned round, so that the numbers of a word are divided by their sum over
// positions.
Tensor<double> probabilities(Tape<double>& tape, const Network& network, const Tensor<double>& Y,
                             Ingredient ingredient) {
  const int64_t n = Y.rows(), V = network.b.size(), d = Y.cols();
  Arena& arena = tape.context().arena;
  const Tensor<double> repeated(arena, {n * V, d}), P(arena, {n, V});
  std::vector<int32_t> targets;
  if (ingredient == Ingredient::kept) {
    for (int64_t i = 0; i < n * V; ++i) {
      std::copy_n(Y.row(i / V), d, repeated.row(i));
      targets.push_back(static_cast<int32_t>(i % V));
    }
    const auto log_p =
        nn::projection_log_probabilities(tape, Var<double>(repeated), Var<double>(network.W_vocab),
                                         Var<double>(network.b), std::span<const int32_t>(targets));
    std::ranges::transform(log_p, P.data(), [](double v) { return std::exp(v); });
  } else {
    // A word's bias is the same at all positions and cancels.
    for (int64_t i = 0; i < n * V; ++i) {
      std::copy_n(network.W_vocab.row(i % V), d, repeated.row(i));
      targets.push_back(static_cast<int32_t>(i / V));
    }
    const auto log_p = nn::projection_log_probabilities(tape, Var<double>(repeated), Var<double>(Y),
                                                        Var<double>(), std::span<const int32_t>(targets));
    std::ranges::transform(log_p, P.data(), [](double v) { return std::exp(v); });
  }
  return P;
}

void scores_a_translation(Report& report, Tape<double>& tape, const Network& network, const Tensor<double>& P,
                          const Tensor<double>& logits) {
  double worst = 0, off = 0, log_sum = 0;
  for (int64_t t = 0; t < P.rows(); ++t) {
    double sum = 0, exponentials = 0;
    for (int64_t w = 0; w < P.cols(); ++w) {
      sum += P(t, w);
      exponentials += std::exp(logits(t, w));
    }
    for (int64_t w = 0; w < P.cols(); ++w)
      off = worst_of(off, std::abs(P(t, w) - std::exp(logits(t, w)) / exponentials));
    worst = worst_of(worst, std::abs(sum - 1));
  }
  report.claim(worst < 1e-10, "softmax makes each position's numbers a distribution over the words",
               fmt::format("sums at most {} from 1", cell(worst)));
  report.claim(off < 1e-10, "P(w) = exp(logit of w) / sum over all words",
               fmt::format("at most {} off", cell(off)));

  const std::vector<double> scored = network.model.log_probabilities(tape, network.source, network.target);
  Table table{"P(y_t | y_<t, x) of the target", {"t", "y_t", "logit", "P", "log P", "library's log P"}, {}};
  double apart = 0, product = 1;
  for (int64_t t = 0; t < P.rows(); ++t) {
    const int32_t y = network.target.rows[static_cast<size_t>(t)];
    const double p = P(t, y), log_p = scored[static_cast<size_t>(t)];
    product *= p;
    log_sum += log_p;
    apart = worst_of(apart, std::abs(std::log(p) - log_p));
    table.rows.push_back({fmt::format("{}", t + 1), fmt::format("{}", y), cell(logits(t, y)), cell(p),
                          cell(std::log(p)), cell(log_p)});
  }
  report.tables.push_back(std::move(table));
  report.claim(apart < 1e-10 && std::abs(std::log(product) - log_sum) < 1e-9,
               "P(y | x) is the product of P(y_t | y_<t, x), log P the sum that scoring prints",
               fmt::format("{} and e^{}", cell(product), cell(log_sum)));
}

// How far the logits of fixed states move when a word's embedding is changed: of that word, of all others.
struct Nudged {
  double own = 0, others = 0;
};
Nudged nudged(Tape<double>& tape, const Network& network, const Tensor<double>& Y) {
  constexpr int64_t kWord = kFirstWord + 1;
  const Tensor<double> before = network.model.logits(tape, Var<double>(Y)).value();
  for (int64_t i = 0; i < Y.cols(); ++i) network.table(kWord, i) += 0.5 * Y(0, i);
  const Tensor<double> after = network.model.logits(tape, Var<double>(Y)).value();
  for (int64_t i = 0; i < Y.cols(); ++i) network.table(kWord, i) -= 0.5 * Y(0, i);
  Nudged result;
  for (int64_t t = 0; t < Y.rows(); ++t) {
    for (int64_t w = 0; w < before.cols(); ++w) {
      double& moved = w == kWord ? result.own : result.others;
      moved = worst_of(moved, std::abs(after(t, w) - before(t, w)));
    }
  }
  return result;
}

}  // namespace

Report OutputLayer::run(const Options& options, Ingredient ingredient) {
  Report report;
  Context context(1);
  Tape<double> tape(context);
  const Network tied(options, context, Tied::yes), untied(options, context, Tied::no);
  const int64_t V = options.vocabulary, d = options.d_model;

  Tensor<double> P;
  for (const Network* network : {&tied, &untied}) {
    const Tensor<double> Y = network->states(tape),
                         logits = network->model.logits(tape, Var<double>(Y)).value();
    double off = 0;
    for (int64_t t = 0; t < Y.rows(); ++t) {
      for (int64_t w = 0; w < V; ++w) {
        double sum = network->b.data()[w];
        for (int64_t i = 0; i < d; ++i) sum += Y(t, i) * network->W_vocab(w, i);
        off = worst_of(off, std::abs(sum - logits(t, w)));
      }
    }
    report.claim(off < 1e-10 && logits.shape() == Shape({options.target, V}),
                 fmt::format("{}: logits = Y W_vocab + b, one row of V numbers a position",
                             network == &tied ? "tied" : "untied"),
                 fmt::format("{}, at most {} off", logits.shape().text(), cell(off)));
    if (network == &tied) {
      P = probabilities(tape, tied, Y, ingredient);
      scores_a_translation(report, tape, tied, P, logits);
    }
  }

  const int64_t count_tied = tied.model.parameters().count(),
                count_untied = untied.model.parameters().count();
  Table table{
      "the output matrix", {"", "W_vocab is", "numbers of the model", "a logit follows its embedding"}, {}};
  const Nudged moved = nudged(tape, tied, tied.states(tape)),
               unmoved = nudged(tape, untied, untied.states(tape));
  table.rows.push_back(
      {"tied", "the embeddings", fmt::format("{}", count_tied), moved.own > 0 ? "yes" : "no"});
  table.rows.push_back(
      {"untied", "its own", fmt::format("{}", count_untied), unmoved.own > 0 ? "yes" : "no"});
  report.tables.push_back(std::move(table));
  report.claim(count_untied - count_tied == V * d, "tying saves V d_model numbers",
               fmt::format("{}", count_untied - count_tied));
  report.claim(moved.own > 0 && moved.others == 0,
               "tied: changing a word's embedding moves that word's logit, for the same states",
               fmt::format("by up to {}, all others by {}", cell(moved.own), cell(moved.others)));
  report.claim(unmoved.own == 0 && unmoved.others == 0, "untied: it moves none",
               fmt::format("{}", cell(std::max(unmoved.own, unmoved.others))));

  inspect::HeatMap map;
  map.title = "P(w | y_<t, x)";
  map.row_axis = "position";
  map.column_axis = "word";
  map.cells.values.assign(P.values().begin(), P.values().end());
  for (int64_t t = 0; t < P.rows(); ++t) map.row_labels.push_back(fmt::format("{}", t + 1));
  for (int64_t w = 0; w < V; ++w) map.column_labels.push_back(fmt::format("{}", w));
  report.figure = [map](inspect::PictureFormat format, inspect::Theme theme) {
    return inspect::draw(map, format, {.theme = theme, .value_name = "probability", .high = {}});
  };
  return report;
}

}  // namespace gloss::lab
