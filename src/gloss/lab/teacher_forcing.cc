#include "gloss/lab/teacher_forcing.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "gloss/inspect/heat_map.h"
#include "gloss/lab/drawn.h"
#include "gloss/lab/numbers.h"
#include "gloss/models/transformer.h"

namespace gloss::lab {
namespace {

using autograd::Tape;
using models::AttentionKind;

constexpr std::array<const char*, 12> kWords{"</s>", "<s>",  "the",   "a",     "cat",   "dog",
                                             "bird", "sees", "hears", "small", "black", "now"};
constexpr auto kVocabulary = static_cast<int64_t>(kWords.size());

const char* word(int32_t id) {
  return kWords.at(static_cast<size_t>(id));
}

class Experiment {
 public:
  Experiment(const TeacherForcing::Options& options, Ingredient ingredient)
      : ingredient_(ingredient),
        model_(small_config(kVocabulary, options.d_model, options.layers, options.heads), context_.arena) {
    const RandomKey key(static_cast<uint64_t>(options.seed));
    model_.parameters().initialise(key.state());
    source_ = drawn_sentence(key.with("source"), options.source, kVocabulary);
    expected_ = drawn_sentence(key.with("target"), options.target, kVocabulary);
  }

  const Tokens& expected() const { return expected_; }
  // What the decoder reads so as to produce `expected`.
  Tokens input(const Tokens& expected) const {
    return ingredient_ == Ingredient::kept ? model_.decoder_input(expected) : expected;
  }
  // All positions in one masked pass: logits [tokens, V].
  Tensor<double> in_one_pass(const Tokens& expected, models::AttentionRecord<double>* record = nullptr) {
    Tape<double> tape(context_);
    const auto states = model_.decode(tape, input(expected), model_.encode(tape, source_), record);
    return model_.logits(tape, states.rows).value();
  }
  // One token at a time, as a translation is made: the start symbol, then each token once it is there.
  Tensor<double> step_by_step(const Tokens& expected) {
    Tape<double> tape(context_);
    attention::KvCache<double> cache(context_.arena, model_.config().decoder.layers, model_.cache_widths(),
                                     model_.cache_widths());
    cache.open(0);
    const std::array<int, 1> slots{0};
    model_.remember(tape, model_.encode(tape, source_), slots, cache);
    const Tensor<double> logits(context_.arena, {expected.offsets.total(), kVocabulary});
    int32_t token = model_.config().symbols.start;
    for (int64_t t = 0; t < logits.rows(); ++t) {
      const std::array<attention::KvCache<double>::Extension, 1> rows{{{0, 0}}};
      cache.begin_step(rows);
      const std::array<int32_t, 1> ids{token};
      const Tensor<double> row = model_.logits(tape, model_.step(tape, ids, cache)).value();
      std::copy_n(row.data(), kVocabulary, logits.row(t));
      token = expected.rows[static_cast<size_t>(t)];
    }
    return logits;
  }
  // log P(y_t | y_<t, x), as the library scores translations.
  std::vector<double> log_probabilities(const Tokens& expected) {
    Tape<double> tape(context_);
    return model_.log_probabilities(tape, source_, expected);
  }

 private:
  Ingredient ingredient_;
  Context context_{1};
  models::Transformer<double> model_;
  Tokens source_, expected_;
};

double log_softmax(const Tensor<double>& logits, int64_t row, int32_t id) {
  const double most = *std::ranges::max_element(logits.slice_rows(row, 1).values());
  double sum = 0;
  for (int64_t v = 0; v < logits.cols(); ++v) sum += std::exp(logits(row, v) - most);
  return logits(row, id) - most - std::log(sum);
}

void three_rows(Report& report, const Tokens& expected, const Tokens& input) {
  const auto n = static_cast<int64_t>(expected.rows.size());
  Table table{"the target, what the decoder reads, what it must produce", {"t"}, {}};
  std::vector<std::string> target{"target"}, read{"decoder input"}, produced{"expected output"};
  bool shifted = input.rows[0] == 1;
  for (int64_t t = 0; t < n; ++t) {
    const auto at = static_cast<size_t>(t);
    table.columns.push_back(fmt::format("{}", t + 1));
    target.emplace_back(t + 1 < n ? word(expected.rows[at]) : "");
    read.emplace_back(word(input.rows[at]));
    produced.emplace_back(word(expected.rows[at]));
    if (t > 0) shifted = shifted && input.rows[at] == expected.rows[at - 1];
  }
  table.rows = {target, read, produced};
  report.tables.push_back(std::move(table));
  report.claim(shifted && expected.rows.back() == 0,
               "the input is <s> and the target, the expected output the target and </s>: one token apart",
               fmt::format("{} tokens each", n));
}

}  // namespace

Report TeacherForcing::run(const Options& options, Ingredient ingredient) {
  Report report;
  Experiment experiment(options, ingredient);
  const Tokens& expected = experiment.expected();
  const Tokens input = experiment.input(expected);
  three_rows(report, expected, input);

  models::AttentionRecord<double> record;
  record.request = {{AttentionKind::decoder}, options.layers - 1, false};
  const Tensor<double> parallel = experiment.in_one_pass(expected, &record);
  const Tensor<double> stepwise = experiment.step_by_step(expected);
  const std::vector<double> scored = experiment.log_probabilities(expected);
  Table table{"log P(y_t | y_<t, x)", {"t", "y_t", "one pass", "step by step", "apart"}, {}};
  double sum = 0, sum_stepwise = 0, worst_score = 0;
  for (int64_t t = 0; t < parallel.rows(); ++t) {
    const int32_t y = expected.rows[static_cast<size_t>(t)];
    const double a = log_softmax(parallel, t, y), b = log_softmax(stepwise, t, y);
    sum += a;
    sum_stepwise += b;
    worst_score = worst_of(worst_score, std::abs(scored[static_cast<size_t>(t)] - b));
    table.rows.push_back({fmt::format("{}", t + 1), word(y), cell(a), cell(b), cell(std::abs(a - b))});
  }
  table.rows.push_back({"sum", "", cell(sum), cell(sum_stepwise), cell(std::abs(sum - sum_stepwise))});
  report.tables.push_back(std::move(table));
  const double apart = largest_difference(parallel, stepwise);
  report.claim(apart < 1e-9, "all logits of the one masked pass are those of decoding step by step",
               fmt::format("at most {} apart", cell(apart)));
  report.claim(worst_score < 1e-9,
               "so a translation is scored in one pass: the library's log P is the stepwise one",
               fmt::format("at most {} apart", cell(worst_score)));

  // Row t may depend on y_1 .. y_{t-1}, and on nothing from y_t on.
  double early = 0, late = std::numeric_limits<double>::infinity();
  for (int64_t t = 0; t < parallel.rows(); ++t) {
    Tokens other = expected;
    int32_t& y = other.rows[static_cast<size_t>(t)];
    y = other_word(y, kVocabulary);
    const Tensor<double> logits = experiment.in_one_pass(other);
    for (int64_t row = 0; row < parallel.rows(); ++row) {
      const double moved = row_difference(parallel, logits, row);
      if (row <= t) early = std::max(early, moved);
      if (row > t) late = std::min(late, moved);
    }
  }
  report.claim(early == 0,
               "no position sees the token it must produce or a later one: another y_t leaves rows up to t "
               "as they are",
               fmt::format("moved by {}", cell(early)));
  report.claim(late > 0, "every later row has read it", fmt::format("moved by {} and more", cell(late)));

  inspect::HeatMap map;
  map.title = "Teacher forcing";
  map.row_axis = "expected output";
  map.column_axis = "decoder input";
  const attention::Attended<double>& attended = record.entries[0].attended;
  const int64_t n = parallel.rows();
  for (int64_t t = 0; t < n; ++t) {
    map.row_labels.emplace_back(word(expected.rows[static_cast<size_t>(t)]));
    map.column_labels.emplace_back(word(input.rows[static_cast<size_t>(t)]));
    for (int64_t s = 0; s < n; ++s) {
      double mean = 0;
      for (int64_t head = 0; head < options.heads; ++head)
        mean += attended.weights.value().data()[(head * n + t) * n + s] / static_cast<double>(options.heads);
      map.cells.values.push_back(static_cast<float>(mean));
      map.cells.hidden.push_back(std::isinf(attended.scores.data()[t * n + s]) ? 1 : 0);
    }
  }
  report.figure = [map](inspect::PictureFormat format, inspect::Theme theme) {
    return inspect::draw(map, format, {.theme = theme});
  };
  return report;
}

}  // namespace gloss::lab
