#include "corpus.h"

#include <fstream>
#include <string_view>
#include <unordered_set>

#include "gloss/base/error.h"
#include "gloss/base/random.h"

namespace gloss::dates {
namespace {

struct Days {
  std::vector<Day> train, valid, test;
};

// Every twentieth day is for testing and as many for validation, chosen by the seed.
Days split_days(RandomKey key) {
  Days days;
  const Day first = std::chrono::year(kFirstYear) / 1 / 1, last = std::chrono::year(kLastYear) / 12 / 31;
  for (Day day = first; day <= last; day += std::chrono::days(1)) {
    const uint64_t draw = key.below(static_cast<uint64_t>((day - first).count()), 20);
    (draw == 0 ? days.test : draw == 1 ? days.valid : days.train).push_back(day);
  }
  return days;
}

std::vector<Pair> draw_pairs(RandomKey key, std::string_view name, const std::vector<Day>& days,
                             const std::vector<Way>& ways, int64_t count) {
  // Half of what there is: drawing without repetition stays quick.
  const int64_t most = static_cast<int64_t>(days.size() * ways.size() / 2);
  require(count >= 0 && count <= most, "expected between 0 and {} pairs of dates for {}, got {}", most, name,
          count);
  std::vector<Pair> pairs;
  std::unordered_set<std::string> seen;
  for (uint64_t i = 0; static_cast<int64_t>(pairs.size()) < count; ++i) {
    const Day day = days[key.below(2 * i, days.size())];
    std::string text = write(ways[key.below(2 * i + 1, ways.size())], day);
    if (seen.insert(text).second) pairs.push_back({std::move(text), iso(day)});
  }
  return pairs;
}

void write_lines(const std::filesystem::path& path, const std::vector<Pair>& pairs, std::string Pair::*side) {
  std::ofstream file(path, std::ios::binary);
  for (const Pair& pair : pairs) file << pair.*side << '\n';
  file.close();
  require(file.good(), "cannot write {}; check that the folder is writable and the disk has room",
          path.string());
}

}  // namespace

Corpus make_corpus(uint64_t seed, const CorpusSizes& sizes) {
  const RandomKey key = RandomKey(seed).with("dates");
  const Days days = split_days(key.with("days"));
  std::vector<Way> known, held_out;
  for (const Way& way : ways()) (way.held_out ? held_out : known).push_back(way);

  Corpus corpus;
  corpus.train = draw_pairs(key.with("train"), "train", days.train, known, sizes.train);
  corpus.valid = draw_pairs(key.with("valid"), "valid", days.valid, known, sizes.valid);
  corpus.test = draw_pairs(key.with("test"), "test", days.test, known, sizes.test);
  corpus.heldout = draw_pairs(key.with("heldout"), "heldout", days.test, held_out, sizes.heldout);
  return corpus;
}

void write_corpus(const Corpus& corpus, const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  require(!error, "cannot make the folder {}: {}", folder.string(), error.message());
  const auto write_part = [&](const std::string& name, const std::vector<Pair>& pairs) {
    write_lines(folder / (name + ".src"), pairs, &Pair::text);
    write_lines(folder / (name + ".iso"), pairs, &Pair::iso);
  };
  write_part("train", corpus.train);
  write_part("valid", corpus.valid);
  write_part("test", corpus.test);
  write_part("heldout", corpus.heldout);
}

}  // namespace gloss::dates
