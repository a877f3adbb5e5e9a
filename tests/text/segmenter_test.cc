#include "gloss/text/segmenter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <thread>

#include "gloss/text/training.h"
#include "gloss/text/utf8.h"
#include "text/fixture.h"

namespace gloss::text {
namespace {

using testing::HasSubstr;

Segmenter train(const std::string& text, SegmenterOptions options) {
  const TemporaryFolder folder;
  const std::filesystem::path file = folder.write("corpus.txt", text);
  return train_segmenter({&file, 1}, options).segmenter;
}

const Segmenter& model(SegmentationKind kind = SegmentationKind::bpe) {
  const auto make = [](SegmentationKind k) {
    SegmenterOptions options;
    options.kind = k;
    options.pieces = 300;
    return train(joined(small_sentences()), options);
  };
  static const Segmenter bpe = make(SegmentationKind::bpe), unigram = make(SegmentationKind::unigram);
  return kind == SegmentationKind::bpe ? bpe : unigram;
}

std::string decoded(const Segmenter& segmenter, const std::vector<Piece>& pieces) {
  std::vector<std::string_view> texts;
  for (const Piece& piece : pieces) texts.push_back(piece.text);
  return segmenter.decode(texts);
}

std::string surface(std::string_view line, const Piece& piece) {
  return std::string(
      line.substr(static_cast<size_t>(piece.begin), static_cast<size_t>(piece.end - piece.begin)));
}

TEST(Segmenter, GivesBackTheTextItSplit) {
  for (const auto kind : {SegmentationKind::bpe, SegmentationKind::unigram})
    for (const auto& line : small_sentences(7)) {
      const auto pieces = model(kind).encode(line);
      EXPECT_EQ(decoded(model(kind), pieces), line);
      std::vector<int32_t> ids;
      model(kind).encode(line, ids);
      ASSERT_EQ(ids.size(), pieces.size());
      for (size_t i = 0; i < ids.size(); ++i) EXPECT_EQ(ids[i], pieces[i].id);
    }
}

TEST(Segmenter, MakesFrequentWordsOnePiece) {
  const auto pieces = model().encode("the woman walks in the park.");
  EXPECT_LE(pieces.size(), 12u);
  EXPECT_EQ(pieces.front().text, "▁the");
}

// Spans are the point where normalisation makes it hard: every byte of the line but spaces that are dropped
// belongs to one piece, in order, and spans never cut a character.
void expect_spans_cover(const std::string& line) {
  const auto pieces = model().encode(line);
  int64_t end = 0;
  std::string covered;
  for (const Piece& piece : pieces) {
    ASSERT_LE(end, piece.begin) << line;
    ASSERT_LE(piece.begin, piece.end) << line;
    ASSERT_LE(piece.end, static_cast<int64_t>(line.size())) << line;
    const std::string between = line.substr(static_cast<size_t>(end), static_cast<size_t>(piece.begin - end));
    ASSERT_EQ(between.find_first_not_of(' '), std::string::npos) << line;
    ASSERT_TRUE(is_utf8(surface(line, piece))) << line;
    covered += between + surface(line, piece);
    end = piece.end;
  }
  const std::string rest = line.substr(static_cast<size_t>(end));
  EXPECT_EQ(rest.find_first_not_of(' '), std::string::npos) << line;
  EXPECT_EQ(covered + rest, line);
}

TEST(Segmenter, SpansCoverTheOriginalBytesWhateverTheScript) {
  for (const char* line : {"a man walks", "  the   woman  ", "ﬁne ½ … ①㎏ Å", "ｆｕｌｌ　ｗｉｄｔｈ",
                           "e\xCC\x81 a\xCC\x88 o\xCC\x82\xCC\xA3", "中文和日本語の文", "한국어 문장",
                           "😀👩‍👩‍👧‍👦🇩🇪 in the park", "שלום עולם", "مرحبا بالعالم",
                           "नमस्ते दुनिया", "ไทยไม่มีช่องว่าง", "ẛ̣ ﷺ ǆ", "a▁b", "x\tz", "😀"})
    expect_spans_cover(line);
}

RC_GTEST_PROP(Segmenter, SpansCoverAnyText, ()) {
  const auto parts = *rc::gen::container<std::vector<std::string>>(
      rc::gen::element<std::string>("a", "man", " ", "  ", "½", "ﬁ", "…", "é", "e\xCC\x81", "中", "😀", "Å",
                                    "㎏", "ｆ", "　", "🇩🇪", "ß", "İ", "?"));
  std::string line;
  for (const auto& part : parts) line += part;
  const auto pieces = model().encode(line);
  int64_t end = 0;
  for (const Piece& piece : pieces) {
    RC_ASSERT(end <= piece.begin);
    RC_ASSERT(piece.begin <= piece.end);
    RC_ASSERT(is_utf8(surface(line, piece)));
    end = piece.end;
  }
  RC_ASSERT(end <= static_cast<int64_t>(line.size()));
}

TEST(Segmenter, PiecesKnowWhereTheyStood) {
  const std::string line = "the ﬁne 😀";
  const auto pieces = model().encode(line);
  EXPECT_EQ(surface(line, pieces.front()), "the");
  EXPECT_EQ(pieces.back().id, model().unknown_id());
  EXPECT_EQ(surface(line, pieces.back()), "😀");
  std::string ligature;
  for (const Piece& piece : pieces)
    if (piece.begin >= 3 && piece.end <= 9) ligature += surface(line, piece);
  EXPECT_EQ(ligature, " ﬁne");
}

TEST(Segmenter, SplitsAMegabyte) {
  std::string line;
  while (line.size() < (size_t{1} << 20)) line += "the woman walks in the park. ";
  line.pop_back();
  EXPECT_EQ(decoded(model(), model().encode(line)), line);
  EXPECT_EQ(decoded(model(), model().encode(std::string(size_t{1} << 20, 'a'))).size(), size_t{1} << 20);
}

TEST(Segmenter, DecodesByRule) {
  const Segmenter& m = model();
  EXPECT_EQ(m.decode({}), "");
  EXPECT_EQ(m.decode({"▁a", "▁b", "c", "▁", "d"}), "a bc d");
  EXPECT_EQ(m.decode({"a", "▁b"}), "a b");
  EXPECT_EQ(m.decode({"▁a", "</s>"}), "a");
  EXPECT_EQ(m.decode({"▁中文", "▁never▁seen"}), "中文 never seen");
}

TEST(Segmenter, MayBeUsedByManyThreads) {
  const auto lines = small_sentences(3);
  std::vector<std::vector<std::vector<int32_t>>> ids(4);
  std::vector<std::thread> threads;
  for (auto& mine : ids)
    threads.emplace_back([&lines, &mine] {
      for (const auto& line : lines) model().encode(line, mine.emplace_back());
    });
  for (auto& thread : threads) thread.join();
  for (const auto& mine : ids) EXPECT_EQ(mine, ids.front());
}

TEST(Segmenter, SavesTheBytesItLoaded) {
  const TemporaryFolder folder;
  model().save(folder.path() / "source.spm");
  const Segmenter again = Segmenter::load(folder.path() / "source.spm");
  EXPECT_EQ(again.bytes(), model().bytes());
  EXPECT_EQ(again.size(), model().size());
  EXPECT_EQ(again.piece(0), "</s>");
  EXPECT_EQ(again.piece(1), "<unk>");
  EXPECT_THAT(error_of([&] { again.piece(again.size()); }), HasSubstr("piece"));
}

TEST(Segmenter, RefusesDamagedModels) {
  const TemporaryFolder folder;
  const std::string& bytes = model().bytes();
  testing::internal::CaptureStderr();
  // Between two pieces too, where what is left is a well-formed message.
  for (size_t size = 0; size < bytes.size(); size += size < 3000 ? 1 : 4999)
    EXPECT_THAT(error_of([&] { Segmenter::from_bytes(bytes.substr(0, size), "cut.spm"); }),
                HasSubstr("cut.spm"))
        << size;
  EXPECT_THAT(error_of([&] { Segmenter::load(folder.write("text.spm", "no model at all\n")); }),
              HasSubstr("text.spm"));
  EXPECT_THAT(error_of([&] { Segmenter::load(folder.path() / "none.spm"); }), HasSubstr("none.spm"));
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");  // a library does not print
}

TEST(Segmenter, RoundTripsMulti30k) {
  const auto english = gzip_lines(multi30k("train.en.gz"), 5000),
             german = gzip_lines(multi30k("train.de.gz"), 5000);
  if (english.empty()) GTEST_SKIP() << multi30k("train.en.gz") << " is absent";
  SegmenterOptions options;
  options.pieces = 4000;
  options.normalisation = "identity";
  const Segmenter segmenter = train(joined(english) + joined(german), options);
  for (const auto* lines : {&english, &german})
    for (const std::string& line : *lines) {
      std::string squeezed;  // SentencePiece's own rule: no leading, trailing or double spaces
      for (const char c : line)
        if (c != ' ' || (!squeezed.empty() && squeezed.back() != ' ')) squeezed.push_back(c);
      while (squeezed.ends_with(' ')) squeezed.pop_back();
      ASSERT_EQ(decoded(segmenter, segmenter.encode(line)), squeezed);
    }
}

}  // namespace
}  // namespace gloss::text
