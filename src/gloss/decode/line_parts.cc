#include "gloss/decode/line_parts.h"

#include <algorithm>
#include <cstdlib>

#include "gloss/text/sentences.h"
#include "gloss/text/space.h"
#include "gloss/text/utf8.h"

namespace gloss::decode {
namespace {

// Bytes [begin, end) of the line.
struct Range {
  size_t begin = 0, end = 0;
};

Range trimmed(std::string_view line, Range range) {
  const std::string_view text = text::trimmed(line.substr(range.begin, range.end - range.begin));
  const auto begin = static_cast<size_t>(text.data() - line.data());
  return {begin, begin + text.size()};
}

std::vector<Range> sentences_of(std::string_view line, Range range) {
  std::vector<Range> sentences;
  for (const size_t start : text::sentence_starts(line.substr(range.begin, range.end - range.begin))) {
    if (!sentences.empty()) sentences.back().end = range.begin + start;
    sentences.push_back({range.begin + start, range.end});
  }
  return sentences;
}

// How good it is to cut in front of a piece.
enum class Border : uint8_t { piece, word, sentence };

// What stands in front of each piece of `source`, which is that of `text`.
std::vector<Border> borders_of(std::string_view text, const text::EncodedLine& source) {
  std::vector<Border> borders;
  for (const auto& span : source.spans) borders.push_back(span.starts_word ? Border::word : Border::piece);
  size_t piece = 0;
  for (const size_t start : text::sentence_starts(text)) {
    while (piece < source.spans.size() && static_cast<size_t>(source.spans[piece].end) <= start) ++piece;
    if (piece == source.spans.size()) break;
    if (text::skip_spaces(text, static_cast<size_t>(source.spans[piece].begin)) >= start)
      borders[piece] = Border::sentence;
  }
  return borders;
}

// Cuts `range`, whose pieces are `source`, into parts of at most `max_pieces`, of about equal length.
std::vector<Range> cut(std::string_view line, Range range, const text::EncodedLine& source,
                       int64_t max_pieces) {
  const std::string_view text = line.substr(range.begin, range.end - range.begin);
  const std::vector<Border> borders = borders_of(text, source);
  const auto byte_of = [&](int64_t piece) {
    return range.begin + text::floor_to_character(
                             text, static_cast<size_t>(source.spans[static_cast<size_t>(piece)].begin));
  };
  const auto count = static_cast<int64_t>(source.ids.size()) - 1;
  std::vector<Range> parts{range};
  for (int64_t from = 0; count - from > max_pieces;) {
    const int64_t left = count - from;
    const int64_t ideal = left / ((left + max_pieces - 1) / max_pieces);
    int64_t best = -1;
    const auto better = [&](int64_t piece) {
      if (best < 0) return true;
      const Border a = borders[static_cast<size_t>(piece)], b = borders[static_cast<size_t>(best)];
      return a != b ? a > b : std::abs(piece - from - ideal) < std::abs(best - from - ideal);
    };
    for (int64_t piece = from + (ideal + 1) / 2; piece <= from + max_pieces; ++piece) {
      if (byte_of(piece) > parts.back().begin && better(piece)) best = piece;
    }
    if (best < 0) break;  // one character of very many pieces
    const size_t at = byte_of(best);
    parts.back().end = at;
    parts.push_back({at, range.end});
    from = best;
  }
  return parts;
}

// A language tag that the tokenizer keeps whole; every part needs it.
std::string_view tag_of(std::string_view line, const text::EncodedLine& source) {
  if (!line.starts_with(">>") || source.spans.empty()) return {};
  const std::string_view first = line.substr(0, static_cast<size_t>(source.spans.front().end));
  return first.ends_with("<<") ? first : std::string_view();
}

}  // namespace

std::vector<LinePart> split_line(const text::Tokenizer& tokenizer, std::string_view line,
                                 const Splitting& splitting) {
  text::EncodedLine whole = tokenizer.encode_source(line);
  const auto pieces = [](const text::EncodedLine& source) {
    return static_cast<int64_t>(source.ids.size()) - 1;  // without the end symbol
  };
  if (text::is_blank(line) || pieces(whole) == 0) return {};
  std::vector<LinePart> parts;
  if (!splitting.sentences && pieces(whole) <= splitting.max_pieces) {
    parts.push_back({std::string(line), std::move(whole), {}});
    return parts;
  }

  const std::string tag(tag_of(line, whole));
  const Range all{tag.size(), line.size()};
  size_t previous_end = tag.size();
  for (const Range& section : splitting.sentences ? sentences_of(line, all) : std::vector<Range>{all}) {
    const std::string_view text = line.substr(section.begin, section.end - section.begin);
    const text::EncodedLine source = tokenizer.encode_source(text);
    for (const Range& piece_range : cut(line, section, source, splitting.max_pieces)) {
      const Range range = trimmed(line, piece_range);
      if (range.begin == range.end) continue;
      LinePart part{tag, {}, {}};
      part.text.append(line.substr(range.begin, range.end - range.begin));
      part.source = tokenizer.encode_source(part.text);
      if (pieces(part.source) == (tag.empty() ? 0 : 1)) continue;
      if (!parts.empty()) {
        part.joint = line.substr(previous_end, range.begin - previous_end);
        // Sentences that stand close together, as in Chinese, are apart in most other scripts.
        if (part.joint.empty() && range.begin == section.begin) part.joint.assign(1, ' ');
      }
      previous_end = range.end;
      parts.push_back(std::move(part));
    }
  }
  return parts;
}

}  // namespace gloss::decode
