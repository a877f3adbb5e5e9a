#include "gloss/lab/multi_head.h"

#include <cmath>

#include "gloss/attention/multi_head.h"
#include "gloss/inspect/heat_map.h"
#include "gloss/lab/drawn.h"
#include "gloss/lab/numbers.h"
#include "gloss/lab/two_relations.h"
#include "gloss/nn/linear.h"

namespace gloss::lab {
namespace {

using autograd::Tape;
using autograd::Var;

constexpr int64_t kPlaces = 6;

// One layer and what it makes of rows [batch n, d_model].
struct Layer {
  explicit Layer(const MultiHead::Options& options)
      : context(1),
        tape(context),
        attention(parameters, "", {.d_model = options.d_model, .heads = options.heads},
                  attention::Stacking::query_key_value) {
    parameters.allocate(context.arena);
    parameters.initialise(static_cast<uint64_t>(options.seed));
  }
  attention::Attended<double> operator()(const Tensor<double>& x, int64_t n) {
    const std::vector<int64_t> lengths(static_cast<size_t>(x.rows() / n), n);
    const Offsets offsets = Offsets::of_lengths(lengths);
    return attention(tape, {Var<double>(x), offsets}, {}, 0,
                     {.scores = true, .weights = true, .tensors = true});
  }

  Context context;
  Tape<double> tape;
  autograd::ParameterSet<double> parameters;
  attention::MultiHeadAttention<double> attention;
};

std::vector<double> values_of(const Tensor<double>& x) {
  return {x.data(), x.data() + x.size()};
}

// The scores before the division, and the heads after it, from Q, K, V and A: head by head, sentence by
// sentence.
struct Steps {
  std::vector<double> products, weights;  // [batch, heads, n, n]
  std::vector<double> concat;             // [batch n, heads d_v]
};
Steps written_down(const attention::Attended<double>& seen, int64_t n, int64_t heads) {
  const Tensor<double>&q = seen.tensors[0].second, &k = seen.tensors[1].second, &v = seen.tensors[2].second;
  const int64_t d = q.cols() / heads, batch = q.rows() / n;
  Steps steps;
  steps.concat.resize(static_cast<size_t>(v.size()));
  for (int64_t b = 0; b < batch; ++b) {
    for (int64_t head = 0; head < heads; ++head) {
      const auto of_head = [&](const Tensor<double>& x, int64_t i) {
        return row_of(x, b * n + i).subspan(static_cast<size_t>(head * d), static_cast<size_t>(d));
      };
      for (int64_t i = 0; i < n; ++i) {
        std::vector<double> scaled;
        for (int64_t j = 0; j < n; ++j) {
          steps.products.push_back(dot(of_head(q, i), of_head(k, j)));
          scaled.push_back(steps.products.back() / std::sqrt(static_cast<double>(d)));
        }
        const std::vector<double> a = softmax(scaled);
        steps.weights.insert(steps.weights.end(), a.begin(), a.end());
        for (int64_t c = 0; c < d; ++c) {
          double& sum = steps.concat[static_cast<size_t>((b * n + i) * v.cols() + head * d + c)];
          for (int64_t j = 0; j < n; ++j)
            sum += a[static_cast<size_t>(j)] * of_head(v, j)[static_cast<size_t>(c)];
        }
      }
    }
  }
  return steps;
}

void show_shapes(Report& report, const MultiHead::Options& options) {
  const int64_t n = options.n, b = options.batch, h = options.heads, d_model = options.d_model,
                d_k = d_model / h;
  Layer layer(options);
  const Tensor<double> x =
      drawn(layer.context.arena, {b * n, d_model}, RandomKey(static_cast<uint64_t>(options.seed)).with("x"));
  const auto all = layer(x, n), one = layer(x.slice_rows(0, n), n);
  const Steps steps = written_down(all, n, h);

  Table table{fmt::format("d_model = {}, h = {}, d_k = d_v = d_model / h = {}", d_model, h, d_k),
              {"matrix", "is", "one sentence", fmt::format("a batch of {}", b)},
              {}};
  bool sizes = true;
  // `shape` of one sentence; how many numbers there are of it and of the batch.
  const auto row = [&](const char* name, const char* is, const Shape& shape, int64_t of_one, int64_t of_all) {
    std::string whole = shape.text();
    whole.insert(1, fmt::format("{}, ", b));
    table.rows.push_back({name, is, shape.text(), whole});
    sizes = sizes && of_one == shape.size() && of_all == b * shape.size();
  };
  const auto tensor = [](const attention::Attended<double>& of, size_t i) {
    return of.tensors[i].second.size();
  };
  row("X", "tokens as rows", {n, d_model}, n * x.cols(), x.size());
  row("Q", "X W^Q", {n, h * d_k}, tensor(one, 0), tensor(all, 0));
  row("K", "X W^K", {n, h * d_k}, tensor(one, 1), tensor(all, 1));
  row("V", "X W^V", {n, h * d_k}, tensor(one, 2), tensor(all, 2));
  row("S", "Q_i K_i^T, head by head", {h, n, n}, written_down(one, n, h).products.size(),
      steps.products.size());
  row("S scaled", "S / sqrt(d_k)", {h, n, n}, one.scores.size(), all.scores.size());
  row("A", "softmax over keys", {h, n, n}, one.weights.value().size(), all.weights.value().size());
  row("head_i", "A_i V_i", {n, d_k}, tensor(one, 3) / h, tensor(all, 3) / h);
  row("concat", "head_1 ... head_h", {n, h * d_k}, tensor(one, 3), tensor(all, 3));
  row("output", "concat W^O", {n, d_model}, one.output.value().size(), all.output.value().size());
  report.tables.push_back(std::move(table));
  report.claim(sizes, "every matrix has these shapes; a batch is rows of all sentences, one after another",
               fmt::format("{} rows", x.rows()));

  std::vector<double> scaled = values_of(all.scores);
  for (double& score : scaled) score *= std::sqrt(static_cast<double>(d_k));
  const double off = std::max({largest_difference(scaled, steps.products),
                               largest_difference(all.weights.value().values(), steps.weights),
                               largest_difference(all.tensors[3].second.values(), steps.concat)});
  report.claim(off < 1e-12 * static_cast<double>(d_model),
               "head_i = Attention(Q_i, K_i, V_i), each head in its own columns",
               fmt::format("at most {} off", cell(off)));
  Tensor<double> W_o;
  layer.parameters.each_part([&](const std::string& name, const Tensor<double>& value) {
    if (name == "out_proj.weight") W_o = value;  // the biases start as zeros
  });
  const Tensor<double> output =
      nn::linear<double>(layer.tape, Var<double>(all.tensors[3].second), Var<double>(W_o), {}).value();
  const double output_off = largest_difference(output.values(), all.output.value().values());
  report.claim(output_off < 1e-12, "the output is Concat(head_1, ..., head_h) W^O",
               fmt::format("at most {} off", cell(output_off)));
  bool alone = true;
  for (int64_t i = 0; i < b; ++i)
    alone = alone && same_bits(layer(x.slice_rows(i * n, n), n).output.value().values(),
                               all.output.value().slice_rows(i * n, n).values());
  report.claim(alone, "a batch gives each sentence what it gets alone, bit for bit",
               fmt::format("{} sentences", b));
}

}  // namespace

Report MultiHead::run(const Options& options, Ingredient ingredient) {
  if (options.d_model % options.heads != 0)
    throw UsageError(
        fmt::format("--d-model {} is not divisible by --heads {}", options.d_model, options.heads));
  Report report;
  show_shapes(report, options);

  TwoRelations task{
      .places = kPlaces, .updates = options.updates, .seed = static_cast<uint64_t>(options.seed)};
  task.heads = ingredient == Ingredient::kept ? 2 : 1;
  const LearnedRelations two = learn(task);
  TwoRelations alone = task;
  alone.heads = 1;
  alone.d_v = 2 * task.d_v;  // as wide as two heads, so that it does not fail for want of room
  const LearnedRelations one = learn(alone);
  report.tables.push_back(
      {fmt::format("trained to say what the places before and behind hold; {} updates", options.updates),
       {"heads", "d_k", "d_v", "squared error (answering 0: 1)"},
       {{fmt::format("{}", task.heads), fmt::format("{}", task.d_k), fmt::format("{}", task.d_v),
         cell(two.error)},
        {"1", fmt::format("{}", alone.d_k), fmt::format("{}", alone.d_v), cell(one.error)}}});
  report.claim(two.error < 0.05, "two heads learn both relations", fmt::format("error {}", cell(two.error)));
  // One head of weights w sees u = sum_j w_j x_j; of a and b in it, the best guesses from u leave
  // 1 - w_a^2 / |w|^2 and 1 - w_b^2 / |w|^2, together at least 1 of 2. The mean over 12288 numbers of the
  // test, squares of deviation sqrt(2) / 2 and in 1536 independent groups, is off by 0.02 at most.
  report.claim(one.error > 0.45, "one head of the same d_k cannot: mixed in one sum, at least half is lost",
               fmt::format("error {}", cell(one.error)));

  report.figure = [two, one](inspect::PictureFormat format, inspect::Theme theme) {
    inspect::HeatMapGrid grid;
    grid.title = "Two relations";
    grid.row_labels = numbered(kPlaces);
    grid.column_labels = grid.row_labels;
    grid.row_axis = "query";
    grid.column_axis = "key";
    grid.grid_columns.clear();
    constexpr auto kSize = static_cast<size_t>(kPlaces * kPlaces);
    const size_t heads = two.weights.size() / kSize;
    for (size_t head = 0; head < heads; ++head) {
      grid.grid_columns.push_back(fmt::format("head {} of {}", head + 1, heads));
      grid.maps.push_back({floats(std::span(two.weights).subspan(head * kSize, kSize))});
    }
    grid.grid_columns.push_back("alone");
    grid.maps.push_back({floats(one.weights)});
    return inspect::draw(grid, format, {.theme = theme, .value_name = "weight"});
  };
  return report;
}

}  // namespace gloss::lab
