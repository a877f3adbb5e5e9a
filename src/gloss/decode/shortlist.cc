#include "gloss/decode/shortlist.h"

#include <algorithm>
#include <bit>

#include "gloss/base/error.h"

namespace gloss::decode {
namespace {

constexpr int32_t kBits = 64;

bool test(const std::vector<uint64_t>& bits, int32_t id) {
  return (bits[static_cast<size_t>(id / kBits)] >> (id % kBits) & 1) != 0;
}
void set(std::vector<uint64_t>& bits, int32_t id) {
  bits[static_cast<size_t>(id / kBits)] |= uint64_t{1} << (id % kBits);
}

void check(const ShortlistOptions& options) {
  if (options.first < 0 || options.best < 0)
    throw UsageError(fmt::format("a shortlist of the first {} and the best {} pieces: no number is below 0",
                                 options.first, options.best));
  if (!(options.threshold >= 0 && options.threshold <= 1))
    throw UsageError(fmt::format("the threshold of a shortlist is {}, but a probability is expected, 0 to 1",
                                 options.threshold));
}

}  // namespace

Shortlist::Shortlist(const data::LexicalTable& table, const text::Vocabulary& source,
                     const text::Vocabulary& target, const ShortlistOptions& options)
    : always_(static_cast<size_t>((target.size() + kBits - 1) / kBits)),
      target_size_(target.size()),
      unknown_lines_(table.unknown_lines) {
  check(options);
  for (const data::LexicalEntry& each : table.entries)
    require(each.target >= 0 && each.target < target_size_, "a lexical table has the target {} of {}",
            each.target, target_size_);
  int32_t left = options.first;
  const auto take = [&](int32_t id) {
    if (left == 0 || id == target.pad_id() || test(always_, id)) return;
    set(always_, id);
    --left;
  };
  auto entry = table.entries.begin();
  const auto end = table.entries.end();
  for (; entry != end && entry->source == data::kNoSource; ++entry) take(entry->target);
  for (int32_t id = 0; id < target.size() && left > 0; ++id) take(id);
  set(always_, target.end_id());
  set(always_, target.unknown_id());

  offsets_.reserve(static_cast<size_t>(source.size()) + 1);
  offsets_.push_back(0);
  for (int32_t id = 0; id < source.size(); ++id) {
    if (const auto same = target.find(source.piece(id)); same && *same != target.pad_id())
      targets_.push_back(*same);
    for (int32_t count = 0; entry != end && entry->source == id; ++entry, ++count) {
      if (count < options.best && entry->probability > options.threshold) targets_.push_back(entry->target);
    }
    offsets_.push_back(std::ssize(targets_));
  }
  require(entry == end, "a lexical table has the source {} behind a higher one, or {} sources are too few",
          entry->source, source.size());
  targets_.shrink_to_fit();
}

Shortlist Shortlist::load(const std::filesystem::path& path, const text::Tokenizer& tokenizer,
                          const ShortlistOptions& options) {
  check(options);  // before a long read
  const text::Vocabulary &source = tokenizer.source_vocabulary(), &target = tokenizer.target_vocabulary();
  const data::LexicalTable table = data::read_lexical_table(path, source, target);
  require(
      table.unknown_lines <= std::ssize(table.entries),
      "{} of {} lines of {} have words that are no pieces of this model: take a table of its own, of gloss "
      "shortlist",
      table.unknown_lines, table.unknown_lines + std::ssize(table.entries), path.string());
  return {table, source, target, options};
}

std::vector<int32_t> Shortlist::tokens(std::span<const int32_t> source_ids) const {
  std::vector<uint64_t> bits = always_;
  for (const int32_t id : source_ids) {
    const auto row = static_cast<size_t>(id);
    require(id >= 0 && row + 1 < offsets_.size(), "there is no source piece {}: the vocabulary has {}", id,
            offsets_.size() - 1);
    for (int64_t i = offsets_[row]; i < offsets_[row + 1]; ++i) set(bits, targets_[static_cast<size_t>(i)]);
  }
  int64_t count = 0;
  for (const uint64_t word : bits) count += std::popcount(word);
  std::vector<int32_t> ids;
  ids.reserve(static_cast<size_t>(count));
  for (size_t i = 0; i < bits.size(); ++i) {
    for (uint64_t word = bits[i]; word != 0; word &= word - 1)
      ids.push_back(static_cast<int32_t>(i) * kBits + std::countr_zero(word));
  }
  return ids;
}

}  // namespace gloss::decode
