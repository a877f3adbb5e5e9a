// Making segmentation models and vocabularies from the text that a translation model will be trained on.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "gloss/text/lines.h"
#include "gloss/text/segmenter.h"
#include "gloss/text/tokenizer.h"

namespace gloss::text {

enum class SegmentationKind { bpe, unigram };

struct SegmenterOptions {
  SegmentationKind kind = SegmentationKind::bpe;
  int32_t pieces = 8000;  // at most, </s> and <unk> among them
  double character_coverage =
      1.0;  // share of the text whose characters get pieces, 0.98 to 1; below 1 the rarest do not
  bool split_digits = false;  // every digit a piece of its own
  // SentencePiece's name of what happens to characters first: nmt_nfkc (as in Marian), nfkc, identity, ...
  std::string normalisation = "nmt_nfkc";
  // Larger corpora are sampled: evenly over all lines, the same lines for the same seed. Both limits bound
  // memory; 0 bytes means 64 MiB for bpe and 16 MiB for unigram, whose suffix array needs some 20 times its
  // text.
  int64_t max_lines = 500'000;
  int64_t max_bytes = 0;
  uint64_t seed = 1;
  InvalidUtf8 invalid = InvalidUtf8::fail;
};

struct TrainedSegmenter {
  Segmenter segmenter;
  int32_t requested = 0;   // pieces
  int32_t actual = 0;      // pieces
  int64_t lines = 0;       // with text
  int64_t lines_used = 0;  // of those
  std::string message;     // what the user should know, one sentence; empty when all went as asked
};

// Trains one model on all lines of all files. Deterministic. Throws Error when the files hold no text, or
// more different characters than `pieces` can hold.
TrainedSegmenter train_segmenter(std::span<const std::filesystem::path> files,
                                 const SegmenterOptions& options);

struct TokenizerOptions {
  SegmenterOptions segmenter;      // its `pieces` follows from vocabulary_size
  int32_t vocabulary_size = 8000;  // at most, a vocabulary; </s>, <unk> and <pad> among them
  bool joint = true;               // one model and one vocabulary for both languages
};

struct TrainedTokenizer {
  Tokenizer tokenizer;
  std::vector<std::string> messages;  // of train_segmenter
};

// Numbers: </s> 0, <unk> 1, then the pieces, <pad> last, as Marian folders have it.
TrainedTokenizer train_tokenizer(const std::filesystem::path& source, const std::filesystem::path& target,
                                 const TokenizerOptions& options);

}  // namespace gloss::text
