// Segmenter: a line of text into subword pieces and back, by a SentencePiece model.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace gloss::text {

// SentencePiece's mark for a space in front of a word (U+2581).
inline constexpr std::string_view kSpaceMark = "\xE2\x96\x81";

// A piece and the bytes [begin, end) of the line that it came from. Normalisation (NFKC, white space) changes
// bytes, so a piece need not equal its bytes. Spans never overlap and never fall; where one character becomes
// several pieces, the last of them has its bytes and the others are empty. A span may begin with the space
// that the piece's mark stands for.
struct Piece {
  std::string text;
  int32_t id = 0;  // SentencePiece's own number, never the model's
  int64_t begin = 0;
  int64_t end = 0;
};

// Copies share the model. All functions are const and may be called by several threads at the same time.
class Segmenter {
 public:
  // Throws Error when the file is missing, cut short or no SentencePiece model.
  static Segmenter load(const std::filesystem::path& path);
  // The same from the bytes of a model file; `name` stands in messages.
  static Segmenter from_bytes(std::string bytes, std::string_view name);
  // Writes exactly the bytes that were loaded or trained.
  void save(const std::filesystem::path& path) const;

  // A run of characters that the model does not know is one piece with the id unknown_id().
  std::vector<Piece> encode(std::string_view line) const;
  // The ids alone, which is faster.
  void encode(std::string_view line, std::vector<int32_t>& ids) const;

  // The text of pieces: marks become spaces (the first one nothing), byte pieces (<0xE2>) their bytes,
  // control pieces nothing. Pieces that the model does not know are welcome: a vocabulary that two languages
  // share has pieces of the other one's model.
  std::string decode(const std::vector<std::string_view>& pieces) const;

  int32_t size() const;        // pieces
  int32_t unknown_id() const;  // SentencePiece's number of <unk>
  const std::string& piece(int32_t id) const;
  const std::string& bytes() const;

 private:
  struct Model;
  explicit Segmenter(std::shared_ptr<const Model> model) : model_(std::move(model)) {}
  std::shared_ptr<const Model> model_;
};

}  // namespace gloss::text
