#include "gloss/lab/csv.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <string_view>

#include "gloss/base/error.h"
#include "gloss/io/quote.h"
#include "gloss/text/lines.h"

namespace gloss::lab {
namespace {

using io::in_quotes;

std::string_view trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

std::optional<double> number_of(std::string_view text) {
  if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

// Outside quotes, so that a header of quoted names keeps its commas.
char separator_of(std::string_view line) {
  for (const char separator : {';', '\t'}) {
    bool quoted = false;
    for (const char c : line) {
      if (c == '"') quoted = !quoted;
      if (c == separator && !quoted) return separator;
    }
  }
  return ',';
}

// The cells of a line. A quoted cell ends in its line: numbers have no line breaks.
std::vector<std::string> cells_of(std::string_view line, char separator, const std::string& where) {
  std::vector<std::string> cells(1);
  bool quoted = false;
  for (size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (c == '"' && quoted && i + 1 < line.size() && line[i + 1] == '"') {
      cells.back() += line[++i];
    } else if (c == '"') {
      quoted = !quoted;
    } else if (c == separator && !quoted) {
      cells.emplace_back();
    } else {
      cells.back() += c;
    }
  }
  require(!quoted, "{}: a quote opens and does not close in its line", where);
  for (std::string& cell : cells) cell = trimmed(cell);
  return cells;
}

// Columns by name, or by number from 1.
std::vector<size_t> find_columns(const std::vector<std::string>& header,
                                 const std::vector<std::string>& wanted, const std::string& path) {
  std::vector<size_t> found;
  for (const std::string& name : wanted) {
    const auto at = number_of(name) ? header.end() : std::ranges::find(header, name);
    if (at != header.end() && std::find(at + 1, header.end(), name) != header.end())
      fail("{} has several columns {}: say which by its number, from 1", path, in_quotes(name));
    size_t number = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
    const bool is_number = error == std::errc() && end == name.data() + name.size();
    if (at != header.end()) {
      found.push_back(static_cast<size_t>(at - header.begin()));
    } else if (is_number && number >= 1 && number <= header.size()) {
      found.push_back(number - 1);
    } else {
      fail("{} has no column {}: its first line has {}", path, in_quotes(name),
           io::abridged(fmt::format("{}", fmt::join(header, ", "))));
    }
  }
  return found;
}

}  // namespace

NumberColumns read_csv(const std::filesystem::path& path, const std::vector<std::string>& wanted) {
  const std::string shown = io::shown(path);
  text::LineReader reader(path);
  NumberColumns table;
  table.columns.resize(wanted.size());
  std::vector<size_t> found;
  char separator = ',';
  bool header = false;
  text::Line line;
  while (reader.next(line)) {
    if (trimmed(line.text).empty()) continue;
    const bool first = found.empty();
    if (first) separator = separator_of(line.text);
    const std::vector<std::string> cells =
        cells_of(line.text, separator, fmt::format("{}, line {}", shown, line.number));
    if (first) {
      found = find_columns(cells, wanted, shown);
      // A row of names has no number; one that has some is data, whose other cells are then complained of.
      header = std::ranges::none_of(found, [&](size_t c) { return number_of(cells[c]).has_value(); });
      for (const size_t c : found)
        table.names.push_back(header ? io::abridged(cells[c]) : fmt::format("column {}", c + 1));
      if (header) continue;
    }
    require(static_cast<int64_t>(table.columns.front().size()) < kMostRows,
            "{} has more than {} rows of numbers: give a part of it", shown, kMostRows);
    for (size_t i = 0; i < found.size(); ++i) {
      const size_t c = found[i];
      require(c < cells.size(), "{}, line {}: column {} was expected, but the line has {} cell{}", shown,
              line.number, c + 1, cells.size(), cells.size() == 1 ? "" : "s");
      const std::optional<double> value = number_of(cells[c]);
      if (!value) {
        fail("{}, line {}, column {}{}: a number was expected, not {}", shown, line.number, c + 1,
             header ? fmt::format(" ({})", table.names[i]) : "", in_quotes(cells[c]));
      }
      table.columns[i].push_back(*value);
    }
  }
  require(!table.columns.front().empty(), "{} holds no row of numbers", shown);
  return table;
}

}  // namespace gloss::lab
