// Tokenizer: lines of source and target text to and from the numbers that a model works with.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gloss/text/segmenter.h"
#include "gloss/text/vocabulary.h"

namespace gloss::text {

// A line as the model sees it, and where in the line each id stands.
struct EncodedLine {
  struct Span {
    int64_t begin = 0;  // bytes [begin, end) of the line; </s> has the empty span at its end
    int64_t end = 0;
    bool starts_word = false;
  };
  std::vector<int32_t> ids;  // </s> last
  std::vector<Span> spans;   // one an id
};

// How an <unk> that the model produced is shown.
struct UnknownRepair {
  std::string_view source_line;           // what `source` was made from
  const EncodedLine* source = nullptr;    // null: no copying
  std::span<const int32_t> aligned_to{};  // for each target id the source position it looked at, -1 for none
  std::string_view otherwise = "";        // what stands for an <unk> that nothing was copied for
};

// SentencePiece models and vocabularies of a Marian model folder: source.spm, target.spm, vocab.json and,
// where the languages have vocabularies of their own, target_vocab.json. Immutable; copies share; threads may
// share.
class Tokenizer {
 public:
  // Throws Error when a vocabulary has little in common with its segmentation model.
  Tokenizer(Segmenter source, Segmenter target, Vocabulary shared_vocabulary);
  Tokenizer(Segmenter source, Segmenter target, Vocabulary source_vocabulary, Vocabulary target_vocabulary);

  // Throws Error, naming the file, for what is missing, damaged or does not fit together.
  static Tokenizer load(const std::filesystem::path& folder);
  // Writes the files above and tokenizer_config.json, as Hugging Face's MarianTokenizer reads them. The
  // languages ("en", "de") may be empty.
  void save(const std::filesystem::path& folder, std::string_view source_language = "",
            std::string_view target_language = "") const;

  // A leading ">>xxx<<" that the vocabulary has stays whole: it tells multilingual models the target
  // language.
  EncodedLine encode_source(std::string_view line) const;
  EncodedLine encode_target(std::string_view line) const;
  // The ids alone, </s> last: what training needs, and faster. A line without text gives </s> alone.
  std::vector<int32_t> encode_source_ids(std::string_view line) const;
  std::vector<int32_t> encode_target_ids(std::string_view line) const;

  // The text of target ids; </s> and <pad> give nothing. An <unk> becomes a copy of the source text that it
  // is aligned to, which begins a word where its source does; of neighbours aligned to one place only the
  // first copies.
  std::string decode_target(std::span<const int32_t> ids, const UnknownRepair& repair = {}) const;

  const Segmenter& source_segmenter() const { return source_.segmenter; }
  const Segmenter& target_segmenter() const { return target_.segmenter; }
  const Vocabulary& source_vocabulary() const { return *source_.vocabulary; }
  const Vocabulary& target_vocabulary() const { return *target_.vocabulary; }
  bool shares_vocabulary() const { return source_.vocabulary == target_.vocabulary; }

  // Throws Error unless the vocabularies have as many pieces as the model has embeddings for, and the id that
  // ends its sentences is that of </s>; `folder` stands in the message.
  void require_fits(int64_t source_size, int64_t target_size, int32_t end_id,
                    const std::filesystem::path& folder) const;

 private:
  struct Side {
    Segmenter segmenter;
    std::shared_ptr<const Vocabulary> vocabulary;
    std::vector<int32_t> ids;  // by SentencePiece's number: the model's; kLookUp for <unk>
  };
  Tokenizer(Side source, Side target) : source_(std::move(source)), target_(std::move(target)) {}
  static Side side(Segmenter segmenter, std::shared_ptr<const Vocabulary> vocabulary, std::string_view name);
  static int32_t id_of(const Side& side, const Piece& piece);
  static size_t language_tag(const Side& side, std::string_view line);
  static EncodedLine encode(const Side& side, std::string_view line);
  static std::vector<int32_t> encode_ids(const Side& side, std::string_view line);

  Side source_;
  Side target_;
};

}  // namespace gloss::text
