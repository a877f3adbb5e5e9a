#include "gloss/data/corpus.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <sys/stat.h>

#include "gloss/data/permutation.h"
#include "text/fixture.h"

namespace gloss::data {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using text::error_of;
using text::InvalidUtf8;
using text::TemporaryFolder;

struct Files {
  TemporaryFolder folder;
  ParallelCorpus open(std::string_view source, std::string_view target,
                      InvalidUtf8 invalid = InvalidUtf8::fail) const {
    return ParallelCorpus(folder.write("c.en", source), folder.write("c.de", target), invalid);
  }
  std::string error(std::string_view source, std::string_view target) const {
    return error_of([&] { open(source, target); });
  }
};

TEST(ParallelCorpus, ReadsLinesInAnyOrderWhateverTheirEndings) {
  const Files files;
  const auto corpus = files.open("\xEF\xBB\xBFone\r\n\r\nthrée\r\n4", "eins\n\ndrei\nvier\n");
  ASSERT_EQ(corpus.pairs(), 4);
  EXPECT_EQ(corpus.source_line(3), "4");
  EXPECT_EQ(corpus.source_line(0), "one");
  EXPECT_EQ(corpus.source_line(2), "thrée");
  EXPECT_EQ(corpus.source_line(1), "");
  EXPECT_EQ(corpus.target_line(0), "eins");
  EXPECT_EQ(corpus.target_line(3), "vier");
  EXPECT_THAT(error_of([&] { corpus.source_line(4); }), HasSubstr("line 5"));
  EXPECT_THAT(error_of([&] { corpus.target_line(-1); }), HasSubstr("c.de"));
}

RC_GTEST_PROP(ParallelCorpus, AgreesWithReadingTheWholeFile, ()) {
  const auto parts = *rc::gen::container<std::vector<std::string>>(
      rc::gen::element<std::string>("a", "é", " ", "\r", "\n", "\r\n", "中"));
  std::string bytes = "x";
  for (const auto& part : parts) bytes += part;
  const Files files;
  const auto corpus = files.open(bytes, bytes);
  const auto lines = text::read_lines(corpus.source_path());
  RC_ASSERT(corpus.pairs() == static_cast<int64_t>(lines.size()));
  for (size_t i = 0; i < lines.size(); ++i)
    RC_ASSERT(corpus.source_line(static_cast<int64_t>(i)) == lines[i].text);
}

TEST(ParallelCorpus, TakesALineOfAMegabyteAndManyLines) {
  const std::string big(size_t{1} << 20, 'x');
  std::string many = big + "\n";
  for (int i = 1; i < 40000; ++i) many += std::to_string(i) + "\n";
  const Files files;
  const auto corpus = files.open(many, many);
  ASSERT_EQ(corpus.pairs(), 40000);
  EXPECT_EQ(corpus.source_line(0), big);
  for (const int i : {1, 16383, 16384, 16385, 32768, 39999})
    EXPECT_EQ(corpus.target_line(i), std::to_string(i));
}

TEST(ParallelCorpus, DifferentLineCountsAreNamed) {
  const Files files;
  EXPECT_THAT(files.error("a\nb\nc\n", "a\nb\n"), AllOf(HasSubstr("c.en has 3"), HasSubstr("c.de has 2")));
}

TEST(ParallelCorpus, RefusesBadFiles) {
  const Files files;
  EXPECT_THAT(files.error("", "a\n"), AllOf(HasSubstr("c.en"), HasSubstr("empty")));
  EXPECT_THAT(files.error("a\n", "\xEF\xBB\xBF"), AllOf(HasSubstr("c.de"), HasSubstr("empty")));
  EXPECT_THAT(files.error("a\nb\n", "a\n\xC3\x28\n"),
              AllOf(HasSubstr("c.de"), HasSubstr("line 2"), HasSubstr("UTF-8")));
  EXPECT_THAT(files.error(std::string("a\n\0\n", 4), "a\nb\n"), AllOf(HasSubstr("c.en"), HasSubstr("NUL")));
  EXPECT_THAT(files.error("\x1F\x8B\x08", "a\n"), HasSubstr("gzip"));
  const auto good = files.folder.write("good", "a\n");
  EXPECT_THAT(error_of([&] { ParallelCorpus(files.folder.path() / "none", good); }), HasSubstr("none"));
  EXPECT_THAT(error_of([&] { ParallelCorpus(good, files.folder.path()); }), HasSubstr("a folder"));
  const auto pipe = files.folder.path() / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THAT(error_of([&] { ParallelCorpus(good, pipe); }), HasSubstr("pipe"));
}

TEST(ParallelCorpus, ReplacesInvalidUtf8WhenAsked) {
  const Files files;
  const auto corpus = files.open("caf\xE9\nok\n", "a\nb\n", InvalidUtf8::replace);
  EXPECT_EQ(corpus.replaced_lines(), 1);
  EXPECT_EQ(corpus.source_line(0), "caf\xEF\xBF\xBD");
  EXPECT_EQ(corpus.source_line(1), "ok");
}

TEST(ParallelCorpus, TheFingerprintTellsTextsApart) {
  const Files files;
  const auto print = [&](std::string_view source, std::string_view target) {
    return files.open(source, target).fingerprint();
  };
  const std::string one = print("a b c d e f g h\ni\n", "x\ny\n");
  EXPECT_EQ(one.size(), 32u);
  EXPECT_EQ(one, print("a b c d e f g h\r\ni", "\xEF\xBB\xBFx\ny\n"));
  for (const auto& [source, target] :
       std::vector<std::pair<std::string, std::string>>{{"a b c d e f g h\nj\n", "x\ny\n"},
                                                        {"a b c d e f g h\ni\n", "y\nx\n"},
                                                        {"a b c d e f g \nhi\n", "x\ny\n"},
                                                        {"x\ny\n", "a b c d e f g h\ni\n"},
                                                        {"a b c d e f g h\ni\n\n", "x\ny\n\n"}})
    EXPECT_NE(one, print(source, target));
}

TEST(ParallelCorpus, NoticesThatAFileChanged) {
  const Files files;
  const auto corpus = files.open("first line\nsecond line\nthird\n", "1\n2\n3\n");
  files.folder.write("c.en", "first\nline\nsecond\nline\n");
  EXPECT_THAT(error_of([&] { corpus.source_line(0); }), HasSubstr("changed"));
  files.folder.write("c.en", "x");
  EXPECT_THAT(error_of([&] { corpus.source_line(1); }), HasSubstr("c.en"));
}

RC_GTEST_PROP(Permutation, ComesToEveryNumberOnce, (uint64_t seed)) {
  const auto size = *rc::gen::inRange<uint64_t>(1, 3000);
  const Permutation permutation(RandomKey(seed), size);
  std::vector<int> hits(size);
  for (uint64_t i = 0; i < size; ++i) {
    const uint64_t image = permutation(i);
    RC_ASSERT(image < size);
    ++hits[image];
  }
  RC_ASSERT(std::all_of(hits.begin(), hits.end(), [](int n) { return n == 1; }));
}

TEST(Permutation, IsAShuffle) {
  // Correlation of place and number, neighbours, and fixed points, as in a random one.
  constexpr uint64_t kSize = 29000;
  const Permutation permutation(RandomKey(7), kSize), other(RandomKey(8), kSize);
  double product = 0;
  int fixed = 0, neighbours = 0, same = 0;
  for (uint64_t i = 0; i < kSize; ++i) {
    const auto image = permutation(i);
    product += (static_cast<double>(i) / kSize - 0.5) * (static_cast<double>(image) / kSize - 0.5);
    fixed += image == i;
    same += image == other(i);
    neighbours += i > 0 && permutation(i - 1) + 1 == image;
  }
  EXPECT_LT(std::abs(product / kSize * 12), 0.03);  // 5 standard deviations
  EXPECT_LT(fixed, 10);
  EXPECT_LT(neighbours, 10);
  EXPECT_LT(same, 10);
}

}  // namespace
}  // namespace gloss::data
