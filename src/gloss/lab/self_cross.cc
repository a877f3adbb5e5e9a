#include "gloss/lab/self_cross.h"

#include <algorithm>
#include <vector>

#include "gloss/inspect/heat_map.h"
#include "gloss/lab/drawn.h"
#include "gloss/lab/numbers.h"
#include "gloss/models/transformer.h"
#include "gloss/nn/linear.h"

namespace gloss::lab {
namespace {

using attention::Attended;
using autograd::Tape;
using autograd::Var;
using models::AttentionKind;

constexpr int64_t kVocabulary = 24;

Tensor<double> tensor_of(const Attended<double>& attended, const std::string& name) {
  for (const auto& [own, tensor] : attended.tensors) {
    if (own == name) return tensor;
  }
  fail("attention returned no tensor {}", name);
}

// One module, over X alone and with the queries of Y.
void one_module(Report& report, const SelfCross::Options& options, Ingredient ingredient) {
  Context context(1);
  Tape<double> tape(context);
  const RandomKey key = RandomKey(static_cast<uint64_t>(options.seed)).with("module");
  autograd::ParameterSet<double> parameters;
  attention::MultiHeadShape shape;
  shape.d_model = options.d_model;
  shape.heads = options.heads;
  const attention::MultiHeadAttention<double> module(parameters, "", shape, attention::Stacking::none);
  parameters.allocate(context.arena);
  parameters.initialise(key.state());
  const int64_t n_k = options.source, n_q = options.target;
  const Tensor<double> X = drawn(context.arena, {n_k, options.d_model}, key.with("X")),
                       Y = drawn(context.arena, {n_q, options.d_model}, key.with("Y"));
  const Ragged<Var<double>> x{Var<double>(X), Offsets({0, n_k})}, y{Var<double>(Y), Offsets({0, n_q})};
  const attention::Request request{true, true, true};
  const Attended<double> self = module(tape, x, {}, 0, request);
  const Attended<double> cross = module(tape, y, ingredient == Ingredient::kept ? x : y, {}, 0, request);

  Table table{"one module: shapes", {"", "q", "k", "v", "weights of a head", "output"}, {}};
  const auto line = [&](const char* name, const Attended<double>& attended) {
    std::vector<std::string> row{name};
    for (const char* tensor : {"q", "k", "v"}) row.push_back(tensor_of(attended, tensor).shape().text());
    const int64_t queries = tensor_of(attended, "q").rows(), keys = tensor_of(attended, "k").rows();
    row.push_back(fmt::format("[{}, {}]", queries, keys));
    row.push_back(attended.output.shape().text());
    table.rows.push_back(std::move(row));
  };
  line("self-attention of X", self);
  line("cross-attention of Y to X", cross);
  report.tables.push_back(std::move(table));

  const auto off = [&](const Attended<double>& attended, const char* name, const Tensor<double>& from) {
    const std::string prefix = std::string(name) + "_proj.";
    const Var<double> expected =
        nn::linear(tape, Var<double>(from), Var<double>(part_named(parameters, prefix + "weight")),
                   Var<double>(part_named(parameters, prefix + "bias")));
    return largest_difference(tensor_of(attended, name), expected.value());
  };
  const double self_off = std::max({off(self, "q", X), off(self, "k", X), off(self, "v", X)});
  const double cross_off = std::max({off(cross, "q", Y), off(cross, "k", X), off(cross, "v", X)});
  report.claim(self_off == 0, "self-attention: Q = X W_Q, K = X W_K, V = X W_V, all of one sequence",
               fmt::format("at most {} off", cell(self_off)));
  report.claim(cross_off == 0,
               "cross-attention: Q = Y W_Q of the target, K = X W_K and V = X W_V of the source",
               fmt::format("at most {} off", cell(cross_off)));
  const auto weights = cross.weights.value().values();
  const int64_t keys = tensor_of(cross, "k").rows();
  const double worst = row_sums_off(weights, static_cast<size_t>(keys));
  report.claim(static_cast<int64_t>(weights.size()) == options.heads * n_q * n_k && worst < 1e-12,
               fmt::format("n_q and n_k need not be equal: {} queries over {} keys, rows sum to 1", n_q, n_k),
               fmt::format("{} weights a head", static_cast<int64_t>(weights.size()) / options.heads));
}

// A Transformer's decoder over the encoder's last output.
struct Pass {
  Tensor<double> memory;  // the encoder's last output, over the source
  models::AttentionRecord<double> record;
};
Pass pass(const models::Transformer<double>& model, Context& context, const Tokens& source,
          const Tokens& target, Ingredient ingredient) {
  Tape<double> tape(context);
  const auto memory = model.encode(tape, source);
  Pass result{memory.rows.value(), {}};
  result.record.request = {{AttentionKind::cross}, {}, true};
  const Tokens input = model.decoder_input(target);
  model.decode(tape, input, ingredient == Ingredient::kept ? memory : model.encode(tape, input),
               &result.record);
  return result;
}

void every_layer(Report& report, const SelfCross::Options& options, Ingredient ingredient) {
  Context context(1);
  models::Transformer<double> model(small_config(kVocabulary, options.d_model, options.layers, options.heads),
                                    context.arena);
  const RandomKey key = RandomKey(static_cast<uint64_t>(options.seed)).with("model");
  model.parameters().initialise(key.state());
  const Tokens source = drawn_sentence(key.with("source"), options.source, kVocabulary),
               target = drawn_sentence(key.with("target"), options.target, kVocabulary);
  Tokens other_source = source, other_target = target;
  // Not the last words: </s> stays, and the last target word is never read.
  other_source.rows[0] = other_word(source.rows[0], kVocabulary);
  other_target.rows[0] = other_word(target.rows[0], kVocabulary);
  const Pass seen = pass(model, context, source, target, ingredient),
             with_source = pass(model, context, other_source, target, ingredient),
             with_target = pass(model, context, source, other_target, ingredient);

  Tape<double> tape(context);
  Table table{"every layer: off the encoder's last output M times its own weights; off layer 0",
              {"layer", "K - M W_K", "V - M W_V", "W_K - W_K of 0", "W_V - W_V of 0"},
              {}};
  double off = 0, alike = std::numeric_limits<double>::infinity();
  const auto weight = [&](int64_t layer, const char* name) {
    const std::string prefix = fmt::format("model.decoder.layers.{}.encoder_attn.{}_proj.", layer, name);
    return std::pair{part_named(model.parameters(), prefix + "weight"),
                     part_named(model.parameters(), prefix + "bias")};
  };
  for (int64_t layer = 0; layer < options.layers; ++layer) {
    const Attended<double>& attended = seen.record.entries[static_cast<size_t>(layer)].attended;
    std::vector<std::string> row{fmt::format("{}", layer)}, apart;
    for (const char* name : {"k", "v"}) {
      const auto [W, b] = weight(layer, name);
      const Var<double> expected = nn::linear(tape, Var<double>(seen.memory), Var<double>(W), Var<double>(b));
      const double own = largest_difference(tensor_of(attended, name), expected.value());
      const double from_first = largest_difference(W, weight(0, name).first);
      off = std::max(off, own);
      if (layer > 0) alike = std::min(alike, from_first);
      row.push_back(cell(own));
      apart.push_back(cell(from_first));
    }
    row.insert(row.end(), apart.begin(), apart.end());
    table.rows.push_back(std::move(row));
  }
  report.tables.push_back(std::move(table));
  report.claim(off < 1e-12, "every decoder layer projects the encoder's last output M: K = M W_K, V = M W_V",
               fmt::format("at most {} off", cell(off)));
  report.claim(alike > 0, "with a W_K and a W_V of its own", fmt::format("at least {} apart", cell(alike)));

  const auto moved = [&](const Pass& other, const char* name) {
    return largest_difference(tensor_of(seen.record.entries[0].attended, name),
                              tensor_of(other.record.entries[0].attended, name));
  };
  const double k_by_source = moved(with_source, "k"), q_by_source = moved(with_source, "q"),
               k_by_target = moved(with_target, "k"), q_by_target = moved(with_target, "q");
  report.claim(k_by_source > 0 && q_by_source == 0,
               "another source word moves keys and leaves the first layer's queries as they are",
               fmt::format("{} and {}", cell(k_by_source), cell(q_by_source)));
  report.claim(q_by_target > 0 && k_by_target == 0, "another target word moves queries and no key",
               fmt::format("{} and {}", cell(q_by_target), cell(k_by_target)));

  inspect::HeatMapGrid grid;
  grid.title = "Cross-attention";
  const Attended<double>& first = seen.record.entries[0].attended;
  const int64_t rows = tensor_of(first, "q").rows(), columns = tensor_of(first, "k").rows();
  for (int64_t t = 0; t < rows; ++t) grid.row_labels.push_back(fmt::format("y{}", t));
  for (int64_t s = 0; s < columns; ++s) grid.column_labels.push_back(fmt::format("x{}", s + 1));
  grid.grid_rows.clear();
  grid.grid_columns.clear();
  for (int64_t head = 0; head < options.heads; ++head)
    grid.grid_columns.push_back(fmt::format("head {}", head));
  for (int64_t layer = 0; layer < options.layers; ++layer) {
    grid.grid_rows.push_back(fmt::format("layer {}", layer));
    const auto weights = seen.record.entries[static_cast<size_t>(layer)].attended.weights.value().values();
    for (int64_t head = 0; head < options.heads; ++head) {
      const auto map =
          weights.subspan(static_cast<size_t>(head * rows * columns), static_cast<size_t>(rows * columns));
      grid.maps.push_back({{map.begin(), map.end()}});
    }
  }
  report.figure = [grid](inspect::PictureFormat format, inspect::Theme theme) {
    return inspect::draw(grid, format, {.theme = theme, .high = {}});
  };
}

}  // namespace

Report SelfCross::run(const Options& options, Ingredient ingredient) {
  Report report;
  one_module(report, options, ingredient);
  every_layer(report, options, ingredient);
  return report;
}

}  // namespace gloss::lab
