#include "gloss/inspect/training_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "io/scratch.h"

namespace gloss::inspect {
namespace {

using io::message_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::IsNan;

constexpr const char* kReport =
    R"({"update":2,"epoch":1,"target_tokens":99,"loss":9.5,"perplexity":1.5e4,"learning_rate":1e-06,)"
    R"("target_tokens_per_second":3000.5,"seconds":2.5,"seconds_left":7})";
constexpr const char* kValidation =
    R"({"update":40,"epoch":1,"valid_perplexity":2387.1,"valid_bleu":12.25,"best":true,"seconds":54.3})";

TrainingRun parse(const std::string& text) {
  return parse_training_log(text, "train.jsonl");
}

TEST(TrainingRun, ReadsEveryCurve) {
  const TrainingRun run =
      parse(std::string(kReport) + "\n" + kValidation + "\n" +
            R"({"update":40,"skipped_empty":1,"skipped_too_long":2,"skipped_uneven":3})" + "\n");
  EXPECT_EQ(run.damaged_lines, 0);
  EXPECT_THAT(run.loss.update, ElementsAre(2));
  EXPECT_THAT(run.loss.seconds, ElementsAre(2.5));
  EXPECT_THAT(run.loss.value, ElementsAre(9.5));
  EXPECT_THAT(run.perplexity.value, ElementsAre(15000));
  EXPECT_THAT(run.learning_rate.value, ElementsAre(1e-6));
  EXPECT_THAT(run.speed.value, ElementsAre(3000.5));
  EXPECT_THAT(run.valid_perplexity.update, ElementsAre(40));
  EXPECT_THAT(run.valid_perplexity.seconds, ElementsAre(54.3));
  EXPECT_THAT(run.valid_perplexity.value, ElementsAre(2387.1));
  EXPECT_THAT(run.valid_bleu.value, ElementsAre(12.25));
}

TEST(TrainingRun, CountsDamagedLinesAndGoesOn) {
  const std::string half = std::string(kReport).substr(0, 40);
  for (const std::string& damage :
       {half, std::string("text"), std::string("[1, 2]"), std::string("42"), std::string("{}"),
        std::string(R"({"update":"two","loss":1})"), std::string(R"({"update":2,"loss":"low"})"),
        std::string(R"({"update":2,"seconds":[],"loss":1})"), std::string("\0\0\0\0", 4),
        std::string("\xFF\xFE"), std::string(100000, '[')}) {
    for (const std::string& text : {damage + "\n" + kReport + "\n", std::string(kReport) + "\n" + damage}) {
      const TrainingRun run = parse(text);
      EXPECT_EQ(run.damaged_lines, 1) << damage.substr(0, 40);
      EXPECT_THAT(run.loss.value, ElementsAre(9.5));
    }
  }
  EXPECT_EQ(parse(std::string("\n \r\n") + kReport + "\r\n\n").damaged_lines, 0);
}

TEST(TrainingRun, TakesNullForAGap) {
  const TrainingRun run =
      parse(std::string(kReport) + "\n" + R"({"update":4,"loss":null,"perplexity":5,"seconds":3})" + "\n" +
            R"({"update":6,"loss":8})");
  EXPECT_THAT(run.loss.value, ElementsAre(9.5, IsNan(), 8));
  EXPECT_THAT(run.loss.seconds, ElementsAre(2.5, 3, IsNan()));
  EXPECT_THAT(run.perplexity.value, ElementsAre(15000, 5));
}

TEST(TrainingRun, SaysWhenAFileIsNoLog) {
  EXPECT_EQ(message_of([] { parse(""); }), "train.jsonl is empty: the run has not reported anything yet");
  EXPECT_THAT(message_of([] { parse("\n\n"); }), HasSubstr("is empty"));
  EXPECT_EQ(message_of([] { parse("A man in an orange hat.\nstarring at something\n"); }),
            "train.jsonl holds no line of a training's log: name the --output folder of gloss train, or its "
            "train.jsonl");
}

TEST(TrainingRun, IsAFolderOrAFile) {
  const io::Scratch scratch;
  std::filesystem::create_directories(scratch / "run");
  EXPECT_THAT(message_of([&] { read_training_run(scratch / "run"); }),
              HasSubstr("run holds no train.jsonl: name the --output folder of gloss train"));
  EXPECT_THAT(message_of([&] { read_training_run(scratch / "nowhere"); }), HasSubstr("there is no run "));
  io::put(scratch / "run" / "train.jsonl", std::string(kReport) + "\n");
  io::put(scratch / "other.jsonl", std::string(kValidation) + "\n");
  EXPECT_THAT(read_training_run(scratch / "run").loss.value, ElementsAre(9.5));
  EXPECT_THAT(read_training_run(scratch / "run" / "train.jsonl").loss.value, ElementsAre(9.5));
  EXPECT_THAT(read_training_run(scratch / "other.jsonl").loss.value, IsEmpty());
  EXPECT_THAT(read_training_run(scratch / "other.jsonl").valid_bleu.value, ElementsAre(12.25));
}

TEST(NamesApart, TakeAsMuchOfThePathAsTellsRunsApart) {
  EXPECT_THAT(names_apart({"/a/one", "/a/two/"}), ElementsAre("one", "two"));
  EXPECT_THAT(names_apart({"/a/x/run", "/a/y/run", "/a/z"}), ElementsAre("x/run", "y/run", "z"));
  EXPECT_THAT(names_apart({"/a/x/run", "/b/x/run/train.jsonl"}), ElementsAre("a/x/run", "b/x/run"));
  EXPECT_THAT(names_apart({"/a/run/other.jsonl", "/a/b/../c"}), ElementsAre("other", "c"));
  EXPECT_THAT(names_apart({"/a/b/run", "/a/b/run/train.jsonl"}), ElementsAre("a/b/run", "a/b/run"));
  EXPECT_THAT(names_apart({"/"}), ElementsAre("/"));
  EXPECT_THAT(names_apart({"."}), ElementsAre(std::filesystem::current_path().filename().string()));
}

}  // namespace
}  // namespace gloss::inspect
