// The date corpus: pairs of a written date and its ISO form, drawn by seed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "ways.h"

namespace gloss::dates {

struct Pair {
  std::string text;  // "the third of March, twenty twenty-one"
  std::string iso;   // "2021-03-03"
  bool operator==(const Pair&) const = default;
};

struct CorpusSizes {
  int64_t train = 30000, valid = 1000, test = 2000, heldout = 1000;
};

// No text is in a part twice. The days of train, valid and test are disjoint; `heldout` writes the days of
// `test` in the ways that train, valid and test do not use.
struct Corpus {
  std::vector<Pair> train, valid, test, heldout;
};

// The same seed and sizes give the same corpus everywhere. Throws gloss::Error when a part is asked for more
// pairs than its days give with ease.
Corpus make_corpus(uint64_t seed, const CorpusSizes& sizes);

// Writes train, valid, test and heldout, each as NAME.src and NAME.iso, one date a line.
void write_corpus(const Corpus& corpus, const std::filesystem::path& folder);

}  // namespace gloss::dates
