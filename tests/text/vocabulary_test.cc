#include "gloss/text/vocabulary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <set>

#include "text/fixture.h"

namespace gloss::text {
namespace {

using testing::AllOf;
using testing::HasSubstr;

Vocabulary load(std::string_view json) {
  const TemporaryFolder folder;
  return Vocabulary::load(folder.write("vocab.json", json));
}

std::string error_for(std::string_view json) {
  return error_of([&] { load(json); });
}

TEST(Vocabulary, ReadsPiecesInAnyOrder) {
  const Vocabulary vocabulary = load(R"({"<pad>": 4, "\u2581a": 2, "</s>": 0, "\"\\\n": 3, "<unk>": 1})");
  EXPECT_EQ(vocabulary.size(), 5);
  EXPECT_EQ(vocabulary.piece(2), "▁a");
  EXPECT_EQ(vocabulary.find("\"\\\n"), 3);
  EXPECT_EQ(vocabulary.find("b"), std::nullopt);
  EXPECT_EQ(vocabulary.id_or_unknown("b"), 1);
  EXPECT_EQ(vocabulary.end_id(), 0);
  EXPECT_EQ(vocabulary.unknown_id(), 1);
  EXPECT_EQ(vocabulary.pad_id(), 4);
  EXPECT_THAT(error_of([&] { vocabulary.piece(5); }), HasSubstr("5"));
  EXPECT_THAT(error_of([&] { vocabulary.piece(-1); }), HasSubstr("-1"));
}

TEST(Vocabulary, RefusesWhatIsNoVocabulary) {
  EXPECT_THAT(error_for(""), HasSubstr("vocab.json"));
  EXPECT_THAT(error_for(R"({"</s>": 0, "<unk>)"), HasSubstr("vocab.json"));
  EXPECT_THAT(error_for("[1, 2]"), AllOf(HasSubstr("vocab.json"), HasSubstr("object")));
  EXPECT_THAT(error_for("7"), HasSubstr("object"));
  EXPECT_THAT(error_for(R"({"</s>": {"a": 1}})"), HasSubstr("whole number"));
  EXPECT_THAT(error_for(R"({"</s>": 0, "<unk>": "1", "<pad>": 2})"), HasSubstr("'<unk>'"));
  EXPECT_THAT(error_for(R"({"</s>": 0, "<unk>": 1.5, "<pad>": 2})"), HasSubstr("1.5"));
  EXPECT_THAT(error_for(R"({"</s>": 0, "<unk>": -1, "<pad>": 2})"), HasSubstr("-1"));
  EXPECT_THAT(error_for(R"({"</s>": 0, "<unk>": 1, "<pad>": 18446744073709551615})"),
              HasSubstr("18446744073709551615"));
  EXPECT_THAT(error_of([] { Vocabulary::load("/nonexistent/vocab.json"); }), HasSubstr("vocab.json"));
}

TEST(Vocabulary, RefusesHolesAndDuplicates) {
  EXPECT_THAT(error_for(R"({"</s>": 0, "<unk>": 1, "b": 3, "<pad>": 4})"),
              AllOf(HasSubstr("misses a piece"), HasSubstr("id 2"), HasSubstr("'b'")));
  EXPECT_THAT(error_for(R"({"</s>": 0, "<unk>": 1, "<pad>": 4000000000})"), HasSubstr("misses a piece"));
  EXPECT_THAT(error_for(R"({"</s>": 0, "<unk>": 1, "a": 2, "b": 2, "<pad>": 3})"),
              AllOf(HasSubstr("'a'"), HasSubstr("'b'"), HasSubstr("id 2")));
  EXPECT_THAT(error_for(R"({"</s>": 0, "<unk>": 1, "a": 2, "a": 3, "<pad>": 4})"), HasSubstr("'a'"));
  EXPECT_THAT(error_for("{}"), HasSubstr("</s>"));
  EXPECT_THAT(error_for(R"({"</s>": 0, "<pad>": 1})"), HasSubstr("<unk>"));
  EXPECT_THAT(error_for(R"({"</s>": 0, "<unk>": 1})"), HasSubstr("<pad>"));
  EXPECT_THAT(error_of([] { Vocabulary({"</s>", "<unk>", "x", "x", "<pad>"}); }), HasSubstr("twice"));
}

RC_GTEST_PROP(Vocabulary, SavesWhatItLoads, ()) {
  auto pieces = *rc::gen::container<std::set<std::string>>(
      rc::gen::container<std::string>(rc::gen::element('a', '"', '\\', '\n', '\x01', ' ', '/', '{', 'z')));
  std::vector<std::string> all = {"</s>", "<unk>"};
  all.insert(all.end(), pieces.begin(), pieces.end());
  all.insert(all.end(), {"▁中文", "😀", "<pad>"});
  const Vocabulary vocabulary(all);
  const TemporaryFolder folder;
  vocabulary.save(folder.path() / "vocab.json");
  RC_ASSERT(Vocabulary::load(folder.path() / "vocab.json") == vocabulary);
}

TEST(Vocabulary, ReadsAModelOfTransformers) {
  const auto path = std::filesystem::path(GLOSS_TEST_SHARED) / "golden/hf-marian-multi30k-en-de/vocab.json";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << path << " is absent";
  const Vocabulary vocabulary = Vocabulary::load(path);
  EXPECT_EQ(vocabulary.size(), 8001);
  EXPECT_EQ(vocabulary.find("▁eine"), 6);
  EXPECT_EQ(vocabulary.pad_id(), 8000);
}

}  // namespace
}  // namespace gloss::text
