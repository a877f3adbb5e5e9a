// Training with word links: the chosen head learns them, and a run goes on only with the links it had.
#include <cmath>

#include "gloss/decode/aligner.h"
#include "gloss/decode/translator.h"
#include "gloss/text/words.h"
#include "train/fixture.h"

namespace gloss::train {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// Each word is linked with the source word before the one that it copies: what nobody finds by copying.
std::string shifted(const std::vector<std::string>& lines) {
  std::vector<std::string> links;
  for (const std::string& line : lines) {
    const size_t n = text::words_of(line).size();
    std::string own;
    for (size_t i = 0; i + 1 < n; ++i) own += std::to_string(i) + "-" + std::to_string(i + 1) + " ";
    links.push_back(own);
  }
  return text::joined(links);
}

// A copying task whose training text has links, or has none. Its model learns in seconds.
struct LinkedTask : Task {
  explicit LinkedTask(bool linked, bool recurrent = false, size_t pairs = 400) : Task(pairs) {
    if (recurrent) {
      options = {};
      const std::string path = folder.path().string();
      set("train", {path + "/train.src", path + "/train.tgt"});
      set("valid", {path + "/valid.src", path + "/valid.tgt"}).into("model").set("vocab-size", "100");
      set("preset", "rnn-small").set("embedding", "16").set("hidden", "16").set("attention", "16");
      set("maxout", "16").set("learning-rate", "0.01").set("warmup", "20").set("threads", "1");
    }
    set("batch-tokens", "256").set("max-updates", "300").set("dropout", "0").set("patience", "0");
    set("guided-alignment", linked ? write_links(shifted(word_lines(pairs, 1))) : "");
  }
  std::string write_links(const std::string& text) const {
    return folder.write("train.align", text).string();
  }
};

// Of unseen pairs, the share of words that are linked with the one before theirs.
double found(const Task& task) {
  const decode::Translator translator(task.output());
  decode::Aligner aligner(translator, 1);
  std::vector<decode::SentencePair> pairs;
  for (const std::string& line : word_lines(50, 3)) pairs.emplace_back(line, line);
  const std::vector<decode::AttentionChoice> choices{aligner.usual()};
  const auto links = aligner.align(pairs, choices)[0];
  double right = 0, all = 0;
  for (size_t i = 0; i < pairs.size(); ++i) {
    const auto n = static_cast<int32_t>(text::words_of(pairs[i].first).size());
    all += n - 1;
    for (const evaluate::Link& link : links[i]) right += link.source + 1 == link.target;
  }
  return right / all;
}

TEST(GuidedTraining, TheHeadLearnsTheLinks) {
  for (const bool recurrent : {false, true}) {
    const LinkedTask plain(false, recurrent);
    LinkedTask linked(true, recurrent);
    linked.set("guided-weight", "1");
    Recorder recorder;
    train(linked, recorder);
    train(plain);
    EXPECT_GT(found(linked), 0.9) << (recurrent ? "recurrent" : "Transformer");
    EXPECT_LT(found(plain), 0.6);
    EXPECT_THAT(recorder.lines.back(), HasSubstr(" attention "));
    std::vector<double> losses;
    for (const nlohmann::json& entry : log_of(linked.output()))
      if (entry.contains("guided_loss")) losses.push_back(entry.at("guided_loss"));
    ASSERT_GE(losses.size(), 2U);
    EXPECT_LT(losses.back(), losses.front() / 2);
    for (const nlohmann::json& entry : log_of(plain.output())) EXPECT_FALSE(entry.contains("guided_loss"));
  }
}

TEST(GuidedTraining, TheModelKnowsItsGuidedHead) {
  LinkedTask task(true);
  task.set("decoder-layers", "2").set("guided-layer", "1").set("guided-head", "1").set("max-updates", "2");
  train(task);
  const decode::Translator translator(task.output());
  EXPECT_EQ(decode::text_of(decode::Aligner(translator, 1).usual()), "layer 1, head 1, reading step");
}

TEST(GuidedTraining, GoesOnOnlyWithTheSameLinks) {
  LinkedTask whole(true, false, 100), parts(true, false, 100);
  train(whole.set("max-updates", "20"));
  train(parts.set("max-updates", "7").set("threads", "2"));
  train(parts.set("max-updates", "20"));
  expect_same_run(whole.output(), parts.output());

  parts.set("max-updates", "30");
  parts.write_links(shifted(word_lines(99, 1)) + "\n");
  EXPECT_THAT(error_of_training(parts), HasSubstr("holds a run with other word links (--guided-alignment)"));
  LinkedTask without(true, false, 100);
  train(without.set("max-updates", "2"));
  EXPECT_THAT(error_of_training(without.set("guided-alignment", "")),
              HasSubstr("holds a run with other word links"));
}

TEST(GuidedTraining, RefusesWhatCannotBeGuided) {
  LinkedTask task(false);
  EXPECT_THAT(error_of_training(task.set("guided-head", "1")),
              AllOf(HasSubstr("--guided-head"), HasSubstr("give --guided-alignment FILE too")));
  LinkedTask linked(true);
  EXPECT_THAT(error_of_training(linked.set("guided-head", "2")),
              HasSubstr("there is no head 2 of cross-attention to guide: there are 2, 0 to 1"));
  linked.set("guided-head", "0");
  EXPECT_THAT(error_of_training(linked.set("guided-layer", "1")), HasSubstr("there are 1, 0 to 0"));
  LinkedTask recurrent(true, true);
  EXPECT_THAT(error_of_training(recurrent.set("guided-head", "1")),
              HasSubstr("one layer of attention with one head"));
  const LinkedTask short_file(true);
  short_file.write_links("0-0\n");
  EXPECT_THAT(error_of_training(short_file), HasSubstr("train.align has 1 lines but "));
  EXPECT_FALSE(fs::exists(short_file.output()));
}

}  // namespace
}  // namespace gloss::train
