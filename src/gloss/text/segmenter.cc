#include "gloss/text/segmenter.h"

#include <sentencepiece_processor.h>

#include <charconv>
#include <exception>

#include "gloss/base/error.h"
#include "gloss/io/atomic_file.h"
#include "gloss/io/input_file.h"
#include "gloss/text/utf8.h"

namespace gloss::text {
namespace {

constexpr uint64_t kMaxModelBytes = uint64_t{1} << 28;

// The pieces stand in front of a model file and its normalisation behind them. A file that is cut between two
// pieces is still a valid message, so SentencePiece would load it and then split everything differently: the
// last part has to be there. Walks the fields of the outermost message (protocol buffers' wire format).
bool has_normalisation(std::string_view bytes) {
  constexpr uint64_t kNormaliserField = 3;
  const auto varint = [&](uint64_t& value) {
    value = 0;
    for (unsigned shift = 0; shift < 64 && !bytes.empty(); shift += 7) {
      const auto byte = static_cast<unsigned char>(bytes.front());
      bytes.remove_prefix(1);
      value |= uint64_t{byte & 0x7Fu} << shift;
      if (byte < 0x80) return true;
    }
    return false;
  };
  bool found = false;
  while (!bytes.empty()) {
    uint64_t tag, length;
    constexpr uint64_t kLengthDelimited = 2;
    if (!varint(tag) || (tag & 7) != kLengthDelimited || !varint(length) || length > bytes.size())
      return false;
    found |= (tag >> 3) == kNormaliserField;
    bytes.remove_prefix(length);
  }
  return found;
}

// SentencePiece's time grows with the square of a line where its characters have no pieces, so a very long
// line is split part by part: at spaces, which no piece crosses, or where there is none between two
// characters. Calls run(part, begin, within_word) for parts of at most kPartBytes, in order.
template <class Run>
void for_parts(std::string_view line, Run run) {
  constexpr size_t kPartBytes = size_t{1} << 15;
  size_t begin = 0;
  bool within_word = false;
  while (line.size() - begin > kPartBytes) {
    size_t end = line.rfind(' ', begin + kPartBytes);
    const bool cuts_word = end == std::string_view::npos || end <= begin;
    if (cuts_word) end = floor_to_character(line, begin + kPartBytes);
    run(line.substr(begin, end - begin), begin, within_word);
    begin = end;
    within_word = cuts_word;
  }
  run(line.substr(begin), begin, within_word);
}

// "<0xE2>" is the byte E2.
char byte_of(std::string_view piece) {
  unsigned value = 0;
  if (piece.size() == 6) std::from_chars(piece.data() + 3, piece.data() + 5, value, 16);
  return static_cast<char>(value);
}

}  // namespace

struct Segmenter::Model {
  sentencepiece::SentencePieceProcessor processor;
  std::string bytes;
};

Segmenter Segmenter::load(const std::filesystem::path& path) {
  return from_bytes(io::read_whole_file(path, kMaxModelBytes), path.string());
}

Segmenter Segmenter::from_bytes(std::string bytes, std::string_view name) {
  require(has_normalisation(bytes),
          "{} is not a whole SentencePiece model: the file is damaged or cut short; copy it again", name);
  auto model = std::make_shared<Model>();
  bool loaded = false;
  try {
    loaded = model->processor.LoadFromSerializedProto(bytes).ok();
  } catch (const std::exception&) {  // of its tries, when a damaged one asks for memory that is not there
  }
  require(loaded, "{} is not a SentencePiece model: the file is damaged; copy it again", name);
  model->bytes = std::move(bytes);
  return Segmenter(std::move(model));
}

void Segmenter::save(const std::filesystem::path& path) const {
  io::write_file_atomically(path, model_->bytes);
}

std::vector<Piece> Segmenter::encode(std::string_view line) const {
  std::vector<Piece> pieces;
  for_parts(line, [&](std::string_view part, size_t at, bool within_word) {
    sentencepiece::ImmutableSentencePieceText encoded;
    const auto status = model_->processor.Encode(part, encoded.mutable_proto());
    require(status.ok(), "a line cannot be split into pieces: {}", status.error_message());
    pieces.reserve(pieces.size() + encoded.pieces_size());
    const auto begin = static_cast<int64_t>(at);
    for (size_t i = 0; i < encoded.pieces_size(); ++i) {
      const auto piece = encoded.pieces(static_cast<int>(i));
      pieces.push_back(
          {piece.piece(), static_cast<int32_t>(piece.id()), begin + piece.begin(), begin + piece.end()});
      // The mark of a space that is not there.
      if (!within_word || i > 0 || !pieces.back().text.starts_with(kSpaceMark)) continue;
      pieces.back().text.erase(0, kSpaceMark.size());
      pieces.back().id = model_->processor.PieceToId(pieces.back().text);
      if (pieces.back().text.empty()) pieces.pop_back();
    }
  });
  return pieces;
}

void Segmenter::encode(std::string_view line, std::vector<int32_t>& ids) const {
  std::vector<int32_t> part_ids;
  for_parts(line, [&](std::string_view part, size_t at, bool within_word) {
    const auto& processor = model_->processor;
    const auto status = processor.Encode(part, at == 0 ? &ids : &part_ids);
    require(status.ok(), "a line cannot be split into pieces: {}", status.error_message());
    if (at == 0) return;  // and nearly every line has one part
    auto first = part_ids.begin();
    if (within_word && first != part_ids.end() && processor.IdToPiece(*first).starts_with(kSpaceMark)) {
      // The mark of a space that is not there.
      const std::string rest = processor.IdToPiece(*first).substr(kSpaceMark.size());
      if (rest.empty()) {
        ++first;
      } else {
        *first = processor.PieceToId(rest);
      }
    }
    ids.insert(ids.end(), first, part_ids.end());
  });
}

std::string Segmenter::decode(const std::vector<std::string_view>& pieces) const {
  const auto& processor = model_->processor;
  std::string text;
  bool start = true, bytes = false;
  for (std::string_view piece : pieces) {
    const int id = processor.PieceToId(piece);
    if (processor.IsControl(id)) continue;
    if (processor.IsByte(id)) {
      text.push_back(byte_of(piece));
      bytes = true;
    } else {
      if (start && piece.starts_with(kSpaceMark)) piece.remove_prefix(kSpaceMark.size());
      for (size_t mark; (mark = piece.find(kSpaceMark)) != std::string_view::npos;) {
        text.append(piece.substr(0, mark)).push_back(' ');
        piece.remove_prefix(mark + kSpaceMark.size());
      }
      text.append(piece);
    }
    start = false;
  }
  return bytes ? replace_invalid_utf8(text) : text;  // byte pieces can be put together in any way
}

int32_t Segmenter::size() const {
  return model_->processor.GetPieceSize();
}
int32_t Segmenter::unknown_id() const {
  return model_->processor.unk_id();
}
const std::string& Segmenter::piece(int32_t id) const {
  require(id >= 0 && id < size(), "there is no piece {} in a segmentation model of {} pieces", id, size());
  return model_->processor.IdToPiece(id);
}
const std::string& Segmenter::bytes() const {
  return model_->bytes;
}

}  // namespace gloss::text
