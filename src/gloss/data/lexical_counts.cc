#include "gloss/data/lexical_counts.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "gloss/base/error.h"

namespace gloss::data {
namespace {

constexpr size_t kFresh = size_t{1} << 22;  // 32 MB

// Ends each row but NULL's after its `best` first entries. `entries` are in order.
void keep_best(std::vector<LexicalEntry>& entries, int64_t best) {
  int64_t place = 0;
  int32_t row = kNoSource;
  std::erase_if(entries, [&](const LexicalEntry& entry) {
    place = entry.source == row ? place + 1 : 0;
    row = entry.source;
    return row != kNoSource && place >= best;
  });
}

// Turns the weights of each row, of entries ascending by source, into probabilities, and sorts.
template <class Weighted>
std::vector<LexicalEntry> table_of(std::span<const Weighted> weighted, int64_t best) {
  require(best >= 1, "{} translations a piece are too few: ask for 1 or more", best);
  std::vector<LexicalEntry> entries;
  entries.reserve(weighted.size());
  for (size_t begin = 0, end = 0; begin < weighted.size(); begin = end) {
    double total = 0;
    for (; end < weighted.size() && weighted[end].source == weighted[begin].source; ++end)
      total += static_cast<double>(weighted[end].times);
    for (size_t i = begin; i < end && total > 0; ++i)
      entries.push_back({weighted[i].source, weighted[i].target,
                         static_cast<float>(static_cast<double>(weighted[i].times) / total)});
  }
  sort_lexical(entries);
  keep_best(entries, best);
  return entries;
}

}  // namespace

void LexicalCounts::count(int32_t source, int32_t target) {
  fresh_.emplace_back(source, target);
  if (fresh_.size() >= kFresh) settle();
}

// Adds the fresh pairs to the counts.
void LexicalCounts::settle() {
  std::ranges::sort(fresh_);
  std::vector<Count> merged;
  auto old = counts_.cbegin();
  for (size_t begin = 0, end = 0; begin < fresh_.size(); begin = end) {
    const int32_t source = fresh_[begin].first, target = fresh_[begin].second;
    while (end < fresh_.size() && fresh_[end] == fresh_[begin]) ++end;
    const auto before = [&](const Count& each) {
      return std::pair(each.source, each.target) < std::pair(source, target);
    };
    for (; old != counts_.cend() && before(*old); ++old) merged.push_back(*old);
    Count now{source, target, static_cast<int64_t>(end - begin)};
    if (old != counts_.cend() && old->source == source && old->target == target) now.times += (old++)->times;
    merged.push_back(now);
  }
  merged.insert(merged.end(), old, counts_.cend());
  counts_ = std::move(merged);
  fresh_.clear();
}

void LexicalCounts::add(const text::EncodedLine& source, const text::EncodedLine& target,
                        std::span<const PieceLink> links) {
  const auto of = [](const text::EncodedLine& side, int32_t piece) {
    const auto place = static_cast<size_t>(piece);
    require(piece >= 0 && place < side.ids.size(), "a link is to piece {} of {}", piece, side.ids.size());
    return side.ids[place];
  };
  for (const PieceLink& link : links) {
    count(of(source, link.source), of(target, link.target));
    ++links_;
  }
  for (size_t i = 0; i + 1 < target.ids.size(); ++i) count(kNoSource, target.ids[i]);
}

LexicalTable LexicalCounts::table(int64_t best) {
  settle();
  return {table_of<Count>(counts_, best), 0};
}

double LexicalCounts::entropy() {
  settle();
  double sum = 0;
  for (size_t begin = 0, end = 0; begin < counts_.size(); begin = end) {
    double total = 0, own = 0;
    for (; end < counts_.size() && counts_[end].source == counts_[begin].source; ++end) {
      const auto times = static_cast<double>(counts_[end].times);
      total += times;
      own += times * std::log(times);
    }
    if (counts_[begin].source != kNoSource) sum += total * std::log(total) - own;
  }
  return links_ == 0 ? 0 : sum / static_cast<double>(links_);
}

LexicalTable pieces_of_words(const std::filesystem::path& path, const text::Tokenizer& tokenizer,
                             int64_t best) {
  using Pieces = std::unordered_map<std::string, std::vector<int32_t>>;
  Pieces sources{{std::string(kNullWord), {kNoSource}}}, targets;
  const auto cut = [](Pieces& known, std::string_view word, auto&& encode) -> const std::vector<int32_t>& {
    const auto [place, fresh] = known.try_emplace(std::string(word));
    if (fresh) {
      place->second = encode(word);
      place->second.pop_back();  // the end symbol
    }
    return place->second;
  };
  struct Share {
    int32_t source, target;
    double times;
  };
  std::vector<Share> shares;
  read_lexical_lines(path, [&](const LexicalLine& line, int64_t) {
    if (line.target == kNullWord) return;
    const auto& from =
        cut(sources, line.source, [&](std::string_view word) { return tokenizer.encode_source_ids(word); });
    const auto& to =
        cut(targets, line.target, [&](std::string_view word) { return tokenizer.encode_target_ids(word); });
    const double share = static_cast<double>(line.probability) / static_cast<double>(from.size() * to.size());
    for (const int32_t s : from) {
      for (const int32_t t : to) shares.push_back({s, t, share});
    }
  });
  require(!shares.empty(), "{} has no pair of words: a line has a target, a source and a probability",
          path.string());
  // Sums of floats depend on their order: they are added up from the smallest, whatever the order of the
  // lines.
  std::ranges::sort(shares, {},
                    [](const Share& each) { return std::tuple(each.source, each.target, each.times); });
  size_t kept = 0;
  for (size_t i = 1; i < shares.size(); ++i) {
    if (shares[i].source == shares[kept].source && shares[i].target == shares[kept].target) {
      shares[kept].times += shares[i].times;
    } else {
      shares[++kept] = shares[i];
    }
  }
  shares.resize(kept + 1);
  return {table_of<Share>(shares, best), 0};
}

}  // namespace gloss::data
