// From what attention looked at, piece by piece, to links between words.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "gloss/evaluate/alignment.h"
#include "gloss/text/tokenizer.h"

namespace gloss::decode {

// The pieces of one side of a sentence pair.
struct PieceWords {
  std::vector<int32_t> word;      // that a piece belongs to, from 0; -1: to none, as the end symbol
  std::vector<bool> punctuation;  // whether a piece is a punctuation mark
};

// The word of each piece (text::words_of) and whether it is punctuation.
PieceWords words_of_pieces(std::string_view line, std::span<const text::EncodedLine::Span> spans);

// What counts of a target word of several pieces.
enum class TargetPieces {
  mean,   // the mean of their rows
  first,  // the row of the first, where the model chose the word
  each,   // every row links by itself: words are linked if any of their pieces are (Zenkel et al. 2019)
};

// A row that has little to ask of the source parks its attention on the end symbol and the closing marks,
// where it means nothing (Ferrando and Costa-jussà 2021).
enum class EndSymbol {
  next_best,  // does not count: the best word is linked (Garg et al. 2019)
  unlinked,   // a row with more on it than on any word has no link
};
enum class PunctuationSink {
  next_best,  // a mark does not count for words that are none: the best other word is linked
  unlinked,   // a row of a word with more on a mark than on any other word has no link
  word,       // a mark is a word like others
};

struct WordAlignmentOptions {
  TargetPieces target_pieces = TargetPieces::mean;
  EndSymbol end_symbol = EndSymbol::next_best;
  PunctuationSink punctuation = PunctuationSink::next_best;
  // A link needs this share of its row's attention, 0 to 1.
  double minimum = 0;
};

// Links each target word with the source word that attention looked at most: the weights [target pieces,
// source pieces] of a row are added up over the pieces of a source word; of equal words the first is taken; a
// word without weight is never linked. Punctuation is told apart piece by piece, so that in text that is not
// tokenised the full stop of "end." is a sink and "end" is none; target punctuation may link to anything.
// `weights` are those of one head or the mean of several, at whatever step the model's attention aligns.
// Throws Error for sizes that do not fit, and for weights that are not from 0 to 1.
evaluate::Alignment word_alignment(std::span<const float> weights, const PieceWords& source,
                                   const PieceWords& target, const WordAlignmentOptions& options = {});

}  // namespace gloss::decode
