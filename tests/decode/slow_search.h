// Search written down straight from its rules: every continuation is listed and sorted. Shares nothing with
// the real search but the normaliser, so that ties are ties in both.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "decode/toy_scorer.h"
#include "gloss/decode/options.h"
#include "gloss/kernels/top_k.h"

namespace gloss::decode {

struct SlowHypothesis {
  Sentence tokens;
  double sum = 0, score = 0;
  bool finished = false;
};

// log P of each next token, -infinity where it is forbidden.
inline std::vector<double> slow_row(const ToyScorer& scorer, const Sentence& source, const Sentence& prefix,
                                    const SearchOptions& options) {
  const std::vector<float> logits = scorer.logits(source, prefix);
  const double normaliser = kernels::log_sum_exp(logits);
  std::vector<double> row;
  for (const float logit : logits) row.push_back(std::min(0.0, logit - normaliser));
  const auto forbid = [&](int32_t token) { row[static_cast<size_t>(token)] = -HUGE_VAL; };
  for (const int32_t token : options.forbidden_tokens) forbid(token);
  if (static_cast<int64_t>(prefix.size()) + 1 < options.min_length) forbid(kEnd);
  const size_t n = static_cast<size_t>(options.no_repeat_ngram);
  for (int32_t token = 0; n > 0 && token < scorer.vocabulary; ++token) {
    Sentence longer = prefix;
    longer.push_back(token);
    if (longer.size() < n) continue;
    const Sentence ngram(longer.end() - static_cast<std::ptrdiff_t>(n), longer.end());
    const auto found = std::search(longer.begin(), longer.end(), ngram.begin(), ngram.end());
    if (found + static_cast<std::ptrdiff_t>(n) != longer.end()) forbid(token);
  }
  return row;
}

// Without patience it never stops before the cap, so it also checks that stopping early loses nothing.
inline std::vector<SlowHypothesis> slow_beam(const ToyScorer& scorer, const Sentence& source,
                                             const SearchOptions& options) {
  const auto cap = static_cast<size_t>(length_cap(options, static_cast<int64_t>(source.size())));
  const auto beam = static_cast<size_t>(options.beam);
  const auto score = [&](double sum, size_t length) {
    return sum / std::pow(static_cast<double>(length), options.length_penalty);
  };
  std::vector<SlowHypothesis> live(1), finished;
  for (size_t length = 1; length <= cap && !live.empty(); ++length) {
    std::vector<SlowHypothesis> longer;
    for (const SlowHypothesis& hypothesis : live) {
      std::vector<double> row = slow_row(scorer, source, hypothesis.tokens, options);
      if (length == cap && options.at_cap == AtCap::force_end) {
        row.assign(row.size(), -HUGE_VAL);
        row[kEnd] = 0;
      }
      for (size_t token = 0; token < row.size(); ++token) {
        if (row[token] == -HUGE_VAL) continue;
        longer.push_back({hypothesis.tokens, hypothesis.sum + row[token], 0, false});
        longer.back().tokens.push_back(static_cast<int32_t>(token));
      }
    }
    const auto more = [](const SlowHypothesis& a, const SlowHypothesis& b) { return a.sum > b.sum; };
    std::stable_sort(longer.begin(), longer.end(), more);
    live.clear();
    for (size_t i = 0; i < std::min(longer.size(), 2 * beam); ++i) {
      SlowHypothesis& each = longer[i];
      each.finished = each.tokens.back() == kEnd;
      each.score = score(each.sum, length);
      if (each.finished || length == cap) {
        if (i < beam) finished.push_back(each);
      } else if (live.size() < beam) {
        live.push_back(each);
      }
    }
    if (beam == 1 && !finished.empty()) break;  // greedy
    const double enough = options.patience * static_cast<double>(beam);
    if (enough > 0 && static_cast<double>(finished.size()) >= enough) break;
  }
  std::stable_sort(finished.begin(), finished.end(),
                   [](const SlowHypothesis& a, const SlowHypothesis& b) { return a.score > b.score; });
  if (finished.size() > static_cast<size_t>(options.n_best)) {
    finished.resize(static_cast<size_t>(options.n_best));
  }
  return finished;
}

// Every sentence that can be said within the cap, by depth-first listing, the best first.
inline void list_all(const ToyScorer& scorer, const Sentence& source, const SearchOptions& options,
                     const SlowHypothesis& prefix, std::vector<SlowHypothesis>& all) {
  const auto cap = static_cast<size_t>(length_cap(options, static_cast<int64_t>(source.size())));
  const std::vector<double> row = slow_row(scorer, source, prefix.tokens, options);
  for (int32_t token = 0; token < scorer.vocabulary; ++token) {
    SlowHypothesis next = prefix;
    next.tokens.push_back(token);
    const bool forced = next.tokens.size() == cap && options.at_cap == AtCap::force_end;
    if (forced && token != kEnd) continue;
    next.sum += forced ? 0 : row[static_cast<size_t>(token)];
    if (next.sum == -HUGE_VAL) continue;
    next.finished = token == kEnd;
    const auto length = static_cast<double>(next.tokens.size());
    next.score = next.sum / std::pow(length, options.length_penalty);
    if (next.finished || next.tokens.size() == cap) {
      all.push_back(next);
    } else {
      list_all(scorer, source, options, next, all);
    }
  }
}
inline std::vector<SlowHypothesis> exhaustive(const ToyScorer& scorer, const Sentence& source,
                                              const SearchOptions& options) {
  std::vector<SlowHypothesis> all;
  list_all(scorer, source, options, {}, all);
  std::stable_sort(all.begin(), all.end(),
                   [](const SlowHypothesis& a, const SlowHypothesis& b) { return a.score > b.score; });
  return all;
}

}  // namespace gloss::decode
