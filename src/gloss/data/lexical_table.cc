#include "gloss/data/lexical_table.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <optional>
#include <tuple>

#include "gloss/base/error.h"
#include "gloss/io/quote.h"
#include "gloss/text/lines.h"

namespace gloss::data {
namespace {

constexpr std::string_view kSpaces = " \t";

// The next field of a line, which is cut off; empty at its end.
std::string_view take_field(std::string_view& line) {
  const size_t begin = line.find_first_not_of(kSpaces);
  if (begin == std::string_view::npos) return line = {};
  const size_t end = std::min(line.find_first_of(kSpaces, begin), line.size());
  const std::string_view field = line.substr(begin, end - begin);
  line.remove_prefix(end);
  return field;
}

// In the nearest float, whatever the language of the system; what is too small for one is 0.
std::optional<float> probability_of(std::string_view text) {
  const char* const end = text.data() + text.size();
  float number = 0;
  auto read = std::from_chars(text.data(), end, number);
  if (read.ec == std::errc::result_out_of_range) {
    double wide = 0;
    read = std::from_chars(text.data(), end, wide);
    if (wide < 0 || wide >= 1) return std::nullopt;
    number = 0;
  }
  if (read.ec != std::errc() || read.ptr != end || !(number >= 0 && number <= 1)) return std::nullopt;
  return std::fabs(number);  // of -0
}

// Whether a line can hold a piece, for readers that part fields at any white space of ASCII.
bool fits_a_line(std::string_view piece) {
  return !piece.empty() && piece != kNullWord && piece.find_first_of(" \t\n\v\f\r") == std::string_view::npos;
}

// An entry and where it came from, in 16 bytes.
struct ReadEntry {
  LexicalEntry entry;
  int32_t line = 0;
};

void refuse_twice(std::vector<ReadEntry>& entries, const std::string& name, const text::Vocabulary& source,
                  const text::Vocabulary& target) {
  const auto pair = [](const ReadEntry& each) { return std::pair(each.entry.source, each.entry.target); };
  std::ranges::sort(entries, {}, [&](const ReadEntry& each) {
    return std::tuple(each.entry.source, each.entry.target, each.line);
  });
  const auto twice = std::ranges::adjacent_find(entries, {}, pair);
  if (twice == entries.end()) return;
  const LexicalEntry& entry = twice->entry;
  fail("{} has the target {} of the source {} twice, in the lines {} and {}: leave out one of them", name,
       io::in_quotes(target.piece(entry.target)),
       io::in_quotes(entry.source == kNoSource ? kNullWord : source.piece(entry.source)), twice->line,
       std::next(twice)->line);
}

}  // namespace

void read_lexical_lines(const std::filesystem::path& path, const LexicalVisitor& visit) {
  text::LineReader reader(path);
  for (text::Line line; reader.next(line);) {
    std::string_view rest = line.text;
    LexicalLine parts;
    parts.target = take_field(rest);
    parts.source = take_field(rest);
    const std::string_view number = take_field(rest);
    const auto where = [&] { return fmt::format("line {} of {}", line.number, path.string()); };
    if (number.empty() || !take_field(rest).empty())
      fail("{} is {}, but a target, a source and a probability are expected, parted by spaces", where(),
           io::in_quotes(line.text));
    const std::optional<float> probability = probability_of(number);
    if (!probability)
      fail("{} has the probability {}, but a number from 0 to 1 is expected behind target and source",
           where(), io::in_quotes(number));
    parts.probability = *probability;
    visit(parts, line.number);
  }
}

void sort_lexical(std::vector<LexicalEntry>& entries) {
  std::ranges::sort(entries, {}, [](const LexicalEntry& entry) {
    return std::tuple(entry.source, -entry.probability, entry.target);
  });
}

LexicalTable read_lexical_table(const std::filesystem::path& path, const text::Vocabulary& source,
                                const text::Vocabulary& target) {
  const std::string name = path.string();
  LexicalTable table;
  std::vector<ReadEntry> entries;
  read_lexical_lines(path, [&](const LexicalLine& line, int64_t number) {
    require(number <= INT32_MAX, "{} has more than {} lines, which is too many", name, INT32_MAX);
    if (line.target == kNullWord) return;  // says what is not translated: no piece comes of it
    const std::optional<int32_t> from = line.source == kNullWord ? kNoSource : source.find(line.source),
                                 to = target.find(line.target);
    if (!from || !to) {
      ++table.unknown_lines;
      return;
    }
    entries.push_back({{*from, *to, line.probability}, static_cast<int32_t>(number)});
  });
  if (entries.empty())
    fail("{} has no line with a piece of both vocabularies: make the table with this model (gloss shortlist)",
         name);
  refuse_twice(entries, name, source, target);
  table.entries.reserve(entries.size());
  for (const ReadEntry& each : entries) table.entries.push_back(each.entry);
  sort_lexical(table.entries);
  return table;
}

int64_t write_lexical_table(const LexicalTable& table, const text::Vocabulary& source,
                            const text::Vocabulary& target,
                            const std::function<void(std::string_view text)>& write) {
  constexpr size_t kSome = size_t{1} << 16;
  int64_t left_out = 0;
  std::string text;
  for (const LexicalEntry& entry : table.entries) {
    const std::string& to = target.piece(entry.target);
    const bool any_source = entry.source == kNoSource;
    const std::string_view from = any_source ? kNullWord : std::string_view(source.piece(entry.source));
    if (!fits_a_line(to) || !(any_source || fits_a_line(from))) {
      ++left_out;
      continue;
    }
    fmt::format_to(std::back_inserter(text), "{} {} {}\n", to, from, entry.probability);
    if (text.size() < kSome) continue;
    write(text);
    text.clear();
  }
  if (!text.empty()) write(text);
  return left_out;
}

}  // namespace gloss::data
