// WordLinks: which words of a parallel corpus translate each other, line by line.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "gloss/data/corpus.h"
#include "gloss/data/indexed_lines.h"
#include "gloss/evaluate/alignment.h"
#include "gloss/text/tokenizer.h"

namespace gloss::data {

// A target piece of a pair and a source piece of the word that it is linked with, both from 0.
struct PieceLink {
  int32_t target = 0, source = 0;
  bool operator==(const PieceLink&) const = default;
};

// A side of a pair and the pieces that its line was made into.
struct PairSide {
  std::string_view line;
  const text::EncodedLine& pieces;
};

// Every piece of a target word with every piece of the source words it is linked with, ascending by target,
// then source. The end symbols have no links.
std::vector<PieceLink> links_of_pieces(const evaluate::Alignment& alignment, const PairSide& source,
                                       const PairSide& target);

// A file of Moses' format beside a corpus: "0-0 1-2", source word - target word (text::words_of), a line a
// pair; a blank line has no links. Lines stay in the file, as the corpus' do.
class WordLinks {
 public:
  // Reads both once. Throws Error, naming file and line, for what evaluate::read_alignment refuses, for links
  // outside their sentences, and unless there are as many lines as pairs.
  WordLinks(const std::filesystem::path& path, const ParallelCorpus& corpus);

  // Those of pair `index`, by links_of_pieces.
  std::vector<PieceLink> of_pieces(int64_t index, const PairSide& source, const PairSide& target) const;

  // 16 hexadecimal digits that stand for all lines.
  std::string fingerprint() const;

 private:
  IndexedLines lines_;
};

}  // namespace gloss::data
