#include "gloss/inspect/svg_path.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <initializer_list>
#include <span>
#include <system_error>
#include <utility>

namespace gloss::inspect {
namespace {

// In hundredths.
struct Place {
  int64_t x = 0, y = 0;
};

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  // The next command; 0 at the end.
  char command() {
    skip_spaces();
    if (text_.empty()) return 0;
    const char letter = text_.front();
    text_.remove_prefix(1);
    return letter;
  }
  bool places(std::span<Place> places) {
    for (Place& place : places) {
      if (!number(place.x) || !number(place.y)) return false;
    }
    return true;
  }

 private:
  void skip_spaces() { text_.remove_prefix(std::min(text_.find_first_not_of(' '), text_.size())); }
  bool number(int64_t& hundredths) {
    constexpr double kMost = 1e9;
    skip_spaces();
    double value = 0;
    const auto [end, error] = std::from_chars(text_.data(), text_.data() + text_.size(), value);
    if (error != std::errc() || !(std::abs(value) < kMost)) return false;
    text_.remove_prefix(static_cast<size_t>(end - text_.data()));
    hundredths = std::llround(value * 100);
    return true;
  }

  std::string_view text_;
};

// "12", ".5", "-1.25"
std::string number_text(int64_t hundredths) {
  const int64_t size = std::abs(hundredths), whole = size / 100, part = size % 100;
  std::string text = hundredths < 0 ? "-" : "";
  if (whole > 0 || part == 0) text += std::to_string(whole);
  if (part > 0) {
    text += '.';
    text += static_cast<char>('0' + part / 10);
    if (part % 10 > 0) text += static_cast<char>('0' + part % 10);
  }
  return text;
}

class Writer {
 public:
  // A letter is said once for all its repetitions, and spaces stand only where two numbers would be one.
  void command(char letter, std::initializer_list<int64_t> numbers) {
    bool behind_number = letter == last_;
    if (!behind_number) out_ += letter;
    for (const int64_t number : numbers) {
      const std::string text = number_text(number);
      const bool stands_out = text.front() == '-' || (text.front() == '.' && has_point_);
      if (behind_number && !stands_out) out_ += ' ';
      out_ += text;
      has_point_ = text.find('.') != std::string::npos;
      behind_number = true;
    }
    // Numbers behind a move would be lines, and z has none.
    last_ = numbers.size() == 0 || letter == 'm' ? '\0' : letter;
  }
  std::string text() && { return std::move(out_); }

 private:
  std::string out_;
  char last_ = 0;
  bool has_point_ = false;  // in the last number
};

}  // namespace

std::string short_path(std::string_view path) {
  Reader reader(path);
  Writer writer;
  Place at, start;       // where the pen is, and where its outline began
  Place from;            // where it was before a move that waits for something to follow
  bool waiting = false;  // such a move
  while (const char letter = reader.command()) {
    std::array<Place, 3> to;
    const size_t places = letter == 'C' ? 3 : letter == 'M' || letter == 'L' ? 1 : 0;
    if ((places == 0 && letter != 'Z') || !reader.places(std::span(to).first(places)))
      return std::string(path);
    if (letter == 'M') {
      if (!waiting) from = at;
      at = start = to[0];
      waiting = true;
      continue;
    }
    if (waiting) writer.command('m', {start.x - from.x, start.y - from.y});
    waiting = false;
    if (letter == 'Z') {
      writer.command('z', {});
      at = start;
    } else if (letter == 'C') {
      writer.command('c', {to[0].x - at.x, to[0].y - at.y, to[1].x - at.x, to[1].y - at.y, to[2].x - at.x,
                           to[2].y - at.y});
      at = to[2];
    } else {
      const int64_t x = to[0].x - at.x, y = to[0].y - at.y;
      if (y == 0) {
        writer.command('h', {x});
      } else if (x == 0) {
        writer.command('v', {y});
      } else {
        writer.command('l', {x, y});
      }
      at = to[0];
    }
  }
  return std::move(writer).text();
}

}  // namespace gloss::inspect
