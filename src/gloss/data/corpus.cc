#include "gloss/data/corpus.h"

#include "gloss/base/error.h"

namespace gloss::data {

ParallelCorpus::ParallelCorpus(const std::filesystem::path& source, const std::filesystem::path& target,
                               text::InvalidUtf8 invalid)
    : source_(source, invalid), target_(target, invalid) {
  for (const IndexedLines& side : {std::cref(source_), std::cref(target_)})
    require(side.lines() > 0, "{} is empty: a corpus needs at least one line", side.path().string());
  require(source_.lines() == target_.lines(),
          "{} has {} lines but {} has {}: line by line each must be the translation of the other",
          source.string(), source_.lines(), target.string(), target_.lines());
  fingerprint_ = fmt::format("{:016x}{:016x}", source_.hash(), target_.hash());
}

}  // namespace gloss::data
