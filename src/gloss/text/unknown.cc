#include "gloss/text/unknown.h"

#include <unicode/uchar.h>
#include <unicode/utf8.h>

#include <algorithm>

#include "gloss/base/error.h"
#include "gloss/text/utf8.h"

namespace gloss::text {
namespace {

bool is_letter(std::string_view character) {
  UChar32 c = 0;
  U8_GET(reinterpret_cast<const uint8_t*>(character.data()), 0, 0, static_cast<int32_t>(character.size()), c);
  return c >= 0 && (u_isalnum(c) || u_getCombiningClass(c) != 0);
}
bool begins_with_letter(std::string_view text) {
  return !text.empty() && is_letter(text);
}
bool ends_with_letter(std::string_view text) {
  return !text.empty() && is_letter(text.substr(floor_to_character(text, text.size() - 1)));
}

std::string_view text_of(std::string_view line, const EncodedLine::Span& span) {
  return line.substr(static_cast<size_t>(span.begin), static_cast<size_t>(span.end - span.begin));
}

// Source positions [first, last] that are copied together: an unknown piece and the letters it touches.
struct Word {
  size_t first, last;
};
Word word_around(std::string_view line, const EncodedLine& source, size_t position) {
  const auto& spans = source.spans;
  Word word{position, position};
  while (word.first > 0 && !spans[word.first].starts_word &&
         begins_with_letter(text_of(line, spans[word.first])) &&
         ends_with_letter(text_of(line, spans[word.first - 1])))
    --word.first;
  while (word.last + 1 < spans.size() && !spans[word.last + 1].starts_word &&
         ends_with_letter(text_of(line, spans[word.last])) &&
         begins_with_letter(text_of(line, spans[word.last + 1])))
    ++word.last;
  return word;
}

// Where in the target a copy of `position` goes: where attention looked at it, else behind what was made of
// the source before it; never inside a word.
size_t place_for(const Tokenizer& tokenizer, std::span<const int32_t> ids,
                 std::span<const int32_t> aligned_to, int32_t position) {
  const Vocabulary& vocabulary = tokenizer.target_vocabulary();
  size_t place = 0;
  int32_t nearest = -1;
  for (size_t i = 0; i < ids.size() && ids[i] != vocabulary.end_id(); ++i) {
    if (aligned_to[i] == position) {
      place = i;
      break;
    }
    if (aligned_to[i] >= 0 && aligned_to[i] < position && aligned_to[i] >= nearest) {
      nearest = aligned_to[i];
      place = i + 1;
    }
  }
  while (place < ids.size() && ids[place] != vocabulary.end_id() &&
         !vocabulary.piece(ids[place]).starts_with(kSpaceMark))
    ++place;
  return place;
}

}  // namespace

std::string decode_with_unknowns(const Tokenizer& tokenizer, std::string_view line, const EncodedLine& source,
                                 std::span<const int32_t> ids, std::span<const int32_t> aligned_to) {
  require(ids.size() == aligned_to.size(), "{} target ids need as many alignments, not {}", ids.size(),
          aligned_to.size());
  const int32_t unknown = tokenizer.target_vocabulary().unknown_id();
  std::vector<bool> copied(source.ids.size());
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] == unknown && aligned_to[i] >= 0) copied.at(static_cast<size_t>(aligned_to[i])) = true;
  }
  struct Copy {
    size_t place;
    int32_t position;
  };
  std::vector<Copy> copies;
  EncodedLine widened = source;
  for (size_t position = 0; position < source.ids.size(); ++position) {
    if (source.ids[position] != tokenizer.source_vocabulary().unknown_id() || copied[position]) continue;
    const Word word = word_around(line, source, position);
    if (std::find(copied.begin() + static_cast<std::ptrdiff_t>(word.first),
                  copied.begin() + static_cast<std::ptrdiff_t>(word.last) + 1,
                  true) != copied.begin() + static_cast<std::ptrdiff_t>(word.last) + 1)
      continue;  // the model copies this word itself, as far as it does
    std::fill(copied.begin() + static_cast<std::ptrdiff_t>(word.first),
              copied.begin() + static_cast<std::ptrdiff_t>(word.last) + 1, true);
    widened.spans[position] = {source.spans[word.first].begin, source.spans[word.last].end,
                               source.spans[word.first].starts_word};
    const auto number = static_cast<int32_t>(position);
    copies.push_back({place_for(tokenizer, ids, aligned_to, number), number});
  }
  std::stable_sort(copies.begin(), copies.end(),
                   [](const Copy& a, const Copy& b) { return a.place < b.place; });

  std::vector<int32_t> all_ids, all_aligned;
  auto next = copies.begin();
  for (size_t i = 0; i <= ids.size(); ++i) {
    for (; next != copies.end() && next->place == i; ++next) {
      all_ids.push_back(unknown);
      all_aligned.push_back(next->position);
    }
    if (i == ids.size()) break;
    all_ids.push_back(ids[i]);
    all_aligned.push_back(aligned_to[i]);
  }
  return tokenizer.decode_target(all_ids, {line, &widened, all_aligned});
}

}  // namespace gloss::text
