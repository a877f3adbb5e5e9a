#include "gloss/decode/word_alignment.h"

#include <algorithm>

#include "gloss/base/error.h"
#include "gloss/text/punctuation.h"
#include "gloss/text/space.h"
#include "gloss/text/words.h"

namespace gloss::decode {

using text::kNoWord;

namespace {

using evaluate::Link;

void check(const PieceWords& pieces, const char* side) {
  require(pieces.word.size() == pieces.punctuation.size(), "{} {} pieces with words, {} with punctuation",
          pieces.word.size(), side, pieces.punctuation.size());
  for (const int32_t word : pieces.word)
    require(word >= kNoWord && word <= evaluate::kHighestWord, "a {} piece has the word {}", side, word);
}

size_t word_count(const PieceWords& pieces) {
  int32_t count = 0;
  for (const int32_t word : pieces.word) count = std::max(count, word + 1);
  return static_cast<size_t>(count);
}

// What one row of weights, or a sum of rows, says.
class Row {
 public:
  Row(const PieceWords& source, size_t words, const WordAlignmentOptions& options)
      : source_(source), options_(options), words_(words), marks_(words) {}

  // The source word to link with, or kNoWord. `weights`: one a source piece, a share of the row's attention.
  int32_t best(const std::vector<double>& weights, bool is_punctuation) {
    std::ranges::fill(words_, 0);
    std::ranges::fill(marks_, 0);
    double end = 0;
    const bool apart = !is_punctuation && options_.punctuation != PunctuationSink::word;
    for (size_t j = 0; j < weights.size(); ++j) {
      const int32_t word = source_.word[j];
      if (word == kNoWord) {
        end += weights[j];
      } else {
        (apart && source_.punctuation[j] ? marks_ : words_)[static_cast<size_t>(word)] += weights[j];
      }
    }
    const auto most = std::ranges::max_element(words_);
    if (most == words_.end() || *most <= 0 || *most < options_.minimum) return kNoWord;
    if (options_.end_symbol == EndSymbol::unlinked && end > *most) return kNoWord;
    if (options_.punctuation == PunctuationSink::unlinked && *std::ranges::max_element(marks_) > *most)
      return kNoWord;
    return static_cast<int32_t>(most - words_.begin());
  }

 private:
  const PieceWords& source_;
  const WordAlignmentOptions& options_;
  std::vector<double> words_, marks_;  // a source word: what its pieces and its punctuation marks got
};

}  // namespace

PieceWords words_of_pieces(std::string_view line, std::span<const text::EncodedLine::Span> spans) {
  PieceWords pieces{text::words_of(line, spans).word_of, {}};
  for (const text::EncodedLine::Span& span : spans) {
    const auto begin = static_cast<size_t>(span.begin), length = static_cast<size_t>(span.end - span.begin);
    pieces.punctuation.push_back(text::is_punctuation(text::trimmed(line.substr(begin, length))));
  }
  return pieces;
}

evaluate::Alignment word_alignment(std::span<const float> weights, const PieceWords& source,
                                   const PieceWords& target, const WordAlignmentOptions& options) {
  check(source, "source");
  check(target, "target");
  const size_t n_s = source.word.size(), n_t = target.word.size();
  require(weights.size() == n_s * n_t, "{} weights for {} target and {} source pieces", weights.size(), n_t,
          n_s);
  constexpr float kRounding = 1e-3f;
  require(std::ranges::all_of(weights, [](float weight) { return weight >= 0 && weight <= 1 + kRounding; }),
          "attention weights are shares of a row, from 0 to 1, and others were given");
  require(options.minimum >= 0 && options.minimum <= 1, "the least share of attention is {}, not 0 to 1",
          options.minimum);

  // The target pieces of each word, in order.
  std::vector<std::vector<size_t>> pieces(word_count(target));
  for (size_t i = 0; i < n_t; ++i) {
    if (target.word[i] != kNoWord) pieces[static_cast<size_t>(target.word[i])].push_back(i);
  }
  std::vector<Link> links;
  Row row(source, word_count(source), options);
  std::vector<double> total(n_s);
  // Links word t as the mean of the rows of some of its pieces has it.
  const auto link = [&](size_t t, std::span<const size_t> rows) {
    std::ranges::fill(total, 0);
    bool is_punctuation = true;
    for (const size_t i : rows) {
      for (size_t j = 0; j < n_s; ++j)
        total[j] += static_cast<double>(weights[i * n_s + j]) / static_cast<double>(rows.size());
      is_punctuation &= target.punctuation[i];
    }
    const int32_t best = row.best(total, is_punctuation);
    if (best != kNoWord) links.push_back({best, static_cast<int32_t>(t)});
  };
  for (size_t t = 0; t < pieces.size(); ++t) {
    const std::span<const size_t> all(pieces[t]);
    if (all.empty()) continue;  // nothing of it is left, as of a character that normalisation drops
    switch (options.target_pieces) {
      case TargetPieces::mean:
        link(t, all);
        break;
      case TargetPieces::first:
        link(t, all.first(1));
        break;
      case TargetPieces::each:
        for (const size_t& piece : all) link(t, {&piece, 1});
        break;
    }
  }
  return evaluate::in_order(std::move(links));
}

}  // namespace gloss::decode
