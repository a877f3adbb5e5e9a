#include "gloss/evaluate/chrf.h"

#include <algorithm>

#include "gloss/base/error.h"
#include "gloss/evaluate/ngrams.h"
#include "gloss/evaluate/unicode.h"

namespace gloss::evaluate {
namespace {

// Of one n-gram order.
struct Counts {
  int64_t hypothesis = 0;
  int64_t reference = 0;
  int64_t match = 0;
};
using Statistics = std::vector<Counts>;  // character orders, then word orders
using Ids = WordIds<std::u32string>;

bool ascii_punctuation(char32_t c) {
  return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') || (c >= '{' && c <= '~');
}

// A line as the sequences whose n-grams are counted.
struct Line {
  std::u32string characters;
  std::u32string words;  // ids
};

// Splits one punctuation mark off each word, the last character first: "(hi)" gives "(hi" and ")", as the
// reference implementation does.
std::u32string word_ids(std::u32string_view text, Ids& ids) {
  std::u32string out;
  const auto add = [&](std::u32string_view word) { out.push_back(ids(std::u32string(word))); };
  for (const std::u32string_view word : split(text)) {
    if (word.size() > 1 && ascii_punctuation(word.back())) {
      add(word.substr(0, word.size() - 1));
      add(word.substr(word.size() - 1));
    } else if (word.size() > 1 && ascii_punctuation(word.front())) {
      add(word.substr(0, 1));
      add(word.substr(1));
    } else {
      add(word);
    }
  }
  return out;
}

Line prepare(const std::string& text, const ChrfOptions& options, Ids& ids) {
  Line line;
  line.characters = decode_utf8(options.lowercase ? lower(text) : text);
  if (options.word_order > 0) line.words = word_ids(line.characters, ids);
  if (!options.whitespace) std::erase_if(line.characters, is_space);
  return line;
}

Counts compare(std::u32string_view hypothesis, std::u32string_view reference, size_t n) {
  const NgramCounts found = count_ngrams(hypothesis, n), wanted = count_ngrams(reference, n);
  Counts counts;
  for (const auto& [ngram, count] : wanted) counts.reference += count;
  if (wanted.empty()) return counts;  // an order the reference is too short for does not count
  for (const auto& [ngram, count] : found) {
    counts.hypothesis += count;
    const auto it = wanted.find(ngram);
    if (it != wanted.end()) counts.match += std::min(count, it->second);
  }
  return counts;
}

// F_beta of the mean precision and the mean recall over the orders that both sides have.
double f_score(const Statistics& statistics, int beta) {
  double precision = 0, recall = 0;
  int orders = 0;
  for (const Counts& counts : statistics) {
    if (counts.hypothesis == 0 || counts.reference == 0) continue;
    precision += static_cast<double>(counts.match) / static_cast<double>(counts.hypothesis);
    recall += static_cast<double>(counts.match) / static_cast<double>(counts.reference);
    ++orders;
  }
  if (precision + recall == 0) return 0;
  precision /= orders;
  recall /= orders;
  const double factor = static_cast<double>(beta) * beta;
  return 100 * (1 + factor) * precision * recall / (factor * precision + recall);
}

}  // namespace

std::string ChrfScore::signature() const {
  return fmt::format("nrefs:{}|case:{}|eff:yes|nc:{}|nw:{}|space:{}|version:{}", references,
                     options.lowercase ? "lc" : "mixed", options.char_order, options.word_order,
                     options.whitespace ? "yes" : "no", kSacreBleuVersion);
}

std::string ChrfScore::text() const {
  return fmt::format("chrF{}{} = {:.2f}", options.beta,
                     std::string(static_cast<size_t>(options.word_order), '+'), score);
}

ChrfScore chrf(const std::vector<std::string>& hypotheses, const References& references,
               const ChrfOptions& options) {
  check_corpus(hypotheses, references);
  require(
      options.char_order >= 1 && options.word_order >= 0 && options.beta >= 1,
      "chrF needs a character order and a beta of at least 1 and a word order of at least 0, not {}, {}, {}",
      options.char_order, options.beta, options.word_order);
  const auto chars = static_cast<size_t>(options.char_order), words = static_cast<size_t>(options.word_order);
  Statistics total(chars + words);
  for (size_t i = 0; i < hypotheses.size(); ++i) {
    Ids ids;
    const Line hypothesis = prepare(hypotheses[i], options, ids);
    Statistics best;
    double best_score = -1;
    for (const std::vector<std::string>& stream : references) {
      const Line reference = prepare(stream[i], options, ids);
      Statistics statistics;
      for (size_t n = 1; n <= chars; ++n)
        statistics.push_back(compare(hypothesis.characters, reference.characters, n));
      for (size_t n = 1; n <= words; ++n) statistics.push_back(compare(hypothesis.words, reference.words, n));
      const double score = f_score(statistics, options.beta);
      if (score > best_score) {
        best_score = score;
        best = std::move(statistics);
      }
    }
    for (size_t n = 0; n < total.size(); ++n) {
      total[n].hypothesis += best[n].hypothesis;
      total[n].reference += best[n].reference;
      total[n].match += best[n].match;
    }
  }
  ChrfScore score;
  score.score = f_score(total, options.beta);
  score.options = options;
  score.references = static_cast<int64_t>(references.size());
  return score;
}

}  // namespace gloss::evaluate
