#include "gloss/decode/search.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "gloss/base/error.h"

namespace gloss::decode {
namespace {

// Sampling. Logits a task draws from: enough that waking a thread pays.
constexpr int64_t kLogitsATask = 1 << 16;
// Logits of a thread between the output layer and the drawing, and rows of them, if that is more: fewer would
// read the layer's weights too often.
constexpr int64_t kLogitsAtATime = 1 << 18;
constexpr int64_t kLeastRowsAtATime = 24;

// Rows a task ranks or draws from among their own tokens.
constexpr int64_t kRowsATask = 64;

SearchRules rules_for(const models::DecoderState& state, SearchOptions options) {
  validate(options);
  SearchRules rules{std::move(options), state.start_token(), state.end_token(), state.vocabulary_size(), {}};
  const auto model = state.forbidden_tokens();
  rules.forbidden.assign(model.begin(), model.end());
  rules.forbidden.insert(rules.forbidden.end(), rules.options.forbidden_tokens.begin(),
                         rules.options.forbidden_tokens.end());
  for (const int32_t token : rules.forbidden) {
    require(token >= 0 && token < rules.vocabulary_size,
            "forbidden token {} is not in the vocabulary of {} tokens", token, rules.vocabulary_size);
  }
  return rules;
}

void check_limit(int64_t id, std::span<const int32_t> tokens, int64_t vocabulary) {
  const bool rises = std::ranges::adjacent_find(tokens, std::greater_equal<>()) == tokens.end();
  require(
      !tokens.empty() && rises && tokens.front() >= 0 && tokens.back() < vocabulary,
      "sentence {} (counting from 0) is limited to {} tokens that are not ascending ones of a vocabulary of "
      "{}",
      id, tokens.size(), vocabulary);
}

}  // namespace

Search::Search(Context& context, models::DecoderState& state, SearchOptions options, TokensOf limit)
    : context_(context),
      state_(state),
      rules_(rules_for(state, std::move(options))),
      limit_(std::move(limit)),
      union_(limit_ ? rules_.vocabulary_size : 0) {}

Search::~Search() {
  for (size_t slot = 0; slot < slots_.size(); ++slot) {
    try {
      release(slot);
    } catch (...) {  // the state is broken already; there is nobody to tell
    }
  }
  try {
    if (columns_are_places_) state_.limit_output({});
  } catch (...) {
  }
}

void Search::submit(int64_t id, std::span<const int32_t> source) {
  require(!source.empty(), "sentence {} (counting from 0) is empty: a blank line must not reach the model",
          id);
  waiting_.push_back({id, {source.begin(), source.end()}});
}

int64_t Search::room() const {
  return rules_.options.batch - active_ - static_cast<int64_t>(waiting_.size());
}

void Search::step(const OnDone& on_done) {
  begin_waiting();
  collect_steps();
  if (!steps_.empty()) {
    rank_rows(state_.advance(steps_));
    advance_sentences();
  }
  hand_over_finished(on_done);
}

void Search::begin_waiting() {
  if (waiting_.empty() || active_ == rules_.options.batch) return;
  std::vector<int> slots;
  std::vector<int64_t> lengths;
  Tokens sources;
  for (size_t slot = 0; !waiting_.empty() && slot < static_cast<size_t>(rules_.options.batch); ++slot) {
    if (slot == slots_.size()) slots_.push_back(std::make_unique<Slot>(rules_));
    if (slots_[slot]->busy) continue;
    const Waiting next = std::move(waiting_.front());
    waiting_.pop_front();
    slots_[slot]->busy = true;
    ++active_;
    slots_[slot]->search.begin(next.id, next.source);
    if (slots_[slot]->search.done()) continue;  // a cap of one forced end symbol: the model has no say
    if (limit_) {
      slots_[slot]->tokens = limit_(next.source);
      check_limit(next.id, slots_[slot]->tokens, rules_.vocabulary_size);
    }
    slots.push_back(static_cast<int>(slot));
    lengths.push_back(static_cast<int64_t>(next.source.size()));
    sources.rows.insert(sources.rows.end(), next.source.begin(), next.source.end());
  }
  if (slots.empty()) return;
  sources.offsets = Offsets::of_lengths(lengths);
  state_.add(slots, sources);
  for (const int slot : slots) {
    Slot& begun = *slots_[static_cast<size_t>(slot)];
    begun.in_model = true;
    if (!limit_) continue;
    begun.columns.clear();
    union_.add(begun.tokens);
  }
  if (limit_) limit_output();
}

void Search::limit_output() {
  const bool changed = union_.settle();
  if (changed) columns_are_places_ = state_.limit_output(union_.tokens());
  for (const auto& slot : slots_) {
    if (!slot->in_model || !(changed || slot->columns.empty())) continue;
    slot->columns = slot->tokens;
    if (!columns_are_places_) continue;
    for (int32_t& column : slot->columns) column = union_.place(column);
  }
}

void Search::collect_steps() {
  steps_.clear();
  row_in_sentence_.clear();
  for (size_t slot = 0; slot < slots_.size(); ++slot) {
    if (!slots_[slot]->in_model) continue;
    const SentenceSearch& sentence = slots_[slot]->search;
    for (int row = 0; row < sentence.rows(); ++row) {
      steps_.push_back(sentence.step(row, static_cast<int>(slot)));
      row_in_sentence_.push_back(row);
    }
  }
}

SentenceSearch& Search::sentence_of(int64_t row) {
  return slots_[static_cast<size_t>(steps_[static_cast<size_t>(row)].slot)]->search;
}

void Search::rank_rows(const Tensor<float>& states) {
  const auto rows = static_cast<int64_t>(steps_.size());
  choices_.resize(steps_.size());
  if (limit_) return choose_limited(states);
  if (rules_.options.sampling) return draw_rows(states);
  ranking_.begin(rows, rules_.vocabulary_size, SentenceSearch::choices_a_row(rules_),
                 context_.pool.threads());
  for (int64_t row = 0; row < rows; ++row) {
    sentence_of(row).mask(row_in_sentence_[static_cast<size_t>(row)], ranking_.masked(row));
  }
  state_.logits_in_parts(states, ranking_.parts(), [this](int64_t row, int64_t token, auto logits) {
    require(row + logits.rows <= static_cast<int64_t>(steps_.size()) &&
                token + logits.cols <= rules_.vocabulary_size,
            "the model gave logits of {} rows and {} tokens, not {} and {}", row + logits.rows,
            token + logits.cols, steps_.size(), rules_.vocabulary_size);
    ranking_.see(row, token, logits);
  });
  for (int64_t row = 0; row < rows; ++row) choices_[static_cast<size_t>(row)] = ranking_.choice(row);
}

void Search::choose_limited(const Tensor<float>& states) {
  const auto rows = static_cast<int64_t>(steps_.size());
  short_ranking_.begin(SentenceSearch::choices_a_row(rules_));
  for (const models::Step& step : steps_) {
    const Slot& slot = *slots_[static_cast<size_t>(step.slot)];
    short_ranking_.add_row(slot.tokens, slot.columns);
  }
  short_ranking_.end_rows();
  const int64_t columns = columns_are_places_ ? std::ssize(union_.tokens()) : rules_.vocabulary_size;
  state_.logits_in_parts(states, kernels::ColumnParts(), [&](int64_t row, int64_t column, auto logits) {
    require(row + logits.rows <= rows && column + logits.cols <= columns,
            "the model gave logits of {} rows and {} tokens, not {} and {}", row + logits.rows,
            column + logits.cols, rows, columns);
    short_ranking_.see(row, column, logits);
  });
  const auto& sampling = rules_.options.sampling;
  context_.pool.parallel_ranges(rows, kRowsATask, [&](int64_t begin, int64_t end) {
    std::vector<int32_t> masked;
    std::vector<float> scratch;
    for (int64_t row = begin; row < end; ++row) {
      const auto step = static_cast<size_t>(row);
      const SentenceSearch& sentence = sentence_of(row);
      sentence.mask(row_in_sentence_[step], masked);
      RowChoice& choice = choices_[step];
      choice.best = short_ranking_.choices(row);
      choice.log_sum_exp = short_ranking_.normalise(row, masked);
      if (std::isnan(choice.log_sum_exp)) continue;  // reported by advance_sentences, in order
      if (!sampling) {
        short_ranking_.rank(row);
        continue;
      }
      const std::span<const float> logits = short_ranking_.logits(row);
      if (sampling->temperature != 1) scratch.resize(logits.size());
      sentence.draw(row_in_sentence_[step], logits, scratch, choice.best);
      for (kernels::Ranked& drawn : sentence.drawn(choice.best))
        drawn.index = short_ranking_.token(row, drawn.index);
    }
  });
}

// A draw needs all logits of a row. Rows take their turns, so that those of a large batch do not go to memory
// and come back.
void Search::draw_rows(const Tensor<float>& states) {
  const auto rows = static_cast<int64_t>(steps_.size());
  drawn_.resize(static_cast<size_t>(rows * SentenceSearch::choices_a_row(rules_)));
  const int64_t fit = kLogitsAtATime * context_.pool.threads() / rules_.vocabulary_size;
  const int64_t at_a_time = std::max(kLeastRowsAtATime, fit);
  for (int64_t first = 0; first < rows; first += at_a_time) {
    draw_some(first, state_.logits(states.slice_rows(first, std::min(at_a_time, rows - first))));
  }
}

void Search::draw_some(int64_t first, const Tensor<float>& logits) {
  const int64_t rows = logits.rows(), vocabulary = rules_.vocabulary_size;
  require(logits.cols() == vocabulary, "the model gave logits of shape {} for a vocabulary of {} tokens",
          logits.shape().text(), vocabulary);
  const int64_t width = SentenceSearch::choices_a_row(rules_);
  const bool scaled = rules_.options.sampling->temperature != 1;
  if (scaled) scratch_.resize(static_cast<size_t>(rows * vocabulary));

  const auto part = [](auto& memory, int64_t row, int64_t count) {
    return std::span(memory).subspan(static_cast<size_t>(row * count), static_cast<size_t>(count));
  };
  context_.pool.parallel_ranges(
      rows, std::max<int64_t>(1, kLogitsATask / vocabulary), [&](int64_t begin, int64_t end) {
        std::vector<int32_t> masked;
        for (int64_t row = begin; row < end; ++row) {
          const std::span<float> of_row(logits.row(row), static_cast<size_t>(vocabulary));
          const auto step = static_cast<size_t>(first + row);
          RowChoice& choice = choices_[step];
          choice.best = part(drawn_, first + row, width);
          choice.log_sum_exp = kernels::log_sum_exp(of_row);
          if (std::isnan(choice.log_sum_exp)) continue;  // reported by advance_sentences, in order
          const SentenceSearch& sentence = sentence_of(first + row);
          sentence.mask(row_in_sentence_[step], masked);
          for (const int32_t token : masked)
            of_row[static_cast<size_t>(token)] = -std::numeric_limits<float>::infinity();
          sentence.draw(row_in_sentence_[step], of_row,
                        scaled ? part(scratch_, row, vocabulary) : std::span<float>(), choice.best);
        }
      });
}

void Search::advance_sentences() {
  for (size_t begin = 0, end = 0; begin < steps_.size(); begin = end) {
    while (end < steps_.size() && steps_[end].slot == steps_[begin].slot) ++end;
    SentenceSearch& sentence = slots_[static_cast<size_t>(steps_[begin].slot)]->search;
    const auto choices = std::span(choices_).subspan(begin, end - begin);
    for (const RowChoice& choice : choices) {
      if (std::isnan(choice.log_sum_exp)) throw NoNumber::of_sentence(sentence.id(), sentence.length());
    }
    sentence.advance(choices);
  }
}

void Search::hand_over_finished(const OnDone& on_done) {
  for (size_t slot = 0; slot < slots_.size(); ++slot) {
    SentenceSearch& sentence = slots_[slot]->search;
    if (!slots_[slot]->busy || !sentence.done()) continue;
    std::vector<Hypothesis> results = sentence.take_results();
    key_value_rows_ = slots_[slot]->in_model ? state_.key_value_rows_of(static_cast<int>(slot)) : 0;
    release(slot);  // before the callback, which may throw
    on_done(sentence.id(), std::move(results));
  }
}

void Search::release(size_t slot) {
  if (!slots_[slot]->busy) return;
  slots_[slot]->busy = false;
  --active_;
  if (!slots_[slot]->in_model) return;
  slots_[slot]->in_model = false;
  if (limit_) union_.remove(slots_[slot]->tokens);
  state_.remove(static_cast<int>(slot));
}

void search(Context& context, models::DecoderState& state, const Tokens& sources,
            const SearchOptions& options, const OnDone& on_done, const TokensOf& limit) {
  Search running(context, state, options, limit);
  int64_t next = 0;
  while (next < sources.offsets.count() || !running.idle()) {
    for (; next < sources.offsets.count() && running.room() > 0; ++next) {
      running.submit(next, std::span(sources.rows)
                               .subspan(static_cast<size_t>(sources.offsets.begin(next)),
                                        static_cast<size_t>(sources.offsets.length(next))));
    }
    running.step(on_done);
  }
}

std::vector<std::vector<Hypothesis>> search(Context& context, models::DecoderState& state,
                                            const Tokens& sources, const SearchOptions& options,
                                            const TokensOf& limit) {
  std::vector<std::vector<Hypothesis>> results(static_cast<size_t>(sources.offsets.count()));
  search(
      context, state, sources, options,
      [&](int64_t id, std::vector<Hypothesis> hypotheses) {
        results[static_cast<size_t>(id)] = std::move(hypotheses);
      },
      limit);
  return results;
}

}  // namespace gloss::decode
