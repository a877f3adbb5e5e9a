#include "gloss/text/vocabulary.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "gloss/base/error.h"
#include "gloss/io/atomic_file.h"
#include "gloss/io/input_file.h"
#include "gloss/io/quote.h"

namespace gloss::text {
namespace {

constexpr uint64_t kMaxFileBytes = uint64_t{1} << 28;

// Reads {"piece": id, ...} as events: a document tree would silently keep the last of two equal pieces.
class VocabularyEvents final : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit VocabularyEvents(const std::string& path) : path_(path) {}

  bool start_object(size_t) override {
    if (std::exchange(inside_, true)) bad_value("an object");
    return true;
  }
  bool key(string_t& piece) override {
    piece_ = std::move(piece);
    return true;
  }
  bool number_unsigned(number_unsigned_t id) override {
    if (!inside_) bad_value("a number");
    require(id <= INT32_MAX, "in {} the piece {} has the id {}, which is too large: export the model again",
            path_, io::quoted(piece_), id);
    entries_.emplace_back(static_cast<int32_t>(id), std::move(piece_));
    return true;
  }
  bool number_integer(number_integer_t id) override {
    if (inside_)
      fail("in {} the piece {} has the negative id {}: export the model again", path_, io::quoted(piece_),
           id);
    bad_value("a number");
  }
  bool end_object() override { return true; }
  bool null() override { bad_value("null"); }
  bool boolean(bool) override { bad_value("a boolean"); }
  bool number_float(number_float_t, const string_t&) override { bad_value("a fraction"); }
  bool string(string_t&) override { bad_value("a string"); }
  bool binary(binary_t&) override { bad_value("binary data"); }
  bool start_array(size_t) override { bad_value("an array"); }
  bool end_array() override { return true; }
  bool parse_error(size_t position, const std::string&, const nlohmann::detail::exception&) override {
    fail("{} is not valid JSON (at byte {}): the file is damaged or cut short; copy it again", path_,
         position);
  }

  std::vector<std::pair<int32_t, std::string>> entries_;  // in the order of the file

 private:
  [[noreturn]] void bad_value(std::string_view what) const {
    if (!inside_) fail("{} holds {}, but an object of the form {{\"piece\": id}} is expected", path_, what);
    fail("in {} the piece {} has {} where a whole number is expected", path_, io::quoted(piece_), what);
  }

  const std::string& path_;
  std::string piece_;
  bool inside_ = false;
};

int32_t special(const Vocabulary& vocabulary, std::string_view piece, std::string_view name) {
  const auto id = vocabulary.find(piece);
  require(id.has_value(), "{} misses the piece {}, which every model needs: export the model again", name,
          piece);
  return *id;
}

}  // namespace

Vocabulary::Vocabulary(std::vector<std::string> pieces, std::string_view name) : pieces_(std::move(pieces)) {
  require(pieces_.size() <= INT32_MAX, "{} holds {} pieces, which is too many", name, pieces_.size());
  ids_.reserve(pieces_.size());
  for (int32_t id = 0; id < size(); ++id) {
    const auto [known, fresh] = ids_.try_emplace(pieces_[static_cast<size_t>(id)], id);
    require(fresh, "{} has the piece {} twice, with the ids {} and {}", name, io::quoted(known->first),
            known->second, id);
  }
  end_id_ = special(*this, kEndPiece, name);
  unknown_id_ = special(*this, kUnknownPiece, name);
  pad_id_ = special(*this, kPadPiece, name);
}

Vocabulary Vocabulary::load(const std::filesystem::path& path) {
  const std::string name = path.string();
  const std::string contents = io::read_whole_file(path, kMaxFileBytes);
  VocabularyEvents events(name);
  nlohmann::json::sax_parse(contents, &events);
  auto& entries = events.entries_;
  // As many ids as pieces, so an id past the end or used twice leaves a hole, and the hole is what is
  // reported: the usual cause is a piece that somebody deleted.
  const size_t count = entries.size();
  std::sort(entries.begin(), entries.end());
  std::vector<std::string> pieces;
  pieces.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    auto& [id, piece] = entries[i];
    const auto expected = static_cast<int32_t>(i);
    if (id < expected)
      fail(
          "in {} the pieces {} and {} both have the id {}: every id must belong to one piece; export the "
          "model "
          "again",
          name, io::quoted(pieces.back()), io::quoted(piece), id);
    require(id == expected,
            "{} misses a piece: no piece has the id {} (the next is {}, id {}), but the ids of {} pieces "
            "must run "
            "from 0 to {}; export the model again",
            name, expected, io::quoted(piece), id, count, count - 1);
    pieces.push_back(std::move(piece));
  }
  return Vocabulary(std::move(pieces), name);
}

void Vocabulary::save(const std::filesystem::path& path) const {
  // In the order of ids, as a reader expects it; the text is UTF-8 as it stands.
  std::string contents = "{";
  for (int32_t id = 0; id < size(); ++id)
    contents += fmt::format("{}\n  {}: {}", id > 0 ? "," : "",
                            nlohmann::json(pieces_[static_cast<size_t>(id)]).dump(), id);
  contents += "\n}\n";
  io::write_file_atomically(path, contents);
}

std::optional<int32_t> Vocabulary::find(std::string_view piece) const {
  const auto found = ids_.find(piece);
  if (found == ids_.end()) return std::nullopt;
  return found->second;
}

const std::string& Vocabulary::piece(int32_t id) const {
  require(id >= 0 && id < size(), "there is no piece {} in a vocabulary of {} pieces", id, size());
  return pieces_[static_cast<size_t>(id)];
}

}  // namespace gloss::text
