// Vocabulary: which number the model knows a piece by.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace gloss::text {

inline constexpr std::string_view kEndPiece = "</s>";
inline constexpr std::string_view kUnknownPiece = "<unk>";
inline constexpr std::string_view kPadPiece = "<pad>";

// The contents of a Marian folder's vocab.json: an object {"piece": id}, ids 0 to size - 1, each once. These
// are the ids of the model; SentencePiece numbers its pieces in its own way.
class Vocabulary {
 public:
  Vocabulary() = default;
  // pieces[id]; `name` stands in messages. Throws when a piece occurs twice or a special one is missing.
  explicit Vocabulary(std::vector<std::string> pieces, std::string_view name = "the vocabulary");

  // Throws Error when the file is no such object, an id is missing, negative, too large or used twice, a
  // piece occurs twice, or one of </s>, <unk> and <pad> is missing.
  static Vocabulary load(const std::filesystem::path& path);
  void save(const std::filesystem::path& path) const;

  int32_t size() const { return static_cast<int32_t>(pieces_.size()); }
  std::optional<int32_t> find(std::string_view piece) const;
  int32_t id_or_unknown(std::string_view piece) const { return find(piece).value_or(unknown_id_); }
  // Throws when `id` is outside [0, size).
  const std::string& piece(int32_t id) const;

  int32_t end_id() const { return end_id_; }          // </s>
  int32_t unknown_id() const { return unknown_id_; }  // <unk>
  int32_t pad_id() const { return pad_id_; }          // <pad>
  bool operator==(const Vocabulary& other) const { return pieces_ == other.pieces_; }

 private:
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
  };
  std::vector<std::string> pieces_;
  std::unordered_map<std::string, int32_t, Hash, std::equal_to<>> ids_;
  int32_t end_id_ = 0;
  int32_t unknown_id_ = 0;
  int32_t pad_id_ = 0;
};

}  // namespace gloss::text
