// The search of one sentence: its live hypotheses, its finished ones and the rules between them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "gloss/base/random.h"
#include "gloss/decode/hypothesis.h"
#include "gloss/decode/options.h"
#include "gloss/decode/ranking.h"
#include "gloss/kernels/top_k.h"
#include "gloss/models/decoder_state.h"

namespace gloss::decode {

// What search asks of the model and the user, for all sentences alike.
struct SearchRules {
  SearchOptions options;
  int32_t start_token = 0;
  int32_t end_token = 0;
  int64_t vocabulary_size = 0;
  std::vector<int32_t> forbidden;  // the model's and the user's
};

// Knows nothing of slots and other sentences, so nothing here can depend on company. Reused for the next
// sentence, with the memory of the last.
//
// Beam rules, at each length t: of the 2 x beam best continuations of all live hypotheses (higher sum, then
// lower parent, then higher logit, then lower token) the end symbol counts when among the first `beam`; the
// best `beam` others live on, but for those that cannot beat the worst of the n_best finished ones kept at
// any length they can reach. The search is over when none is left. That finds what transformers finds with
// early_stopping="never", which keeps `beam` finished ones and so stops no earlier.
//
// Sums are of doubles that hold differences of floats: almost always exact, so that hypotheses of equal
// probability tie whatever the order of their tokens.
class SentenceSearch {
 public:
  explicit SentenceSearch(const SearchRules& rules) : rules_(rules) {}

  // Entries of RowChoice::best.
  static int64_t choices_a_row(const SearchRules& rules);

  void begin(int64_t id, std::span<const int32_t> source);
  int64_t id() const { return id_; }
  int64_t length() const { return length_; }  // tokens of every live hypothesis
  bool done() const { return live_.empty(); }
  // Rows the sentence wants of the next advance.
  int rows() const { return length_ == 0 ? 1 : static_cast<int>(live_.size()); }
  models::Step step(int row, int slot) const;

  // Fills `masked` with the tokens that one of the rows may not choose, in rising order.
  void mask(int row, std::vector<int32_t>& masked) const;
  // Sampling: draws from the logits [V] of one of the rows, masked and without NaN, into `drawn`
  // [choices_a_row]. Rows of a sentence may draw at the same time. `scratch` [V] is written where the
  // temperature is not 1.
  void draw(int row, std::span<const float> logits, std::span<float> scratch,
            std::span<kernels::Ranked> drawn) const;
  // The places of `drawn` that draw fills: one for each sample at first, then one.
  std::span<kernels::Ranked> drawn(std::span<kernels::Ranked> drawn) const {
    return drawn.first(length_ == 0 ? live_.size() : 1);
  }
  // Extends the hypotheses by one token, given the choices of all rows.
  void advance(std::span<const RowChoice> choices);

  // What was found, the best first; empties the search. Throws Error where every token was forbidden.
  std::vector<Hypothesis> take_results();

 private:
  struct Node {  // a token of some hypothesis; hypotheses share their beginnings
    int32_t token;
    int32_t parent;  // node before it, -1 for the first token
    float log_probability;
  };
  struct Live {
    int32_t node;  // -1: no token yet
    int parent;    // its parent's row in the last advance
    int sample;    // number of the sample; 0 in beam search
    double sum;    // log-probability
  };
  struct Finished {
    int32_t node;
    double sum, score;
    bool ended;  // by the end symbol
  };
  struct Candidate {
    double sum;
    int row;
    int rank;  // in its row
    int32_t token;
    float log_probability;
  };

  void advance_beam(std::span<const RowChoice> choices);
  void advance_samples(std::span<const RowChoice> choices);
  void gather_candidates(std::span<const RowChoice> choices);
  int32_t grow(int32_t parent, int32_t token, float log_probability);
  void finish(int32_t node, double sum, int64_t length, bool ended);
  void finish_at_cap();
  bool can_improve(double sum) const;
  void mask_repeats(int32_t node, std::vector<int32_t>& masked) const;

  const SearchRules& rules_;
  int64_t id_ = 0;
  int64_t cap_ = 0;
  int64_t length_ = 0;  // tokens of every live hypothesis
  int64_t ended_ = 0;   // hypotheses that were finished, among them those that n_best no longer holds
  RandomKey key_;
  std::vector<Node> nodes_;
  std::vector<Live> live_, next_;
  std::vector<Finished> finished_;  // the best first, n_best at most
  std::vector<Candidate> candidates_;
};

}  // namespace gloss::decode
