#include "gloss/evaluate/bleu.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "gloss/base/error.h"
#include "gloss/evaluate/ngrams.h"
#include "gloss/evaluate/unicode.h"

namespace gloss::evaluate {
namespace {

using Ids = WordIds<std::string>;

std::u32string token_ids(const std::string& line, const BleuOptions& options, Ids& ids) {
  std::string text = options.lowercase ? lower(line) : line;
  // Only white space at the end is dropped before tokenising; 13a sees the difference at a line's end.
  const auto words = split(text);
  text.resize(words.empty() ? 0
                            : static_cast<size_t>(words.back().data() + words.back().size() - text.data()));
  const std::string tokenized = tokenize(options.tokenizer, text);
  std::u32string out;
  for (const std::string_view word : split(tokenized)) out.push_back(ids(std::string(word)));
  return out;
}

void add_line(const std::string& hypothesis, const std::vector<const std::string*>& references,
              BleuScore& score) {
  Ids ids;
  const std::u32string tokens = token_ids(hypothesis, score.options, ids);
  const auto length = static_cast<int64_t>(tokens.size());
  std::vector<std::u32string> reference_tokens;
  reference_tokens.reserve(references.size());
  for (const std::string* reference : references)
    reference_tokens.push_back(token_ids(*reference, score.options, ids));

  int64_t closest = static_cast<int64_t>(reference_tokens.front().size());
  for (const std::u32string& reference : reference_tokens) {
    const auto other = static_cast<int64_t>(reference.size());
    const int64_t gap = std::abs(other - length), best = std::abs(closest - length);
    if (gap < best || (gap == best && other < closest)) closest = other;
  }
  score.hypothesis_length += length;
  score.reference_length += closest;

  for (size_t n = 1; n <= BleuScore::kOrder; ++n) {
    NgramCounts most;  // in any one reference
    for (const std::u32string& reference : reference_tokens) {
      for (const auto& [ngram, count] : count_ngrams(reference, n))
        most[ngram] = std::max(most[ngram], count);
    }
    for (const auto& [ngram, count] : count_ngrams(tokens, n)) {
      score.total[n - 1] += count;
      const auto it = most.find(ngram);
      if (it != most.end()) score.correct[n - 1] += std::min(count, it->second);
    }
  }
}

// score = BP exp(mean over n of log p_n), BP = exp(1 - r / c) where the hypotheses are shorter.
void finish(BleuScore& score) {
  const auto c = static_cast<double>(score.hypothesis_length),
             r = static_cast<double>(score.reference_length);
  if (c < r) score.brevity_penalty = c > 0 ? std::exp(1 - r / c) : 0.0;
  if (std::all_of(score.correct.begin(), score.correct.end(), [](int64_t n) { return n == 0; })) return;
  double smooth = 1;
  size_t orders = BleuScore::kOrder;
  for (size_t n = 0; n < BleuScore::kOrder && score.total[n] > 0; ++n) {
    if (score.options.effective_order) orders = n + 1;
    const auto total = static_cast<double>(score.total[n]);
    if (score.correct[n] > 0) {
      score.precisions[n] = 100.0 * static_cast<double>(score.correct[n]) / total;
    } else if (score.options.smoothing == Smoothing::exp) {
      smooth *= 2;
      score.precisions[n] = 100.0 / (smooth * total);
    }
  }
  double logs = 0;
  for (size_t n = 0; n < orders; ++n) logs += std::log(score.precisions[n]);  // log 0 makes the score 0
  score.score = score.brevity_penalty * std::exp(logs / static_cast<double>(orders));
}

}  // namespace

double BleuScore::ratio() const {
  return reference_length > 0 ? static_cast<double>(hypothesis_length) / static_cast<double>(reference_length)
                              : 0.0;
}

std::string BleuScore::signature() const {
  return fmt::format("nrefs:{}|case:{}|eff:{}|tok:{}|smooth:{}|version:{}", references,
                     options.lowercase ? "lc" : "mixed", options.effective_order ? "yes" : "no",
                     tokenizer_name(options.tokenizer), options.smoothing == Smoothing::exp ? "exp" : "none",
                     kSacreBleuVersion);
}

std::string BleuScore::text() const {
  return fmt::format(
      "BLEU = {:.2f} {:.1f}/{:.1f}/{:.1f}/{:.1f} (BP = {:.3f} ratio = {:.3f} hyp_len = {} ref_len = {})",
      score, precisions[0], precisions[1], precisions[2], precisions[3], brevity_penalty, ratio(),
      hypothesis_length, reference_length);
}

BleuScore bleu(const std::vector<std::string>& hypotheses, const References& references,
               const BleuOptions& options) {
  check_corpus(hypotheses, references);
  BleuScore score;
  score.options = options;
  score.references = static_cast<int64_t>(references.size());
  std::vector<const std::string*> of_line(references.size());
  for (size_t i = 0; i < hypotheses.size(); ++i) {
    for (size_t r = 0; r < references.size(); ++r) of_line[r] = &references[r][i];
    add_line(hypotheses[i], of_line, score);
  }
  finish(score);
  return score;
}

}  // namespace gloss::evaluate
