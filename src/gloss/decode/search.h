// Greedy, beam search and sampling over any model that keeps a models::DecoderState.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "gloss/decode/hypothesis.h"
#include "gloss/decode/options.h"
#include "gloss/decode/ranking.h"
#include "gloss/decode/sentence_search.h"
#include "gloss/decode/short_ranking.h"
#include "gloss/decode/token_union.h"
#include "gloss/models/decoder_state.h"
#include "gloss/tensor/context.h"

namespace gloss::decode {

// Receives the hypotheses of one sentence, the best first, as soon as it is finished. At least one, at most
// n_best.
using OnDone = std::function<void(int64_t id, std::vector<Hypothesis> hypotheses)>;

// The tokens that a sentence may become: ascending, none twice, at least one; a function of its source alone.
using TokensOf = std::function<std::vector<int32_t>(std::span<const int32_t> source)>;

// Translates a stream of sentences, `options.batch` at a time: a finished sentence leaves at once and a
// waiting one takes its place. What a sentence gets depends on its source and the options alone, bit for bit.
//
// With a `limit` the output layer computes the logits of the tokens that its sentences may become and no
// others, and each sentence is searched and normalised, or drawn from, over its own: a probability is one
// among those.
class Search {
 public:
  // Throws UsageError where the options make no sense. The state must hold no sentences; it belongs to this
  // object as long as that lives.
  Search(Context& context, models::DecoderState& state, SearchOptions options, TokensOf limit = {});
  ~Search();  // takes its sentences and limits out of the state
  Search(const Search&) = delete;
  Search& operator=(const Search&) = delete;

  // Queues a sentence: ids with the end symbol; `id` returns with the result. Throws Error where the source
  // is empty: a blank line is not a model's business.
  void submit(int64_t id, std::span<const int32_t> source);
  // Sentences that a step could begin at once, beyond those queued.
  int64_t room() const;
  bool idle() const { return waiting_.empty() && active_ == 0; }

  // Begins waiting sentences where there is room, extends every live hypothesis by one token, and hands over
  // what is finished. Throws Error naming the sentence where the model gives numbers that are none;
  // after an error of any kind only destruction is left.
  void step(const OnDone& on_done);
  // During on_done: DecoderState::key_value_rows_of the sentence.
  int64_t key_value_rows() const { return key_value_rows_; }

 private:
  struct Waiting {
    int64_t id;
    std::vector<int32_t> source;
  };
  struct Slot {
    explicit Slot(const SearchRules& rules) : search(rules) {}
    SentenceSearch search;
    bool busy = false;
    bool in_model = false;
    // Of a limited search: what the sentence may become, and the columns in which it comes.
    std::vector<int32_t> tokens, columns;
  };
  void begin_waiting();
  void collect_steps();
  void rank_rows(const Tensor<float>& states);
  void limit_output();
  void choose_limited(const Tensor<float>& states);
  void draw_rows(const Tensor<float>& states);
  void draw_some(int64_t first, const Tensor<float>& logits);
  SentenceSearch& sentence_of(int64_t row);
  void advance_sentences();
  void hand_over_finished(const OnDone& on_done);
  void release(size_t slot);

  Context& context_;
  models::DecoderState& state_;
  SearchRules rules_;
  std::deque<Waiting> waiting_;
  std::vector<std::unique_ptr<Slot>> slots_;
  int64_t active_ = 0;  // busy slots
  int64_t key_value_rows_ = 0;
  TokensOf limit_;  // empty: all tokens
  TokenUnion union_;
  bool columns_are_places_ = false;  // in the union; else they are tokens

  // One advance; kept for their memory.
  std::vector<models::Step> steps_;
  std::vector<int> row_in_sentence_;
  std::vector<RowChoice> choices_;  // [rows]
  Ranking ranking_;
  ShortRanking short_ranking_;
  // Of sampling.
  std::vector<kernels::Ranked> drawn_;  // [rows, choices_a_row]
  std::vector<float> scratch_;          // [rows at a time, V], at another temperature than 1
};

// Translates all sources; ids are 0, 1, ...
void search(Context& context, models::DecoderState& state, const Tokens& sources,
            const SearchOptions& options, const OnDone& on_done, const TokensOf& limit = {});
// The same, in the order of the sources.
std::vector<std::vector<Hypothesis>> search(Context& context, models::DecoderState& state,
                                            const Tokens& sources, const SearchOptions& options,
                                            const TokensOf& limit = {});

}  // namespace gloss::decode
