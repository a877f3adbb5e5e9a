#include "gloss/text/vocabulary.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "gloss/base/error.h"
#include "gloss/io/atomic_file.h"
#include "gloss/io/input_file.h"
#include "gloss/io/json_file.h"
#include "gloss/io/quote.h"

namespace gloss::text {
namespace {

int32_t special(const Vocabulary& vocabulary, std::string_view piece, std::string_view name) {
  const auto id = vocabulary.find(piece);
  require(id.has_value(), "{} misses the piece {}, which every model needs: export the model again", name,
          piece);
  return *id;
}

// Reads {"piece": id, ...} event by event, which takes a fifth of the time that a tree of it does. Stops at
// anything else.
class PiecesReader : public nlohmann::json_sax<nlohmann::json> {
 public:
  bool key(std::string& piece) override {
    entries_.emplace_back(-1, std::move(piece));
    return true;
  }
  bool number_unsigned(uint64_t id) override {
    if (depth_ != 1 || id > INT32_MAX) return false;
    entries_.back().first = static_cast<int64_t>(id);
    return true;
  }
  bool start_object(size_t) override { return ++depth_ == 1; }
  bool end_object() override { return true; }

  bool null() override { return false; }
  bool boolean(bool) override { return false; }
  bool number_integer(int64_t) override { return false; }
  bool number_float(double, const std::string&) override { return false; }
  bool string(std::string&) override { return false; }
  bool binary(nlohmann::json::binary_t&) override { return false; }
  bool start_array(size_t) override { return false; }
  bool end_array() override { return false; }
  bool parse_error(size_t, const std::string&, const nlohmann::json::exception&) override { return false; }

  // In the order of their ids; nothing where an id is missing or stands twice.
  std::optional<std::vector<std::string>> pieces() && {
    std::vector<std::string> result(entries_.size());
    std::vector<bool> taken(entries_.size());
    for (auto& [id, piece] : entries_) {
      const auto i = static_cast<size_t>(id);
      if (i >= result.size() || taken[i]) return std::nullopt;
      taken[i] = true;
      result[i] = std::move(piece);
    }
    return result;
  }

 private:
  int depth_ = 0;
  std::vector<std::pair<int64_t, std::string>> entries_;
};

std::optional<std::vector<std::string>> plain_pieces(std::string_view text) {
  PiecesReader reader;
  // The parser takes a NUL for the end.
  if (text.find('\0') != std::string_view::npos || !nlohmann::json::sax_parse(text, &reader))
    return std::nullopt;
  return std::move(reader).pieces();
}

}  // namespace

Vocabulary::Vocabulary(std::vector<std::string> pieces, std::string_view name) : pieces_(std::move(pieces)) {
  require(pieces_.size() <= INT32_MAX, "{} holds {} pieces, which is too many", name, pieces_.size());
  ids_.reserve(pieces_.size());
  for (int32_t id = 0; id < size(); ++id) {
    const auto [known, fresh] = ids_.try_emplace(pieces_[static_cast<size_t>(id)], id);
    require(fresh, "{} has the piece {} twice, with the ids {} and {}", name, io::in_quotes(known->first),
            known->second, id);
  }
  end_id_ = special(*this, kEndPiece, name);
  unknown_id_ = special(*this, kUnknownPiece, name);
  pad_id_ = special(*this, kPadPiece, name);
}

Vocabulary Vocabulary::load(const std::filesystem::path& path) {
  const std::string name = path.string();
  const std::string text = io::read_whole_file(path, io::JsonLimits().bytes);
  if (auto pieces = plain_pieces(text)) return Vocabulary(std::move(*pieces), name);
  // Something is wrong with it, and the tree tells what.
  const nlohmann::json json = io::parse_json(text, name);
  require(json.is_object(), "{} holds {}, but an object of the form {{\"piece\": id}} is expected", name,
          json.is_array() ? "a list" : "a " + std::string(json.type_name()));
  std::vector<std::pair<int64_t, std::string>> entries;
  entries.reserve(json.size());
  for (const auto& [piece, id] : json.items()) {
    if (!id.is_number_integer())
      fail("in {} the piece {} has {} where a whole number is expected", name, io::in_quotes(piece),
           io::abridged(id.dump()));
    // A number beyond 2^63 wraps to a negative one and is refused as well.
    if (id.get<int64_t>() < 0)
      fail("in {} the piece {} has the id {}, which is outside 0 to {}", name, io::in_quotes(piece),
           io::abridged(id.dump()), json.size() - 1);
    entries.emplace_back(id.get<int64_t>(), piece);
  }
  // As many ids as pieces, so an id past the end leaves a hole, and the hole is what is reported: the usual
  // cause is a piece that somebody deleted.
  std::sort(entries.begin(), entries.end());
  const auto twice = std::ranges::adjacent_find(entries, {}, &std::pair<int64_t, std::string>::first);
  if (twice != entries.end())
    fail("in {} the pieces {} and {} both have the id {}: export the model again", name,
         io::in_quotes(twice->second), io::in_quotes(std::next(twice)->second), twice->first);
  std::vector<std::string> pieces;
  pieces.reserve(entries.size());
  for (auto& [id, piece] : entries) {
    const auto expected = static_cast<int64_t>(pieces.size());
    if (id != expected)
      fail("{} misses a piece: none of its {} has the id {} (the next is {}, id {}): export the model again",
           name, entries.size(), expected, io::in_quotes(piece), id);
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
