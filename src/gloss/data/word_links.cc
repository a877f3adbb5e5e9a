#include "gloss/data/word_links.h"

#include <algorithm>
#include <iterator>

#include "gloss/base/error.h"
#include "gloss/text/words.h"

namespace gloss::data {
namespace {

evaluate::Alignment links_of(std::string_view line, int64_t index, const std::filesystem::path& path,
                             const evaluate::WordCounts* words) {
  return evaluate::read_alignment(line, static_cast<size_t>(index) + 1, path.string(), words);
}

}  // namespace

std::vector<PieceLink> links_of_pieces(const evaluate::Alignment& alignment, const PairSide& source,
                                       const PairSide& target) {
  const text::Words source_words = text::words_of(source.line, source.pieces.spans),
                    target_words = text::words_of(target.line, target.pieces.spans);
  std::vector<PieceLink> links;
  for (size_t t = 0; t < target_words.word_of.size(); ++t) {
    for (const evaluate::Link& link : alignment) {
      if (link.target != target_words.word_of[t]) continue;
      for (size_t s = 0; s < source_words.word_of.size(); ++s) {
        if (link.source == source_words.word_of[s])
          links.push_back({static_cast<int32_t>(t), static_cast<int32_t>(s)});
      }
    }
  }
  return links;
}

WordLinks::WordLinks(const std::filesystem::path& path, const ParallelCorpus& corpus)
    : lines_(path, text::InvalidUtf8::fail, [&](int64_t index, std::string_view line) {
        if (index >= corpus.pairs()) return;  // too many lines: said below, with their number
        const evaluate::WordCounts words{std::ssize(text::words_of(corpus.source_line(index))),
                                         std::ssize(text::words_of(corpus.target_line(index)))};
        links_of(line, index, path, &words);
      }) {
  require(lines_.lines() == corpus.pairs(),
          "{} has {} lines but {} has {}: each pair needs its line of links, blank where it has none",
          path.string(), lines_.lines(), corpus.source_path().string(), corpus.pairs());
}

std::vector<PieceLink> WordLinks::of_pieces(int64_t index, const PairSide& source,
                                            const PairSide& target) const {
  return links_of_pieces(links_of(lines_.line(index), index, lines_.path(), nullptr), source, target);
}

std::string WordLinks::fingerprint() const {
  return fmt::format("{:016x}", lines_.hash());
}

}  // namespace gloss::data
