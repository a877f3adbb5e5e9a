#include "gloss/decode/sentence_search.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "gloss/base/error.h"
#include "gloss/decode/sampling.h"

namespace gloss::decode {
namespace {

constexpr float kForbidden = -std::numeric_limits<float>::infinity();

// A rounded normaliser may leave a certain token a hair above probability 1, and then longer would be better.
double log_probability(float logit, float log_sum_exp) {
  return std::min(0.0, static_cast<double>(logit) - static_cast<double>(log_sum_exp));
}

double penalised(double sum, int64_t length, double alpha) {
  return sum / std::pow(static_cast<double>(length), alpha);
}

}  // namespace

int64_t SentenceSearch::choices_a_row(const SearchRules& rules) {
  const SearchOptions& options = rules.options;
  if (options.sampling) return options.n_best;  // all samples draw from the first row
  return options.beam == 1 ? 1 : std::min<int64_t>(2 * int64_t{options.beam}, rules.vocabulary_size);
}

void SentenceSearch::begin(int64_t id, std::span<const int32_t> source) {
  id_ = id;
  cap_ = length_cap(rules_.options, static_cast<int64_t>(source.size()));
  length_ = 0;
  ended_ = 0;
  nodes_.clear();
  finished_.clear();
  live_.clear();
  const auto& sampling = rules_.options.sampling;
  if (sampling) key_ = sampling_key(sampling->seed, source);
  for (int sample = 0; sample < (sampling ? rules_.options.n_best : 1); ++sample) {
    live_.push_back({-1, 0, sample, 0.0});
  }
  finish_at_cap();
}

models::Step SentenceSearch::step(int row, int slot) const {
  const Live& live = live_[static_cast<size_t>(row)];
  if (live.node < 0) return {slot, 0, rules_.start_token};
  return {slot, live.parent, nodes_[static_cast<size_t>(live.node)].token};
}

void SentenceSearch::mask(int row, std::vector<int32_t>& masked) const {
  masked.assign(rules_.forbidden.begin(), rules_.forbidden.end());
  if (length_ + 1 < rules_.options.min_length) masked.push_back(rules_.end_token);
  if (rules_.options.no_repeat_ngram > 0) mask_repeats(live_[static_cast<size_t>(row)].node, masked);
  std::ranges::sort(masked);
}

void SentenceSearch::draw(int row, std::span<const float> logits, std::span<float> scratch,
                          std::span<kernels::Ranked> drawn) const {
  const Live& live = live_[static_cast<size_t>(row)];
  TokenDistribution distribution(logits, *rules_.options.sampling, scratch);
  for (size_t i = 0; i < this->drawn(drawn).size(); ++i) {
    drawn[i] = {kForbidden, 0};
    if (distribution.empty()) continue;
    const auto sample = static_cast<uint64_t>(length_ == 0 ? static_cast<int>(i) : live.sample);
    const int32_t token = distribution.draw(key_.with(sample).uniform(static_cast<uint64_t>(length_)));
    drawn[i] = {logits[static_cast<size_t>(token)], token};
  }
}

// Forbids every token that followed an earlier occurrence of the hypothesis' last n - 1 tokens.
void SentenceSearch::mask_repeats(int32_t node, std::vector<int32_t>& masked) const {
  const auto n = static_cast<size_t>(rules_.options.no_repeat_ngram);
  if (static_cast<size_t>(length_) < n) return;
  std::vector<int32_t> history;
  history.reserve(static_cast<size_t>(length_));
  for (int32_t i = node; i >= 0; i = nodes_[static_cast<size_t>(i)].parent) {
    history.push_back(nodes_[static_cast<size_t>(i)].token);
  }
  std::reverse(history.begin(), history.end());
  const auto last = history.end() - static_cast<std::ptrdiff_t>(n - 1);
  for (auto begin = history.begin(); begin + static_cast<std::ptrdiff_t>(n - 1) < history.end(); ++begin) {
    const auto follower = begin + static_cast<std::ptrdiff_t>(n - 1);
    if (std::equal(last, history.end(), begin)) masked.push_back(*follower);
  }
}

void SentenceSearch::advance(std::span<const RowChoice> choices) {
  ++length_;
  next_.clear();
  if (rules_.options.sampling) {
    advance_samples(choices);
  } else {
    advance_beam(choices);
  }
  live_.swap(next_);
  finish_at_cap();
}

void SentenceSearch::gather_candidates(std::span<const RowChoice> choices) {
  candidates_.clear();
  for (size_t row = 0; row < choices.size(); ++row) {
    for (size_t rank = 0; rank < choices[row].best.size(); ++rank) {
      const auto [logit, token] = choices[row].best[rank];
      if (logit == kForbidden) break;
      const double log_p = log_probability(logit, choices[row].log_sum_exp);
      candidates_.push_back({live_[row].sum + log_p, static_cast<int>(row), static_cast<int>(rank), token,
                             static_cast<float>(log_p)});
    }
  }
  const size_t wanted = rules_.options.beam == 1 ? 1 : 2 * static_cast<size_t>(rules_.options.beam);
  const size_t kept = std::min(wanted, candidates_.size());
  std::partial_sort(candidates_.begin(), candidates_.begin() + static_cast<std::ptrdiff_t>(kept),
                    candidates_.end(), [](const Candidate& a, const Candidate& b) {
                      if (a.sum != b.sum) return a.sum > b.sum;
                      return a.row != b.row ? a.row < b.row : a.rank < b.rank;
                    });
  candidates_.resize(kept);
}

void SentenceSearch::advance_beam(std::span<const RowChoice> choices) {
  gather_candidates(choices);
  const auto beam = static_cast<size_t>(rules_.options.beam);
  for (size_t i = 0; i < candidates_.size(); ++i) {
    const Candidate& candidate = candidates_[i];
    const bool ended = candidate.token == rules_.end_token;
    const bool stops = ended || length_ == cap_;
    if (stops ? i >= beam : next_.size() == beam) continue;
    const int32_t parent = live_[static_cast<size_t>(candidate.row)].node;
    const int32_t node = grow(parent, candidate.token, candidate.log_probability);
    if (stops) {
      finish(node, candidate.sum, length_, ended);
    } else {
      next_.push_back({node, candidate.row, 0, candidate.sum});
    }
  }
  if (next_.empty() && finished_.empty()) {  // every continuation is forbidden: what there is must do
    for (const Live& live : live_) finish(live.node, live.sum, length_ - 1, false);
  }
  const double patience = rules_.options.patience;
  if (patience == 0) {
    while (!next_.empty() && !can_improve(next_.back().sum)) next_.pop_back();
  } else if (static_cast<double>(ended_) >= patience * static_cast<double>(beam) ||
             (!next_.empty() && !can_improve(next_.front().sum))) {
    next_.clear();  // not one by one: whatever ends is counted, even where it cannot win
  }
}

void SentenceSearch::advance_samples(std::span<const RowChoice> choices) {
  for (size_t i = 0; i < live_.size(); ++i) {
    const size_t row = length_ == 1 ? 0 : i;
    const auto [logit, token] = choices[row].best[length_ == 1 ? i : 0];
    if (logit == kForbidden) {
      finish(live_[i].node, live_[i].sum, length_ - 1, false);
      continue;
    }
    const double log_p = log_probability(logit, choices[row].log_sum_exp);
    const double sum = live_[i].sum + log_p;
    const int32_t node = grow(live_[i].node, token, static_cast<float>(log_p));
    const bool ended = token == rules_.end_token;
    if (ended || length_ == cap_) {
      finish(node, sum, length_, ended);
    } else {
      next_.push_back({node, static_cast<int>(row), live_[i].sample, sum});
    }
  }
}

// An end symbol that is forced costs nothing, so it needs no logits: the model is spared the last step.
void SentenceSearch::finish_at_cap() {
  if (rules_.options.at_cap != AtCap::force_end || length_ != cap_ - 1) return;
  for (const Live& live : live_) {
    finish(grow(live.node, rules_.end_token, 0), live.sum, cap_, true);
  }
  live_.clear();
}

int32_t SentenceSearch::grow(int32_t parent, int32_t token, float log_probability) {
  nodes_.push_back({token, parent, log_probability});
  return static_cast<int32_t>(nodes_.size()) - 1;
}

// Among equal scores the one that finished first stays ahead.
void SentenceSearch::finish(int32_t node, double sum, int64_t length, bool ended) {
  require(length > 0, "sentence {} (counting from 0): every first token is forbidden, so nothing can be said",
          id_);
  ++ended_;
  const double score = penalised(sum, length, rules_.options.length_penalty);
  const auto worse = [](double value, const Finished& other) { return value > other.score; };
  finished_.insert(std::upper_bound(finished_.begin(), finished_.end(), score, worse),
                   {node, sum, score, ended});
  if (finished_.size() > static_cast<size_t>(rules_.options.n_best)) finished_.pop_back();
}

// Whether a live hypothesis of this sum may still enter the n_best. Its sum can only fall; dividing by
// length^alpha, the longest length is the kindest for alpha > 0 and the shortest otherwise.
//
// One that cannot is dropped without a substitute. The answer stays the same: live hypotheses stand in the
// order of their sums, so whatever its continuations would push out of the beam has a sum no greater than its
// own, and cannot enter either.
bool SentenceSearch::can_improve(double sum) const {
  if (rules_.options.beam == 1) return finished_.empty();
  if (finished_.size() < static_cast<size_t>(rules_.options.n_best)) return true;
  const double alpha = rules_.options.length_penalty;
  const int64_t length = alpha > 0 ? cap_ : std::max(length_ + 1, rules_.options.min_length);
  return penalised(sum, length, alpha) > finished_.back().score;
}

std::vector<Hypothesis> SentenceSearch::take_results() {
  std::vector<Hypothesis> results;
  results.reserve(finished_.size());
  for (const Finished& finished : finished_) {
    Hypothesis hypothesis;
    for (int32_t i = finished.node; i >= 0; i = nodes_[static_cast<size_t>(i)].parent) {
      hypothesis.tokens.push_back(nodes_[static_cast<size_t>(i)].token);
      hypothesis.token_log_probabilities.push_back(nodes_[static_cast<size_t>(i)].log_probability);
    }
    std::reverse(hypothesis.tokens.begin(), hypothesis.tokens.end());
    std::reverse(hypothesis.token_log_probabilities.begin(), hypothesis.token_log_probabilities.end());
    hypothesis.log_probability = static_cast<float>(finished.sum);
    hypothesis.score = static_cast<float>(finished.score);
    hypothesis.finished = finished.ended;
    results.push_back(std::move(hypothesis));
  }
  finished_.clear();
  live_.clear();
  return results;
}

}  // namespace gloss::decode
