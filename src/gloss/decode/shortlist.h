// The target pieces that are likely for a sentence, so that the output layer need not score the others (Jean
// et al. 2015, section 3.3; Marian's --shortlist).
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "gloss/data/lexical_table.h"
#include "gloss/text/tokenizer.h"

namespace gloss::decode {

// Marian's numbers.
struct ShortlistOptions {
  int32_t first = 100;  // pieces that every sentence gets
  int32_t best = 100;   // translations of each source piece
  float threshold = 0;  // a translation counts if it is more probable than this
};

// Immutable; threads may share one.
class Shortlist {
 public:
  // The pieces of every sentence are the most probable ones of the table's row of NULL, of equals those with
  // the lower id, and where that row is short or missing the lowest ids of the vocabulary, as in Marian;
  // <pad> is none of them. `gloss shortlist` writes how frequent each piece is into that row, because ids are
  // not in the order of frequency: BPE numbers pieces by merges and single characters last, and a joint
  // vocabulary has those of both languages. Throws UsageError for options that make no sense.
  Shortlist(const data::LexicalTable& table, const text::Vocabulary& source, const text::Vocabulary& target,
            const ShortlistOptions& options = {});
  // Of a file: data::read_lexical_table. Throws Error, too, where most of its lines have words that are no
  // pieces of the vocabularies: it is the table of another model.
  static Shortlist load(const std::filesystem::path& path, const text::Tokenizer& tokenizer,
                        const ShortlistOptions& options = {});

  // The ids, ascending and none twice, for one sentence, never for a batch: what a sentence becomes must not
  // depend on its company. They are the pieces that every sentence gets, with </s> and <unk>, the best
  // translations of each source piece, and the target pieces with the same text as a source piece, of which
  // names and numbers are made. Throws Error for ids outside the source vocabulary.
  std::vector<int32_t> tokens(std::span<const int32_t> source_ids) const;

  int32_t target_size() const { return target_size_; }  // pieces of the target vocabulary
  // Lines of the file with words that are no pieces of the vocabularies.
  int64_t unknown_lines() const { return unknown_lines_; }

 private:
  std::vector<uint64_t> always_;  // a bit a target piece
  std::vector<int64_t> offsets_;  // of source piece s: targets_[offsets_[s], offsets_[s + 1])
  std::vector<int32_t> targets_;
  int32_t target_size_ = 0;
  int64_t unknown_lines_ = 0;
};

}  // namespace gloss::decode
