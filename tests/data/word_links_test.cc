#include "gloss/data/word_links.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "gloss/data/batches.h"
#include "gloss/text/training.h"
#include "gloss/text/words.h"
#include "text/fixture.h"

namespace gloss::data {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using text::error_of;

struct Fixture {
  text::TemporaryFolder folder;
  std::vector<std::string> source, target, links;
  std::unique_ptr<ParallelCorpus> corpus;
  std::unique_ptr<text::Tokenizer> tokenizer;

  // Real sentences; target line i is source line i with its first word behind the others.
  Fixture() {
    for (const std::string& line : text::small_sentences()) {
      const auto words = text::words_of(line);
      std::string turned, own;
      for (size_t i = 0; i < words.size(); ++i) {
        turned += std::string(words[(i + 1) % words.size()]) + (i + 1 < words.size() ? "  " : "");
        own += std::to_string((i + 1) % words.size()) + "-" + std::to_string(i) + " ";
      }
      source.push_back(line);
      target.push_back(turned);
      links.push_back(own);
    }
    links[2] = "";
    const auto a = folder.write("c.en", text::joined(source)), b = folder.write("c.de", text::joined(target));
    text::TokenizerOptions options;
    options.vocabulary_size = 200;
    tokenizer = std::make_unique<text::Tokenizer>(text::train_tokenizer(a, b, options).tokenizer);
    corpus = std::make_unique<ParallelCorpus>(a, b);
  }
  WordLinks open(const std::vector<std::string>& lines) const {
    return WordLinks(folder.write("c.align", text::joined(lines)), *corpus);
  }
};

TEST(WordLinks, LinkEveryPieceOfLinkedWords) {
  const text::TemporaryFolder folder;
  const ParallelCorpus corpus(folder.write("a", "ab c d\n"), folder.write("b", "x yz\n"));
  const WordLinks links(folder.write("l", "0-1 2-0 1-1\n"), corpus);
  const text::EncodedLine source{{5, 6, 7, 8, 0}, {{0, 1}, {1, 2}, {2, 4}, {4, 6}, {6, 6}}},
      target{{5, 6, 7, 0}, {{0, 1}, {1, 3}, {3, 4}, {4, 4}}};
  using Links = std::vector<PieceLink>;
  EXPECT_EQ(links.of_pieces(0, {"ab c d", source}, {"x yz", target}),
            (Links{{0, 3}, {1, 0}, {1, 1}, {1, 2}, {2, 0}, {2, 1}, {2, 2}}));
}

// Whatever the window and the order of the batches, links stay with their pairs.
TEST(WordLinks, TravelWithTheirPairs) {
  const Fixture f;
  const WordLinks links = f.open(f.links);
  for (const int64_t window : {int64_t{3}, int64_t{1000}}) {
    BatchOptions options;
    options.target_tokens = 60;
    options.window = window;
    BatchStream stream(*f.corpus, *f.tokenizer, options, &links), without(*f.corpus, *f.tokenizer, options);
    size_t seen = 0;
    while (const auto batch = stream.next()) {
      const auto plain = without.next();
      ASSERT_TRUE(plain);
      EXPECT_EQ(batch->source.rows, plain->source.rows);
      EXPECT_EQ(batch->target.rows, plain->target.rows);
      EXPECT_TRUE(plain->links.empty());
      std::vector<RowLink> expected;
      for (int64_t i = 0; i < batch->pairs; ++i) {
        const auto line = static_cast<size_t>(batch->line_numbers[static_cast<size_t>(i)] - 1);
        const auto from = f.tokenizer->encode_source(f.source[line]),
                   to = f.tokenizer->encode_target(f.target[line]);
        for (const PieceLink& link :
             links.of_pieces(static_cast<int64_t>(line), {f.source[line], from}, {f.target[line], to})) {
          EXPECT_NE(line, 2U) << "a blank line has no links";
          expected.push_back(
              {batch->target.offsets.begin(i) + link.target, batch->source.offsets.begin(i) + link.source});
        }
      }
      EXPECT_EQ(batch->links, expected);
      seen += expected.size();
    }
    EXPECT_GT(seen, f.source.size());
  }
}

TEST(WordLinks, RefuseFilesThatDoNotFitTheCorpus) {
  const Fixture f;
  const auto refused = [&](size_t line, const std::string& text) {
    std::vector<std::string> lines = f.links;
    lines[line] = text;
    return error_of([&] { f.open(lines); });
  };
  EXPECT_THAT(refused(1, "0-0 7-"), AllOf(HasSubstr("line 2 of "), HasSubstr("c.align: '7-' is no link")));
  EXPECT_THAT(refused(3, "99-0"), AllOf(HasSubstr("line 4 of "), HasSubstr("outside its sentences")));
  EXPECT_THAT(refused(3, "0-99999999999999999999"), HasSubstr("line 4 of "));
  for (const bool more : {false, true}) {
    std::vector<std::string> lines = f.links;
    lines.resize(more ? lines.size() + 1 : lines.size() - 1);
    EXPECT_THAT(error_of([&] { f.open(lines); }),
                HasSubstr("c.align has " + std::to_string(lines.size()) + " lines but "));
  }
  EXPECT_THAT(error_of([&] { WordLinks(f.folder.path() / "none", *f.corpus); }), HasSubstr("none"));
}

TEST(WordLinks, TellFilesApart) {
  const Fixture f;
  const std::string own = f.open(f.links).fingerprint();
  EXPECT_EQ(own.size(), 16U);
  EXPECT_EQ(f.open(f.links).fingerprint(), own);
  std::vector<std::string> other = f.links;
  other[0] = "";
  EXPECT_NE(f.open(other).fingerprint(), own);
}

}  // namespace
}  // namespace gloss::data
