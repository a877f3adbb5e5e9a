#include "gloss/models/rnn_search.h"

#include <cmath>
#include <numeric>

#include "gloss/models/alignment_guide.h"
#include "gloss/models/teacher_forcing.h"
#include "gloss/nn/add_norm.h"
#include "gloss/nn/embedding.h"
#include "gloss/nn/linear.h"
#include "gloss/nn/maxout.h"
#include "gloss/nn/rows.h"

namespace gloss::models {

using attention::RowsOfSource;
using autograd::Init;
using autograd::Tape;
using autograd::Var;
using kernels::Activation;

namespace {

// The tokens of a batch in the order in which a recurrence reads them: all first tokens, all second ones...
struct TimeSteps {
  explicit TimeSteps(const Offsets& offsets) : place(static_cast<size_t>(offsets.total())) {
    for (int64_t t = 0; t < offsets.longest(); ++t) {
      begins.push_back(static_cast<int64_t>(token.size()));
      for (int64_t i = 0; i < offsets.count(); ++i) {
        if (offsets.length(i) <= t) continue;
        place[static_cast<size_t>(offsets.begin(i) + t)] = static_cast<int64_t>(token.size());
        token.push_back(offsets.begin(i) + t);
        sequence.push_back(i);
      }
    }
    begins.push_back(static_cast<int64_t>(token.size()));
  }
  int64_t count() const { return static_cast<int64_t>(begins.size()) - 1; }
  // Sequences that have a token t, ascending.
  std::span<const int64_t> live(int64_t t) const {
    const auto first = static_cast<size_t>(begins[static_cast<size_t>(t)]);
    return std::span(sequence).subspan(first,
                                       static_cast<size_t>(begins[static_cast<size_t>(t) + 1]) - first);
  }

  std::vector<int64_t> begins;           // of each step, and the end
  std::vector<int64_t> token, sequence;  // of each place in time
  std::vector<int64_t> place;            // of each token
};

// For each live sequence of step t its row among those of step t - 1, or its number before the first.
std::vector<int64_t> rows_before(const TimeSteps& steps, int64_t t) {
  const auto live = steps.live(t);
  if (t == 0) return {live.begin(), live.end()};
  const auto before = steps.live(t - 1);
  std::vector<int64_t> rows;
  for (size_t i = 0; i < before.size() && rows.size() < live.size(); ++i) {
    if (before[i] == live[rows.size()]) rows.push_back(static_cast<int64_t>(i));
  }
  return rows;
}

Offsets one_query_each(std::span<const int64_t> live, int64_t sequences) {
  std::vector<int64_t> lengths(static_cast<size_t>(sequences), 0);
  for (const int64_t i : live) lengths[static_cast<size_t>(i)] = 1;
  return Offsets::of_lengths(lengths);
}

// The weights of all steps, put together sentence after sentence.
template <class T>
class WeightRecord {
 public:
  WeightRecord(const Offsets& targets, const Offsets& sources, Arena& arena)
      : targets_(targets), sources_(sources) {
    offsets_.push_back(0);
    for (int64_t i = 0; i < targets.count(); ++i)
      offsets_.push_back(offsets_.back() + targets.length(i) * sources.length(i));
    weights_ = Tensor<T>(arena, {offsets_.back()});
    scores_ = Tensor<T>(arena, {offsets_.back()});
  }
  void add(int64_t t, std::span<const int64_t> live, const attention::AdditiveAttended<T>& attended) {
    Step step{attended.weights.place(), {}};
    for (const int64_t i : live) {
      const int64_t n = sources_.length(i), from = attended.offsets[static_cast<size_t>(i)];
      const int64_t to = offsets_[static_cast<size_t>(i)] + t * n;
      std::copy_n(attended.weights.value().data() + from, n, weights_.data() + to);
      std::copy_n(attended.scores.data() + from, n, scores_.data() + to);
      step.rows.push_back({from, to, n});
    }
    steps_.push_back(std::move(step));
  }
  attention::Attended<T> take(Tape<T>& tape, Var<T> context) {
    attention::Attended<T> attended;
    attended.output = std::move(context);
    // A guided model passes gradients back to the weights of each step. They want them in every step or in
    // none, so that the first answers for all.
    attended.weights = tape.record(weights_, {&steps_.front().weights}, [&] {
      return [steps = std::move(steps_)](Tape<T>& t, const Tensor<T>& dweights) {
        for (const Step& step : steps) {
          const autograd::Slot<T> slot = t.slot(step.weights);
          if (slot.accumulate == kernels::Accumulate::no) slot.tensor.fill(0);
          for (const Row& row : step.rows) {
            for (int64_t j = 0; j < row.n; ++j)
              slot.tensor.data()[row.from + j] += dweights.data()[row.to + j];
          }
        }
      };
    });
    attended.scores = scores_;
    attended.offsets = std::move(offsets_);
    return attended;
  }

 private:
  struct Row {
    int64_t from, to, n;  // in a step's weights, in all, how many
  };
  struct Step {
    Var<T> weights;  // their place
    std::vector<Row> rows;
  };
  const Offsets &targets_, &sources_;
  std::vector<int64_t> offsets_;
  std::vector<Step> steps_;
  Tensor<T> weights_, scores_;
};

}  // namespace

template <class T>
RnnSearch<T>::RnnSearch(const RnnSearchConfig& config, Arena& arena, autograd::Holding holding)
    : config_(config) {
  validate(config);
  const int64_t e = config.embedding, h = config.hidden, l = config.maxout;
  const auto table = [&](const char* name, int64_t rows, int64_t width) {
    return &parameters_.matrix(name, rows, width, Init::normal(1 / std::sqrt(static_cast<double>(width))));
  };
  if (config.share_embeddings) {
    source_table_ = target_table_ = table("model.shared.weight", config.target_vocabulary, e);
  } else {
    source_table_ = table("model.encoder.embed_tokens.weight", config.source_vocabulary, e);
    target_table_ = table("model.decoder.embed_tokens.weight", config.target_vocabulary, e);
  }
  output_ = config.tie_output ? target_table_ : table("lm_head.weight", config.target_vocabulary, l);
  output_bias_ = &parameters_.vector("final_logits_bias", config.target_vocabulary, Init::zeros());

  const auto gru = [&](std::optional<nn::Gru<T>>& unit, const char* name, int64_t d_in) {
    nn::GruShape shape;
    shape.d_in = d_in;
    shape.d_h = h;
    shape.reset = config.reset_gate;
    shape.layer_norm = config.layer_norm;
    unit.emplace(parameters_, name, shape);
  };
  gru(encoder_forward_, "model.encoder.forward.", e);
  gru(encoder_backward_, "model.encoder.backward.", e);
  W_s_ = &parameters_.matrix("model.decoder.W_s.weight", h, h, Init::xavier(h, h));
  b_s_ = &parameters_.vector("model.decoder.W_s.bias", h, Init::zeros());
  if (conditional()) {
    gru(decoder_first_, "model.decoder.first.", e);
    gru(decoder_second_, "model.decoder.second.", 2 * h);
  } else {
    gru(decoder_second_, "model.decoder.only.", e + 2 * h);
  }
  attention_.emplace(parameters_, "model.decoder.attention.", h, 2 * h, config.attention);
  readout_ = &parameters_.matrix("model.decoder.readout.weight", 2 * l, h + e + 2 * h,
                                 Init::xavier(2 * l, h + e + 2 * h));
  readout_bias_ = &parameters_.vector("model.decoder.readout.bias", 2 * l, Init::zeros());
  parameters_.allocate(arena, holding);
}

template <class T>
typename RnnSearch<T>::Memory RnnSearch<T>::encode(Tape<T>& tape, const Tokens& source) const {
  const Var<T> x = nn::embed(tape, tape.use(*source_table_), std::span<const int32_t>(source.rows), 1, {},
                             config_.dropout);
  const Rows states = nn::bidirectional(tape, *encoder_forward_, *encoder_backward_, {x, source.offsets});
  Memory memory;
  memory.s_0 = nn::linear(tape, nn::last_states(tape, states, config_.hidden, nn::Direction::backward),
                          tape.use(*W_s_), tape.use(*b_s_), Activation::tanh);
  memory.h = {nn::dropout(tape, states.rows, config_.context_dropout), source.offsets};
  memory.keys = attention_->project_memory(tape, memory.h.rows);
  return memory;
}

template <class T>
typename RnnSearch<T>::Weights RnnSearch<T>::weights(Tape<T>& tape) const {
  Weights weights;
  if (conditional()) weights.first = decoder_first_->weights(tape);
  weights.second = decoder_second_->weights(tape);
  return weights;
}

template <class T>
template <class Attend>
typename RnnSearch<T>::Transited RnnSearch<T>::transit(Tape<T>& tape, const Weights& weights, const Var<T>& y,
                                                       const Var<T>& gates, const Var<T>& s_prev,
                                                       Attend attend) const {
  Transited result;
  result.query = conditional() ? decoder_first_->step(tape, gates, s_prev, weights.first) : s_prev;
  result.context = attend(result.query);
  const Var<T> input = conditional() ? result.context : nn::concat_columns(tape, y, result.context);
  result.s =
      decoder_second_->step(tape, decoder_second_->input_gates(tape, input), result.query, weights.second);
  return result;
}

template <class T>
Var<T> RnnSearch<T>::deep_output(Tape<T>& tape, const Var<T>& s, const Var<T>& y, const Var<T>& c) const {
  const Var<T> all = nn::concat_columns(tape, nn::concat_columns(tape, s, y), c);
  return nn::maxout(tape, nn::linear(tape, all, tape.use(*readout_), tape.use(*readout_bias_)));
}

template <class T>
typename RnnSearch<T>::Rows RnnSearch<T>::decode(Tape<T>& tape, const Tokens& input, const Memory& memory,
                                                 AttentionRecord<T>* record) const {
  const int64_t sequences = input.offsets.count();
  require(sequences == memory.h.offsets.count(), "{} target sequences for {} source sequences", sequences,
          memory.h.offsets.count());
  require(input.offsets.total() > 0, "there are no target tokens to decode");
  const TimeSteps steps(input.offsets);
  std::vector<int32_t> ids;
  for (const int64_t token : steps.token) ids.push_back(input.rows[static_cast<size_t>(token)]);
  const Var<T> y =
      nn::embed(tape, tape.use(*target_table_), std::span<const int32_t>(ids), 1, {}, config_.dropout);
  const Var<T> gates = conditional() ? decoder_first_->input_gates(tape, y) : Var<T>();
  const Weights own = weights(tape);

  const bool recorded = record && record->request.wants(AttentionKind::cross, 0);
  std::optional<WeightRecord<T>> filed;
  if (recorded) filed.emplace(input.offsets, memory.h.offsets, tape.context().arena);
  std::vector<Var<T>> states, queries, contexts;
  Var<T> s = memory.s_0;
  for (int64_t t = 0; t < steps.count(); ++t) {
    const auto live = steps.live(t);
    std::vector<int64_t> now(live.size());
    std::iota(now.begin(), now.end(), steps.begins[static_cast<size_t>(t)]);
    const std::vector<int64_t> before = rows_before(steps, t);
    const bool all = static_cast<int64_t>(before.size()) == s.rows();
    const Var<T> s_prev = all ? s : nn::rows(tape, s, std::span<const int64_t>(before));
    const auto attend = [&](const Var<T>& query) {
      const Rows queries_now{query, one_query_each(live, sequences)};
      const auto attended = (*attention_)(tape, queries_now, memory.keys, memory.h,
                                          attention::Request{recorded, recorded, false});
      if (recorded) filed->add(t, live, attended);
      return attended.context;
    };
    // Each step reads its rows of what was made for all of them at once.
    const Var<T> y_now = conditional() ? Var<T>() : nn::rows(tape, y, std::span<const int64_t>(now));
    const Var<T> gates_now = conditional() ? nn::rows(tape, gates, std::span<const int64_t>(now)) : Var<T>();
    const Transited next = transit(tape, own, y_now, gates_now, s_prev, attend);
    states.push_back(conditional() ? next.s : s_prev);
    queries.push_back(next.query);
    contexts.push_back(next.context);
    s = next.s;
  }
  const std::span<const int64_t> order(steps.place);
  const Var<T> context = nn::stack_rows(tape, std::span<const Var<T>>(contexts));
  const Var<T> output = deep_output(tape, nn::stack_rows(tape, std::span<const Var<T>>(states)), y, context);
  if (recorded) {
    record->entries.push_back({AttentionKind::cross, 0, filed->take(tape, nn::rows(tape, context, order))});
    if (record->request.tensors) {
      const Var<T> query = nn::stack_rows(tape, std::span<const Var<T>>(queries));
      record->entries.back().attended.tensors = {{"s", nn::rows(tape, query, order).value()},
                                                 {"h", memory.h.rows.value()},
                                                 {"U_a h", memory.keys.value()}};
    }
  }
  // Back into the order of the sequences.
  return {nn::dropout(tape, nn::rows(tape, output, order), config_.output_dropout), input.offsets};
}

template <class T>
typename RnnSearch<T>::Stepped RnnSearch<T>::step(Tape<T>& tape, std::span<const int32_t> ids,
                                                  const Var<T>& s_prev,
                                                  std::span<const RowsOfSource<T>> sources) const {
  require(static_cast<int64_t>(ids.size()) == s_prev.rows() && ids.size() == sources.size(),
          "{} tokens, {} states and {} sources make no step", ids.size(), s_prev.rows(), sources.size());
  const Var<T> y = nn::embed(tape, tape.use(*target_table_), ids, 1, {}, config_.dropout);
  const Var<T> gates = conditional() ? decoder_first_->input_gates(tape, y) : Var<T>();
  const Transited next = transit(tape, weights(tape), y, gates, s_prev, [&](const Var<T>& query) {
    return attention_->memory_step(tape, query, sources);
  });
  return {next.s, deep_output(tape, conditional() ? next.s : s_prev, y, next.context)};
}

template <class T>
Var<T> RnnSearch<T>::logits(Tape<T>& tape, const Var<T>& output) const {
  return nn::linear(tape, output, tape.use(*output_), tape.use(*output_bias_));
}

template <class T>
TrainingLoss<T> RnnSearch<T>::loss(Tape<T>& tape, const Tokens& source, const Tokens& target,
                                   const Objective& objective) const {
  AttentionRecord<T> record = guided_record<T>(objective);
  const Rows output =
      decode(tape, decoder_input(target, config_.symbols.start), encode(tape, source), &record);
  const auto loss =
      nn::projection_cross_entropy(tape, output.rows, tape.use(*output_), tape.use(*output_bias_),
                                   target.rows, {objective.smoothing, config_.symbols.pad}, objective.scale);
  if (!objective.guide) return {loss};
  return guided(tape, loss, record, 1, source, target, objective, kAlignmentStep);
}

template <class T>
std::vector<T> RnnSearch<T>::log_probabilities(Tape<T>& tape, const Tokens& source,
                                               const Tokens& target) const {
  const Rows output = decode(tape, decoder_input(target, config_.symbols.start), encode(tape, source));
  return nn::projection_log_probabilities(tape, output.rows, tape.use(*output_), tape.use(*output_bias_),
                                          target.rows);
}

template class RnnSearch<float>;
template class RnnSearch<double>;

}  // namespace gloss::models
