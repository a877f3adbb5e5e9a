// Word alignments: the links between the words of a sentence and those of its translation, the files that
// hold them, and how far they agree with a person's (Och and Ney 2003).
#pragma once

#include <compare>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gloss::evaluate {

// A source word and the target word that translates it, both counted from 0.
struct Link {
  int32_t source = 0, target = 0;
  auto operator<=>(const Link&) const = default;  // NOLINT(modernize-use-nullptr): it means the 0 of `< 0`
};

// The links of one sentence pair: ascending by source, then target, none twice.
using Alignment = std::vector<Link>;
Alignment in_order(std::vector<Link> links);

// No sentence has a word of a higher number: what a file claims beyond it is an error.
inline constexpr int32_t kHighestWord = 999'999;

// How many words the sentences of a pair have.
struct WordCounts {
  int64_t source = 0, target = 0;
};

// A line of a Moses (Pharaoh) file, "0-0 1-2": source-target, words (text::words_of) counted from 0, in any
// order; a blank line has no links, a link that stands twice counts once. With `words` a link outside its
// sentences is an error. Throws Error that names the line's `number` and the file (`name`) for everything
// else: nothing is guessed, not a base of 1 either.
Alignment read_alignment(std::string_view line, size_t number, const std::string& name,
                         const WordCounts* words = nullptr);
// The lines of a whole file; `words`, if given, are as many.
std::vector<Alignment> read_alignments(const std::vector<std::string>& lines, const std::string& name,
                                       std::span<const WordCounts> words = {});
// The line of an alignment, without a newline.
std::string moses_line(const Alignment& alignment);

// What a person linked: S, which is sure, and P, which is possible and holds S.
struct GoldAlignment {
  Alignment sure, possible;
};

struct GoldOptions {
  // The number of the first word. 1 in the Hansards file, in those of the shared tasks and in RWTH's.
  int32_t base = 1;
  std::span<const WordCounts> words{};  // as in read_alignments
};

// The gold alignments of `sentences` sentence pairs, from one of two layouts, told apart by the first line
// that is not blank. The first number of a link is the source word, the second the target word.
//  - A line a sentence: "2-1 1p3 2?2". `i-j` is sure, `ipj` (Hansards, TALP) or `i?j` (cdec) is possible
//  only.
//  - A line a link, of the shared tasks of 2003 and 2005 (Mihalcea and Pedersen 2003): "sentence i j [S|P]
//    [confidence]". Sentences are counted from 1, and one that does not occur has no links; without a letter
//    a link is sure; the confidence is not used.
// A link that stands twice counts once, and is sure if it is so once. Throws Error that names line and file.
std::vector<GoldAlignment> read_gold(const std::vector<std::string>& lines, const std::string& name,
                                     int64_t sentences, const GoldOptions& options = {});

// Och and Ney 2003, section 5, with the counts of all sentences added up first.
struct AerScore {
  int64_t sentences = 0;
  int64_t links = 0;              // |A|
  int64_t sure = 0;               // |S|
  int64_t possible = 0;           // |P|, S among them
  int64_t links_in_sure = 0;      // |A n S|
  int64_t links_in_possible = 0;  // |A n P|

  double precision() const;  // |A n P| / |A|, 1 without links
  double recall() const;     // |A n S| / |S|, 1 where nothing is sure
  double aer() const;        // 1 - (|A n S| + |A n P|) / (|A| + |S|)
};

// Throws Error unless there are as many alignments as gold alignments, and anything to score.
AerScore aer(const std::vector<Alignment>& alignments, const std::vector<GoldAlignment>& gold);

}  // namespace gloss::evaluate
