#include "gloss/text/tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <nlohmann/json.hpp>

#include "gloss/text/training.h"
#include "text/fixture.h"

namespace gloss::text {
namespace {

using testing::AllOf;
using testing::HasSubstr;

Tokenizer train(bool joint) {
  const TemporaryFolder folder;
  TokenizerOptions options;
  options.vocabulary_size = 160;
  options.joint = joint;
  return train_tokenizer(folder.write("s", joined(small_sentences())),
                         folder.write("t", joined({"ein Mann geht im Park", "die Frau schläft zu Hause"})),
                         options)
      .tokenizer;
}

const Tokenizer& joint() {
  static const Tokenizer tokenizer = train(true);
  return tokenizer;
}

TEST(Tokenizer, SourceIdsEndWithTheEndSymbolAndKnowTheirBytes) {
  const std::string line = "  the woman 😀walks";
  const EncodedLine encoded = joint().encode_source(line);
  ASSERT_EQ(encoded.ids.size(), encoded.spans.size());
  EXPECT_EQ(encoded.ids, joint().encode_source_ids(line));
  EXPECT_EQ(encoded.ids.back(), joint().source_vocabulary().end_id());
  EXPECT_EQ(encoded.spans.back().begin, static_cast<int64_t>(line.size()));
  EXPECT_EQ(encoded.spans.back().end, static_cast<int64_t>(line.size()));
  EXPECT_TRUE(encoded.spans.front().starts_word);
  bool saw_unknown = false;
  for (size_t i = 0; i < encoded.ids.size(); ++i) {
    if (encoded.ids[i] != joint().source_vocabulary().unknown_id()) continue;
    saw_unknown = true;
    const auto& span = encoded.spans[i];
    EXPECT_EQ(line.substr(static_cast<size_t>(span.begin), static_cast<size_t>(span.end - span.begin)), "😀");
    EXPECT_TRUE(span.starts_word);
    EXPECT_FALSE(encoded.spans[i + 1].starts_word);  // the w of "walks" follows without a space
  }
  EXPECT_TRUE(saw_unknown);
}

TEST(Tokenizer, ALineWithoutTextIsTheEndSymbolAlone) {
  const std::vector<int32_t> end = {joint().source_vocabulary().end_id()};
  for (const char* line : {"", "   ", "\t", "　"}) {
    EXPECT_EQ(joint().encode_source_ids(line), end);
    EXPECT_EQ(joint().encode_source(line).ids, end);
    EXPECT_EQ(joint().encode_target_ids(line), end);
  }
}

TEST(Tokenizer, TargetTextComesBack) {
  for (const auto& line : small_sentences(11))
    EXPECT_EQ(joint().decode_target(joint().encode_target_ids(line)), line);
}

TEST(Tokenizer, TextThatSpellsASpecialSymbolIsText) {
  for (const char* line : {"</s>", "<pad>", "<unk> </s>", "a <pad> b"}) {
    const auto ids = joint().encode_source_ids(line);
    for (size_t i = 0; i + 1 < ids.size(); ++i) {
      EXPECT_NE(ids[i], joint().source_vocabulary().end_id()) << line;
      EXPECT_NE(ids[i], joint().source_vocabulary().pad_id()) << line;
    }
  }
}

// What a perfect model would give back for a source line: the same ids, each looking at its own source.
std::string copied(const Tokenizer& tokenizer, const std::string& line, bool copy = true,
                   std::string_view otherwise = "") {
  const EncodedLine encoded = tokenizer.encode_source(line);
  std::vector<int32_t> aligned(encoded.ids.size());
  for (size_t i = 0; i < aligned.size(); ++i) aligned[i] = static_cast<int32_t>(i);
  UnknownRepair repair{
      .source_line = line, .source = copy ? &encoded : nullptr, .aligned_to = {}, .otherwise = otherwise};
  if (copy) repair.aligned_to = aligned;
  return tokenizer.decode_target(encoded.ids, repair);
}

TEST(Tokenizer, UnknownCharactersSurviveByCopying) {
  for (const char* line : {"the woman 😀 walks", "😀", "a😀b", "the 😀😀👩‍👩‍👧‍👦 park",
                           "中文", "a dog 中文 sleeps.", "in the 中文park", "(😀) at home."})
    EXPECT_EQ(copied(joint(), line), line);
}

RC_GTEST_PROP(Tokenizer, UnknownCharactersSurviveAnywhere, ()) {
  const auto words = *rc::gen::nonEmpty(rc::gen::container<std::vector<std::string>>(
      rc::gen::element<std::string>("the", "park", "中", "😀", "😀the", "the中", "中😀", "ж", "park.", "Q")));
  std::string line;
  for (const auto& word : words) line += (line.empty() ? "" : " ") + word;
  RC_ASSERT(copied(joint(), line) == line);
}

TEST(Tokenizer, CopyingCanBeSwitchedOff) {
  EXPECT_EQ(copied(joint(), "the 😀 park", false), "the  park");
  EXPECT_EQ(copied(joint(), "the 😀 park", false, "⁇"), "the ⁇ park");
}

TEST(Tokenizer, ACopyBeginsAWordWhereItsSourceDoes) {
  const std::string line = "see 😀 the中";
  const EncodedLine source = joint().encode_source(line);
  const int32_t unknown = joint().target_vocabulary().unknown_id();
  std::vector<int32_t> places;  // of unknown pieces in the source
  for (size_t i = 0; i < source.ids.size(); ++i)
    if (source.ids[i] == unknown) places.push_back(static_cast<int32_t>(i));
  ASSERT_EQ(places.size(), 2u);
  const auto decode = [&](std::vector<int32_t> ids, std::vector<int32_t> aligned) {
    return joint().decode_target(
        ids, {.source_line = line, .source = &source, .aligned_to = aligned, .otherwise = ""});
  };
  const int32_t the = *joint().target_vocabulary().find("▁the"),
                mark = *joint().target_vocabulary().find("▁");
  EXPECT_EQ(decode({the, unknown}, {-1, places[0]}), "the 😀");
  EXPECT_EQ(decode({the, mark, unknown}, {-1, -1, places[0]}), "the 😀");  // no second space
  EXPECT_EQ(decode({the, unknown}, {-1, places[1]}), "the中");
  EXPECT_EQ(decode({unknown, the}, {places[0], -1}), "😀 the");
  EXPECT_EQ(decode({unknown, unknown}, {places[0], places[0]}), "😀");  // one place, one copy
  EXPECT_EQ(decode({unknown, the, unknown}, {places[0], -1, places[0]}), "😀 the 😀");
  const auto end = static_cast<int32_t>(source.ids.size()) - 1;
  EXPECT_EQ(decode({the, unknown}, {-1, end}), "the");  // </s> has nothing to copy
  EXPECT_EQ(decode({the, unknown}, {-1, -1}), "the");
  EXPECT_THAT(error_of([&] { decode({unknown}, {end + 1}); }), HasSubstr("source position"));
  EXPECT_THAT(error_of([&] { decode({unknown, the}, {0}); }), HasSubstr("alignments"));
  EXPECT_THAT(error_of([&] { joint().decode_target(std::vector<int32_t>{99999}); }), HasSubstr("99999"));
}

TEST(Tokenizer, ALeadingLanguageTagStaysWhole) {
  std::vector<std::string> pieces;
  const Segmenter& segmenter = joint().source_segmenter();
  for (int32_t i = 0; i < segmenter.size(); ++i) pieces.push_back(segmenter.piece(i));
  const auto tag = static_cast<int32_t>(pieces.size());
  pieces.insert(pieces.end(), {">>de<<", "<pad>"});
  const Tokenizer tokenizer(segmenter, segmenter, Vocabulary(pieces));
  const EncodedLine encoded = tokenizer.encode_source(">>de<< the park");
  EXPECT_EQ(encoded.ids.front(), tag);
  EXPECT_EQ(encoded.spans.front().end, 6);
  EXPECT_EQ(encoded.ids, tokenizer.encode_source_ids(">>de<< the park"));
  const auto plain = tokenizer.encode_source_ids("the park");
  EXPECT_EQ(std::vector<int32_t>(encoded.ids.begin() + 1, encoded.ids.end()), plain);
  EXPECT_EQ(encoded.spans[1].end, 10);  // "the" behind the tag
  for (const char* line : {"a >>de<< b", ">>xx<< a", ">>de< a", ">>"})
    EXPECT_NE(tokenizer.encode_source(line).ids.front(), tag) << line;
}

TEST(Tokenizer, LooksUpPiecesOfTheOtherLanguage) {
  // The source model knows no umlauts, but the vocabulary that both languages share has one.
  const Tokenizer separate = train(false);
  const Segmenter& segmenter = separate.source_segmenter();
  std::vector<std::string> pieces;
  for (int32_t i = 0; i < segmenter.size(); ++i) pieces.push_back(segmenter.piece(i));
  const auto umlaut = static_cast<int32_t>(pieces.size());
  pieces.insert(pieces.end(), {"ä", "<pad>"});
  const Tokenizer tokenizer(segmenter, segmenter, Vocabulary(pieces));
  const auto ids = tokenizer.encode_source_ids("the ä");
  EXPECT_EQ(ids[ids.size() - 2], umlaut);
  EXPECT_EQ(tokenizer.encode_source("the ä").ids, ids);
}

TEST(Tokenizer, AFolderHoldsAllOfIt) {
  for (const bool is_joint : {false, true}) {  // in this order the second has to remove a file of the first
    static const TemporaryFolder folder;
    const Tokenizer tokenizer = train(is_joint);
    tokenizer.save(folder.path(), "en", "de");
    const Tokenizer again = Tokenizer::load(folder.path());
    EXPECT_EQ(again.shares_vocabulary(), is_joint);
    EXPECT_EQ(again.source_vocabulary(), tokenizer.source_vocabulary());
    EXPECT_EQ(again.target_vocabulary(), tokenizer.target_vocabulary());
    EXPECT_EQ(again.encode_target_ids("die Frau geht"), tokenizer.encode_target_ids("die Frau geht"));
    nlohmann::json config;
    std::ifstream(folder.path() / "tokenizer_config.json") >> config;
    EXPECT_EQ(config["separate_vocabs"], !is_joint);
    EXPECT_EQ(config["source_lang"], "en");
    EXPECT_EQ(config["tokenizer_class"], "MarianTokenizer");
  }
}

TEST(Tokenizer, RefusesFoldersThatDoNotFitTogether) {
  const TemporaryFolder folder;
  joint().save(folder.path());
  const int32_t size = joint().source_vocabulary().size();
  const int32_t end = joint().target_vocabulary().end_id();
  joint().require_fits(size, size, end, folder.path());
  EXPECT_THAT(
      error_of([&] { joint().require_fits(size + 1, size + 1, end, folder.path()); }),
      AllOf(HasSubstr("vocab.json"), HasSubstr(std::to_string(size)), HasSubstr(std::to_string(size + 1))));
  EXPECT_THAT(error_of([&] { joint().require_fits(size, size, end + 5, folder.path()); }),
              AllOf(HasSubstr("vocab.json"), HasSubstr("</s>"), HasSubstr("eos_token_id"),
                    HasSubstr(std::to_string(end + 5))));
  folder.write("vocab.json", R"({"</s>": 0, "<unk>": 1, "something": 2, "<pad>": 3})");
  EXPECT_THAT(error_of([&] { Tokenizer::load(folder.path()); }),
              AllOf(HasSubstr("source.spm"), HasSubstr("different models")));
  for (const char* file : {"vocab.json", "source.spm", "target.spm"}) {
    joint().save(folder.path());
    std::filesystem::remove(folder.path() / file);
    EXPECT_THAT(error_of([&] { Tokenizer::load(folder.path()); }), HasSubstr(file));
  }
}

TEST(Tokenizer, ReadsAModelOfTransformers) {
  const auto folder = std::filesystem::path(GLOSS_TEST_SHARED) / "golden/hf-marian-multi30k-en-de";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << folder << " is absent";
  const Tokenizer tokenizer = Tokenizer::load(folder);
  tokenizer.require_fits(8001, 8001, 0, folder);
  nlohmann::json expected;
  std::ifstream(folder / "expected.json") >> expected;
  size_t same = 0, all = 0;
  for (const auto& entry : expected["beam1_n1"]) {
    const std::string text = entry.is_object() ? entry["text"] : entry[0]["text"];
    if (text.find("  ") != std::string::npos) continue;
    ++all;
    same += tokenizer.decode_target(tokenizer.encode_target_ids(text)) == text;
  }
  EXPECT_GT(all, 190u);
  EXPECT_EQ(same, all);
}

}  // namespace
}  // namespace gloss::text
