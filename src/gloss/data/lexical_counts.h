// Lexical tables of a model's pieces: counted in linked text, or made of a table of words.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "gloss/data/lexical_table.h"
#include "gloss/data/word_links.h"
#include "gloss/text/tokenizer.h"

namespace gloss::data {

// Counts links between pieces: p(t | s) = c(s, t) / sum over t' of c(s, t') (Koehn, Och and Marcu 2003,
// equation 4). Counts are whole numbers, so that the order of the pairs changes nothing.
class LexicalCounts {
 public:
  // A pair's links, and each of its target pieces once more for NULL, whose row so becomes the share that a
  // piece has of the target text, linked or not; end symbols count nowhere. Throws Error for links outside
  // their sides.
  void add(const text::EncodedLine& source, const text::EncodedLine& target,
           std::span<const PieceLink> links);

  // The `best` most probable targets of each source piece, and NULL's row whole.
  LexicalTable table(int64_t best);
  int64_t links() const { return links_; }  // counted so far
  // H(target | source) of the links in nats: how much doubt a source piece leaves about what it is linked
  // with. Of several ways to link one text the better ones leave less. 0 without links.
  double entropy();

 private:
  struct Count {
    int32_t source, target;
    int64_t times;
  };
  void count(int32_t source, int32_t target);
  void settle();

  std::vector<std::pair<int32_t, int32_t>> fresh_;  // seen since the last settle()
  std::vector<Count> counts_;                       // ascending by source and target, none twice
  int64_t links_ = 0;
};

// The table of pieces that a table of words stands for. Each word is cut into pieces as if it stood alone; a
// piece's row is the sum of the rows of the words it is in, each of whose probabilities is shared out among
// the pieces of the target, and is then made to add up to 1. A word of n pieces weighs 1 / n: what a piece
// means as a word of its own counts most, and how often a word occurs the table does not say. Throws Error as
// read_lexical_lines does, and for a table without lines.
LexicalTable pieces_of_words(const std::filesystem::path& path, const text::Tokenizer& tokenizer,
                             int64_t best);

}  // namespace gloss::data
