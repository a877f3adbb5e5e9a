#include "gloss/evaluate/alignment.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <optional>

#include "gloss/base/error.h"
#include "gloss/io/quote.h"
#include "gloss/text/words.h"

namespace gloss::evaluate {
namespace {

using io::in_quotes;
using text::words_of;

// Where a link stands, for messages.
struct Place {
  const std::string& name;
  size_t line;  // from 1

  template <class... Args>
  [[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) const {
    fail("line {} of {}: {}", line, name, fmt::format(format, std::forward<Args>(args)...));
  }
};

// A number of digits only; no sign, no space. -1 when it is none, kHighestWord + 1 for everything above.
int64_t number_of(std::string_view text) {
  int64_t value = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return -1;
    value = std::min<int64_t>(10 * value + (c - '0'), kHighestWord + 1);
  }
  return text.empty() ? -1 : value;
}

struct Pair {
  int64_t source, target;  // as they are written
  char separator;
};

// "2-1", "2p1": two numbers and one of the separators.
std::optional<Pair> pair_of(std::string_view word, std::string_view separators) {
  const size_t middle = word.find_first_of(separators);
  if (middle == std::string_view::npos) return std::nullopt;
  const Pair pair{number_of(word.substr(0, middle)), number_of(word.substr(middle + 1)), word[middle]};
  if (pair.source < 0 || pair.target < 0) return std::nullopt;
  return pair;
}

// The link of two numbers that count from `base`, inside its sentences where these are known.
Link link_of(const Pair& pair, int32_t base, const WordCounts* words, std::string_view word,
             const Place& place) {
  if (pair.source < base || pair.target < base)
    place.refuse(
        "the link {} has a word 0, but the first is 1: if the file counts from 0, give --gold-base 0",
        in_quotes(word));
  const int64_t source = pair.source - base, target = pair.target - base;
  if (source > kHighestWord || target > kHighestWord)
    place.refuse("the link {} names a word beyond the {}th", in_quotes(word), kHighestWord + 1);
  if (words && (source >= words->source || target >= words->target))
    place.refuse("the link {} is outside its sentences, which have {} and {} words, counted from {}",
                 in_quotes(word), words->source, words->target, base);
  return {static_cast<int32_t>(source), static_cast<int32_t>(target)};
}

void require_counts(std::span<const WordCounts> words, size_t sentences, const std::string& name) {
  require(words.empty() || words.size() == sentences,
          "{} has {} lines, but there are {} sentence pairs: each needs its line", name, sentences,
          words.size());
}

const WordCounts* words_at(std::span<const WordCounts> words, size_t sentence) {
  return words.empty() ? nullptr : &words[sentence];
}

void add(GoldAlignment& gold, const Link& link, bool sure) {
  if (sure) gold.sure.push_back(link);
  gold.possible.push_back(link);
}

void read_sentence_lines(const std::vector<std::string>& lines, const std::string& name,
                         const GoldOptions& options, std::vector<GoldAlignment>& gold) {
  require(lines.size() == gold.size(),
          "{} has {} lines, but there are {} sentence pairs: each needs its line", name, lines.size(),
          gold.size());
  for (size_t s = 0; s < lines.size(); ++s) {
    const Place place{name, s + 1};
    for (const std::string_view word : words_of(lines[s])) {
      const std::optional<Pair> pair = pair_of(word, "-p?");
      if (!pair)
        place.refuse(
            "{} is no link: expected are a source word and a target word, 2-1 if sure, 2p1 if possible",
            in_quotes(word));
      add(gold[s], link_of(*pair, options.base, words_at(options.words, s), word, place),
          pair->separator == '-');
    }
  }
}

bool is_confidence(std::string_view word) {
  double value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  return error == std::errc() && end == word.data() + word.size();
}

void read_link_lines(const std::vector<std::string>& lines, const std::string& name,
                     const GoldOptions& options, std::vector<GoldAlignment>& gold) {
  for (size_t i = 0; i < lines.size(); ++i) {
    const Place place{name, i + 1};
    const auto words = words_of(lines[i]);
    if (words.empty()) continue;
    const auto letter = [&](std::string_view word) { return word == "S" || word == "P"; };
    const bool lettered = words.size() > 3 && letter(words[3]);
    const size_t most = lettered ? 5 : 4;
    const bool fits =
        words.size() >= 3 && words.size() <= most && (words.size() < most || is_confidence(words[most - 1]));
    const int64_t sentence = fits ? number_of(words[0]) : -1;
    const Pair pair{fits ? number_of(words[1]) : -1, fits ? number_of(words[2]) : -1, ' '};
    if (sentence < 0 || pair.source < 0 || pair.target < 0)
      place.refuse("{} is no link: expected are sentence, source word, target word, then S or P if given",
                   in_quotes(lines[i]));
    if (sentence < 1 || sentence > static_cast<int64_t>(gold.size()))
      place.refuse("there is no sentence {}: there are {}, counted from 1", words[0], gold.size());
    const auto s = static_cast<size_t>(sentence - 1);
    add(gold[s], link_of(pair, options.base, words_at(options.words, s), lines[i], place),
        !(lettered && words[3] == "P"));
  }
}

// Whether the first line with anything on it begins with a bare number.
bool has_link_lines(const std::vector<std::string>& lines) {
  for (const std::string& line : lines) {
    const auto words = words_of(line);
    if (!words.empty()) return number_of(words[0]) >= 0;
  }
  return false;
}

int64_t common(const Alignment& a, const Alignment& b) {
  int64_t count = 0;
  for (const Link& link : a) count += std::ranges::binary_search(b, link);
  return count;
}

double ratio(int64_t part, int64_t whole) {
  return whole == 0 ? 1 : static_cast<double>(part) / static_cast<double>(whole);
}

}  // namespace

Alignment in_order(std::vector<Link> links) {
  std::ranges::sort(links);
  links.erase(std::unique(links.begin(), links.end()), links.end());
  return links;
}

Alignment read_alignment(std::string_view line, size_t number, const std::string& name,
                         const WordCounts* words) {
  const Place place{name, number};
  std::vector<Link> links;
  for (const std::string_view word : words_of(line)) {
    const std::optional<Pair> pair = pair_of(word, "-");
    if (!pair)
      place.refuse("{} is no link: expected are a source word and a target word, counted from 0, as in 0-2",
                   in_quotes(word));
    links.push_back(link_of(*pair, 0, words, word, place));
  }
  return in_order(std::move(links));
}

std::vector<Alignment> read_alignments(const std::vector<std::string>& lines, const std::string& name,
                                       std::span<const WordCounts> words) {
  require_counts(words, lines.size(), name);
  std::vector<Alignment> alignments;
  alignments.reserve(lines.size());
  for (size_t s = 0; s < lines.size(); ++s)
    alignments.push_back(read_alignment(lines[s], s + 1, name, words_at(words, s)));
  return alignments;
}

std::string moses_line(const Alignment& alignment) {
  std::string line;
  for (const Link& link : alignment) {
    if (!line.empty()) line += ' ';
    fmt::format_to(std::back_inserter(line), "{}-{}", link.source, link.target);
  }
  return line;
}

std::vector<GoldAlignment> read_gold(const std::vector<std::string>& lines, const std::string& name,
                                     int64_t sentences, const GoldOptions& options) {
  require(options.base == 0 || options.base == 1, "the first word is number 0 or 1, not {}", options.base);
  require(sentences >= 0, "there cannot be {} sentence pairs", sentences);
  std::vector<GoldAlignment> gold(static_cast<size_t>(sentences));
  require_counts(options.words, gold.size(), name);
  if (has_link_lines(lines)) {
    read_link_lines(lines, name, options, gold);
  } else {
    read_sentence_lines(lines, name, options, gold);
  }
  for (GoldAlignment& each : gold) {
    each.sure = in_order(std::move(each.sure));
    each.possible = in_order(std::move(each.possible));
  }
  return gold;
}

double AerScore::precision() const {
  return ratio(links_in_possible, links);
}
double AerScore::recall() const {
  return ratio(links_in_sure, sure);
}
double AerScore::aer() const {
  return 1 - ratio(links_in_sure + links_in_possible, links + sure);
}

AerScore aer(const std::vector<Alignment>& alignments, const std::vector<GoldAlignment>& gold) {
  require(alignments.size() == gold.size(),
          "there are {} alignments and {} gold alignments: each needs its own", alignments.size(),
          gold.size());
  AerScore score;
  for (size_t s = 0; s < gold.size(); ++s) {
    ++score.sentences;
    score.links += static_cast<int64_t>(alignments[s].size());
    score.sure += static_cast<int64_t>(gold[s].sure.size());
    score.possible += static_cast<int64_t>(gold[s].possible.size());
    score.links_in_sure += common(alignments[s], gold[s].sure);
    score.links_in_possible += common(alignments[s], gold[s].possible);
  }
  require(score.links + score.sure > 0,
          "there is nothing to score: no sentence has a link or a sure gold link");
  return score;
}

}  // namespace gloss::evaluate
