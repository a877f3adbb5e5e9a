#include "gloss/lab/feed_forward.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "gloss/attention/multi_head.h"
#include "gloss/inspect/heat_map.h"
#include "gloss/lab/drawn.h"
#include "gloss/lab/numbers.h"
#include "gloss/models/transformer.h"
#include "gloss/nn/feed_forward.h"

namespace gloss::lab {
namespace {

using autograd::Tape;
using autograd::Var;

// The two sub-layers of an encoder layer, without their norms and residual connections.
class Sublayers {
 public:
  Sublayers(const FeedForward::Options& options, Ingredient ingredient)
      : options_(options),
        tape_(context_),
        self_(parameters_, "self_attn.", shape(options), attention::Stacking::query_key_value) {
    const RandomKey key = RandomKey(static_cast<uint64_t>(options.seed)).with("weights");
    parameters_.allocate(context_.arena);
    parameters_.initialise(key.state());
    // Removed: the rows of the sequence lie beside each other, one long row of tokens * d_model numbers.
    const int64_t width = options.d_model * (ingredient == Ingredient::kept ? 1 : options.tokens);
    W_1_ = drawn_weight(context_.arena, options.d_ff, width, key.with("W_1"));
    b_1_ = drawn(context_.arena, {options.d_ff}, key.with("b_1"));
    W_2_ = drawn_weight(context_.arena, width, options.d_ff, key.with("W_2"));
    b_2_ = drawn(context_.arena, {width}, key.with("b_2"));
  }

  Arena& arena() { return context_.arena; }
  // x [tokens, d_model] -> [tokens, d_model]
  Tensor<double> feed_forward(const Tensor<double>& x) {
    const int64_t width = W_1_.cols();
    return nn::feed_forward(tape_, Var<double>(x.reshaped({x.size() / width, width})), Var<double>(W_1_),
                            Var<double>(b_1_), Var<double>(W_2_), Var<double>(b_2_),
                            kernels::Activation::relu, 0)
        .value()
        .reshaped(x.shape());
  }
  Tensor<double> attention(const Tensor<double>& x) {
    return self_(tape_, {Var<double>(x), Offsets({0, x.rows()})}).output.value();
  }
  // max(0, x W_1^T + b_1) W_2^T + b_2 of one row, number by number.
  std::vector<double> formula(const double* x) const {
    std::vector<double> hidden, y;
    for (int64_t h = 0; h < W_1_.rows(); ++h) {
      double sum = b_1_.data()[h];
      for (int64_t j = 0; j < W_1_.cols(); ++j) sum += x[j] * W_1_(h, j);
      hidden.push_back(std::max(0.0, sum));
    }
    for (int64_t j = 0; j < W_2_.rows(); ++j) {
      double sum = b_2_.data()[j];
      for (int64_t h = 0; h < W_2_.cols(); ++h) sum += hidden[static_cast<size_t>(h)] * W_2_(j, h);
      y.push_back(sum);
    }
    return y;
  }

 private:
  static attention::MultiHeadShape shape(const FeedForward::Options& options) {
    attention::MultiHeadShape s;
    s.d_model = options.d_model;
    s.heads = options.heads;
    return s;
  }
  FeedForward::Options options_;
  Context context_{1};
  Tape<double> tape_;
  autograd::ParameterSet<double> parameters_;
  attention::MultiHeadAttention<double> self_;
  Tensor<double> W_1_, b_1_, W_2_, b_2_;
};

// Row i, column j: how far row i of what comes out moved when token j was changed.
using Moved = std::vector<double>;

template <class F>
Moved moved(const Tensor<double>& x, Arena& arena, const RandomKey& key, F layer) {
  const int64_t n = x.rows();
  const Tensor<double> before = layer(x);
  Moved result(static_cast<size_t>(n * n));
  for (int64_t j = 0; j < n; ++j) {
    const Tensor<double> changed = Tensor<double>::from(arena, x.shape(), x.values());
    for (int64_t k = 0; k < x.cols(); ++k) changed(j, k) = key.normal(static_cast<uint64_t>(k));
    const Tensor<double> after = layer(changed);
    for (int64_t i = 0; i < n; ++i) result[static_cast<size_t>(i * n + j)] = row_difference(before, after, i);
  }
  return result;
}

void shapes(Report& report, const FeedForward::Options& options) {
  Context context(1);
  const int64_t n = options.tokens;
  Table table{"rows through an encoder", {"behind", "n", "d_model"}, {}};
  bool kept = true;
  for (int64_t layers = 1; layers <= options.layers; ++layers) {
    models::TransformerConfig config = small_config(16, options.d_model, layers, options.heads);
    config.encoder.d_ff = config.decoder.d_ff = options.d_ff;
    models::Transformer<double> model(config, context.arena);
    model.parameters().initialise(static_cast<uint64_t>(options.seed));
    Tape<double> tape(context);
    const auto memory =
        model.encode(tape, drawn_sentence(RandomKey(static_cast<uint64_t>(options.seed)), n, 16));
    kept = kept && memory.rows.rows() == n && memory.rows.cols() == options.d_model;
    table.rows.push_back({fmt::format("layer {}", layers), fmt::format("{}", memory.rows.rows()),
                          fmt::format("{}", memory.rows.cols())});
  }
  report.tables.push_back(std::move(table));
  report.claim(kept, "every layer keeps n and d_model, whatever d_ff is",
               fmt::format("{} x {} behind each of {}", n, options.d_model, options.layers));
}

}  // namespace

Report FeedForward::run(const Options& options, Ingredient ingredient) {
  const int64_t n = options.tokens, j = options.changed;
  if (j >= n) throw UsageError(fmt::format("--changed names one of the tokens 0 to {}, not {}", n - 1, j));
  Report report;
  Sublayers layers(options, ingredient);
  const RandomKey key = RandomKey(static_cast<uint64_t>(options.seed)).with("rows");
  const Tensor<double> x = drawn(layers.arena(), {n, options.d_model}, key.with("x"));
  const auto feed_forward = [&](const Tensor<double>& rows) { return layers.feed_forward(rows); };
  const Moved by_layer = moved(x, layers.arena(), key.with("other"), feed_forward);
  const Moved by_attention = moved(x, layers.arena(), key.with("other"),
                                   [&](const Tensor<double>& rows) { return layers.attention(rows); });

  Table table{fmt::format("how far each row moves when token {} is changed", j),
              {"row", "feed-forward", "attention"},
              {}};
  for (int64_t i = 0; i < n; ++i) {
    const auto at = static_cast<size_t>(i * n + j);
    table.rows.push_back({fmt::format("{}", i), cell(by_layer[at]), cell(by_attention[at])});
  }
  report.tables.push_back(std::move(table));

  double own = by_layer[0], others = 0, mixed = by_attention[0];
  for (int64_t r = 0; r < n; ++r) {
    for (int64_t c = 0; c < n; ++c) {
      const auto at = static_cast<size_t>(r * n + c);
      if (r == c) own = least_of(own, by_layer[at]);
      if (r != c) others = worst_of(others, by_layer[at]);
      mixed = least_of(mixed, by_attention[at]);
    }
  }
  report.claim(own > 0 && others == 0,
               "feed-forward: a changed token moves its own row and no other, bit for bit",
               fmt::format("its own at least {}, the others at most {}", cell(own), cell(others)));
  report.claim(mixed > 0, "attention mixes: changing any token moves every row",
               fmt::format("at least {}", cell(mixed)));

  // The same weights at every place: rows in another order come out in that order.
  const Tensor<double> reversed(layers.arena(), x.shape());
  for (int64_t i = 0; i < n; ++i) std::copy_n(x.row(n - 1 - i), x.cols(), reversed.row(i));
  const Tensor<double> y = layers.feed_forward(x), y_reversed = layers.feed_forward(reversed);
  double apart = 0;
  for (int64_t i = 0; i < n; ++i)
    apart = worst_of(apart, largest_difference(y.slice_rows(i, 1), y_reversed.slice_rows(n - 1 - i, 1)));
  report.claim(apart == 0, "the weights are the same everywhere: an answer does not depend on its place",
               fmt::format("at most {} apart", cell(apart)));

  double error = 0;
  const Tensor<double> rows = ingredient == Ingredient::kept ? x : x.reshaped({1, x.size()});
  const Tensor<double> answers = y.reshaped(rows.shape());
  for (int64_t i = 0; i < rows.rows(); ++i) {
    const std::vector<double> expected = layers.formula(rows.row(i));
    for (int64_t c = 0; c < rows.cols(); ++c)
      error = worst_of(error, std::abs(answers(i, c) - expected[static_cast<size_t>(c)]));
  }
  report.claim(error < 1e-9, "it is max(0, x W_1^T + b_1) W_2^T + b_2",
               fmt::format("at most {} off", cell(error)));
  shapes(report, options);

  report.figure = [by_layer, by_attention, n](inspect::PictureFormat format, inspect::Theme theme) {
    // Each map in parts of its largest number.
    const auto cells = [](const Moved& from) {
      const double most = *std::ranges::max_element(from);
      inspect::Cells result;
      for (const double v : from) result.values.push_back(static_cast<float>(most > 0 ? v / most : 0));
      return result;
    };
    inspect::HeatMapGrid grid;
    grid.title = "Which rows move";
    for (int64_t i = 0; i < n; ++i) {
      grid.row_labels.push_back(fmt::format("{}", i));
      grid.column_labels.push_back(fmt::format("{}", i));
    }
    grid.grid_columns = {"feed-forward", "attention"};
    grid.maps = {cells(by_layer), cells(by_attention)};
    grid.row_axis = "row";
    grid.column_axis = "changed token";
    return inspect::draw(grid, format, {.theme = theme, .value_name = "moved"});
  };
  return report;
}

}  // namespace gloss::lab
