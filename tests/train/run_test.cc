// What a run learns, says, keeps and refuses.
#include <cmath>

#include "gloss/decode/translator.h"
#include "gloss/io/options_json.h"
#include "gloss/text/tokenizer.h"
#include "gloss/train/setup.h"
#include "gloss/train/state.h"
#include "train/fixture.h"

namespace gloss::train {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ContainsRegex;
using testing::HasSubstr;

TEST(Training, LearnsToCopy) {
  Task task(400);
  task.set("d-model", "32").set("encoder-ff", "64").set("decoder-ff", "64");
  task.set("batch-tokens", "256").set("max-updates", "350").set("warmup", "60").set("dropout", "0");
  task.set("label-smoothing", "0").set("patience", "0");
  Recorder recorder;
  const Outcome outcome = train(task, recorder);
  EXPECT_EQ(outcome.kind, Outcome::Kind::trained);
  EXPECT_EQ(outcome.updates, 350);
  EXPECT_LT(outcome.perplexity, 1.1);
  EXPECT_THAT(outcome.reason,
              ContainsRegex("^stopped after 350 updates \\(--max-updates\\): validation perp"));

  const auto validations = validations_of(task.output());
  EXPECT_GT(validations.front().at("valid_perplexity"), 3) << "there was something to learn";
  double best = HUGE_VAL;
  for (const nlohmann::json& entry : validations)
    best = std::min(best, entry.at("valid_perplexity").get<double>());
  const auto summary = nlohmann::json::parse(bytes_of(task.output() / "gloss.json"));
  EXPECT_TRUE(summary.at("complete").get<bool>());
  EXPECT_EQ(summary.at("updates"), 350);
  EXPECT_LE(summary.at("valid_perplexity"), best);
  EXPECT_EQ(summary.at("valid_perplexity"), outcome.perplexity);

  const decode::Translator translator(task.output());
  const auto lines = word_lines(20, 2);
  int right = 0;
  const auto translations = translator.translate(lines);
  for (size_t i = 0; i < lines.size(); ++i) right += translations[i].text() == lines[i] ? 1 : 0;
  EXPECT_GE(right, 18);
}

TEST(Training, TellsProgramsHowItGoes) {
  Task task;
  task.set("max-updates", "30").set("validate-every", "10");
  train(task);
  int64_t steps = 0, validations = 0;
  for (const nlohmann::json& entry : log_of(task.output())) {
    EXPECT_TRUE(entry.contains("update"));
    if (entry.contains("valid_perplexity")) {
      ++validations;
      EXPECT_EQ(entry.at("update"), 10 * validations);
    } else {
      ++steps;
      for (const char* key : {"epoch", "loss", "perplexity", "learning_rate", "target_tokens_per_second",
                              "seconds", "seconds_left"})
        EXPECT_TRUE(entry.at(key).is_number()) << key;
    }
  }
  EXPECT_EQ(validations, 3);
  EXPECT_GE(steps, 3);
}

TEST(Training, NotesEveryOptionAsItWasResolved) {
  Task task;
  task.set("preset", "small").set("paper", "true").set("encoder-ff", "0").set("max-updates", "2");
  train(task);
  const auto options = nlohmann::json::parse(bytes_of(task.output() / "gloss.json")).at("options");
  const auto expected = io::options_to_json(resolve(task.options));
  for (const auto& [key, value] : expected.items())
    EXPECT_EQ(options.value(key, nlohmann::json()), nlohmann::json(value)) << key;
  EXPECT_EQ(options.at("encoder_ff"), 1024);
  EXPECT_EQ(options.at("schedule"), "paper");
  EXPECT_EQ(options.at("max_updates"), 2);
  EXPECT_EQ(options.at("train").at(0), task.options.value.train[0]);
  for (const char* text : {"training_text", "validation_text"}) EXPECT_NE(options.at(text), "") << text;
}

TEST(Training, CountsWhatItLeavesOut) {
  Task task;
  std::vector<std::string> source = word_lines(60, 1), target = source;
  source[3] = "";
  target[4] = "   ";
  source[5] = target[5] = text::joined(word_lines(40, 4)).substr(0, 900);
  for (std::string* line : {&source[5], &target[5]}) std::ranges::replace(*line, '\n', ' ');
  target[6] = word_lines(1, 5, 1)[0];
  for (int i = 0; i < 30; ++i) target[6] += " owl";
  source[6] = "ape";
  task.set("train", {task.folder.write("s", text::joined(source)).string(),
                     task.folder.write("t", text::joined(target)).string()});
  task.set("max-length", "60").set("max-epochs", "2");
  Recorder recorder;
  train(task, recorder);
  EXPECT_THAT(recorder.messages, Contains("left out of each epoch: 2 empty, 1 too long and 1 uneven pairs"));
  EXPECT_THAT(recorder.messages, Contains(HasSubstr("60 training and 20 validation pairs")));
  int told = 0;
  for (const nlohmann::json& entry : log_of(task.output()))
    told += entry.value("skipped_empty", 0) == 2 ? 1 : 0;
  EXPECT_EQ(told, 1);
}

TEST(Training, ReducesAVocabularyTheTextCannotFill) {
  Task task;
  task.set("vocab-size", "8000").set("max-updates", "1");
  Recorder recorder;
  train(task, recorder);
  EXPECT_THAT(recorder.messages, Contains(AllOf(HasSubstr("can give no more than"), HasSubstr("7999"))));
  EXPECT_LT(text::Tokenizer::load(task.output()).target_vocabulary().size(), 100);
}

TEST(Training, WorksOnOneLine) {
  Task task(1);
  task.set("max-updates", "30");
  EXPECT_LT(train(task).perplexity, 1000);
  EXPECT_EQ(decode::Translator(task.output()).translate(word_lines(3, 9)).size(), 3u);
}

TEST(Training, RefusesTextsBeforeTheFolderChanges) {
  const auto refused = [](const std::string& source, const std::string& target, const std::string& pattern) {
    Task task;
    task.set("train", {task.folder.write("s", source).string(), task.folder.write("t", target).string()});
    EXPECT_THAT(error_of_training(task), ContainsRegex(pattern));
    EXPECT_FALSE(fs::exists(task.output() / "config.json"));
    EXPECT_FALSE(fs::exists(task.output() / "training" / "run.json"));
  };
  refused("a\nb\n", "a\n", "2.*1");
  refused("", "", "s.*line|no line|empty");
  refused("\n\n", "\n\n", "no text");
  refused("a\n\xff\xfe\n", "a\nb\n", "line 2");
  refused(std::string("a\nb\0c\n", 6), "a\nb\n", "NUL|binary");
  Task task;
  task.set("valid", {task.folder.write("v", "\n").string(), task.folder.write("w", "\n").string()});
  EXPECT_THAT(error_of_training(task), HasSubstr("nothing to validate with"));
  Task missing;
  missing.set("train", {(missing.folder.path() / "none").string(), missing.options.value.train[1]});
  EXPECT_THAT(error_of_training(missing), HasSubstr("none"));
  EXPECT_FALSE(fs::exists(missing.output()));
}

TEST(Training, ReplacesInvalidBytesWhenAsked) {
  Task task;
  const std::string text = "ape \xff bee\n" + text::joined(word_lines(50, 3));
  task.set("train", {task.folder.write("s", text).string(), task.folder.write("t", text).string()});
  task.set("replace-invalid", "true").set("max-updates", "2");
  Recorder recorder;
  train(task, recorder);
  EXPECT_THAT(recorder.messages, Contains("invalid UTF-8 was replaced in 2 lines"));
}

TEST(Training, SkipsStepsThatAreNoNumbersAndGivesUpAfterTen) {
  Task task;
  task.set("max-updates", "500").set("validate-every", "2").set("learning-rate", "1e30").set("warmup", "1");
  Recorder recorder;
  const std::string error = text::error_of([&] { train(task, recorder); });
  EXPECT_THAT(error,
              AllOf(HasSubstr("the 10th step in a row"), HasSubstr("--learning-rate"), HasSubstr("line")));
  int skipped = 0;
  for (const std::string& message : recorder.messages) {
    if (message.find("the step is skipped") == std::string::npos) continue;
    ++skipped;
    EXPECT_THAT(message,
                ContainsRegex("after update 1 the (loss|gradient) of lines? [0-9]+.*is (NaN|infinite)"));
  }
  EXPECT_EQ(skipped, 9);
}

// A state that is good stays, whatever comes after it, and a run goes on from it.
TEST(Training, KeepsTheLastGoodState) {
  Task task;
  task.set("max-updates", "20").set("save-every", "1").set("validate-every", "5").set("clip-norm", "0");
  train(task);
  // The same run with numbers so large that the next step cannot be computed.
  const fs::path file = task.output() / "training" / "state.safetensors";
  const std::string good = bytes_of(file);
  {
    const auto opened = io::SafetensorsFile::open(file);
    io::SafetensorsWriter writer;
    std::map<std::string, std::vector<float>> tensors;
    for (const std::string& name : opened.names()) tensors[name] = floats(file, name);
    // The largest float at one place: every sum with it overflows.
    tensors.at("parameters")[16] = 3e38f;
    for (const auto& [name, values] : tensors)
      writer.add<float>(name, {static_cast<int64_t>(values.size())}, std::span<const float>(values));
    writer.set_metadata("progress", opened.metadata().at("progress"));
    writer.write(file);
  }
  const std::string wild = bytes_of(file), model = bytes_of(task.output() / "model.safetensors");
  task.set("max-updates", "40");
  EXPECT_THAT(error_of_training(task), HasSubstr("the last good state and model stay as they are"));
  EXPECT_TRUE(bytes_of(file) == wild) << "a state was written after steps that failed";
  EXPECT_TRUE(bytes_of(task.output() / "model.safetensors") == model);
  std::ofstream(file, std::ios::binary) << good;
  EXPECT_EQ(train(task).updates, 40);
}

TEST(Training, StopsEarlyWhenNothingImproves) {
  for (const char* metric : {"perplexity", "bleu"}) {
    Task task;
    task.set("valid-metric", metric).set("learning-rate", "0").set("patience", "3").set("max-epochs", "50");
    const Outcome outcome = train(task);
    EXPECT_THAT(outcome.reason, HasSubstr("after 3 validations without progress (--patience)"));
    EXPECT_EQ(validations_of(task.output()).size(), 4u) << "the first one is the best, three are no better";
    EXPECT_EQ(outcome.bleu >= 0, std::string(metric) == "bleu");
  }
}

TEST(Training, KeepsTheBestByTheMetricAskedFor) {
  Task task;
  task.set("valid-metric", "bleu").set("average", "1").set("max-updates", "150").set("validate-every", "15");
  train(task);
  double best = -1;
  for (const nlohmann::json& entry : validations_of(task.output())) {
    const double bleu = entry.at("valid_bleu");
    EXPECT_EQ(entry.at("best").get<bool>(), bleu > best);
    best = std::max(best, bleu);
  }
  EXPECT_EQ(nlohmann::json::parse(bytes_of(task.output() / "gloss.json")).at("valid_bleu"), best);
}

TEST(Training, AveragesTheLastModels) {
  Task task;
  task.set("average", "3").set("validate-every", "10").set("max-updates", "50");
  train(task);
  const fs::path training = task.output() / "training";
  std::vector<std::string> kept;
  for (const auto& entry : fs::directory_iterator(training)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("parameters-")) kept.push_back(name);
  }
  EXPECT_THAT(kept,
              testing::IsSupersetOf({"parameters-00000030.safetensors", "parameters-00000040.safetensors",
                                     "parameters-00000050.safetensors"}));
  EXPECT_LE(kept.size(), 4u) << "the best one besides";

  const auto a = floats(training / "parameters-00000030.safetensors", "parameters"),
             b = floats(training / "parameters-00000040.safetensors", "parameters"),
             c = floats(training / "parameters-00000050.safetensors", "parameters");
  const auto mean = StateFolder(training).mean({30, 40, 50}, a.size());
  bool differ = false;
  for (size_t i = 0; i < a.size(); ++i) {
    const double sum = static_cast<double>(a[i]) + static_cast<double>(b[i]) + static_cast<double>(c[i]);
    EXPECT_EQ(mean[i], static_cast<float>(sum / 3));
    differ |= a[i] != c[i];
  }
  EXPECT_TRUE(differ);
  EXPECT_EQ(StateFolder(training).mean({50}, a.size()), c);

  // The model is the best of what was validated, or the mean.
  const auto table = floats(task.output() / "model.safetensors", "model.shared.weight");
  const auto begins = [&](const std::vector<float>& values) {
    return std::equal(table.begin(), table.end(), values.begin());
  };
  const auto best =
      floats(training / fmt::format("parameters-{:08}.safetensors",
                                    progress_of(task.output()).at("best_update").get<int64_t>()),
             "parameters");
  EXPECT_TRUE(begins(mean) || begins(best));
}

// The average of each update, from runs that are one update longer each.
TEST(Training, MovesItsAverageTowardsTheParameters) {
  Task task;
  task.set("ema", "0.5").set("average", "1");
  std::vector<float> expected;
  for (int update = 1; update <= 6; ++update) {
    train(task.set("max-updates", std::to_string(update)));
    const fs::path state = task.output() / "training" / "state.safetensors";
    const auto parameters = floats(state, "parameters"), average = floats(state, "moving_average");
    const double decay = std::min(0.5, (1.0 + update) / (10.0 + update));
    if (update > 1) {
      for (size_t i = 0; i < average.size(); ++i) {
        const double want =
            decay * static_cast<double>(expected[i]) + (1 - decay) * static_cast<double>(parameters[i]);
        EXPECT_NEAR(average[i], want, 1e-6 * std::max(1.0, std::abs(want)));
      }
      EXPECT_NE(average, parameters);
    }
    expected = average;
  }
}

// By a clock that goes on by a second whenever somebody looks at it.
TEST(Training, StaysWithinItsMinutesInPieces) {
  double now = 1e6;
  int64_t looks = 0;
  const Clock clock = [&] {
    ++looks;
    return now += 1;
  };
  Task task;
  task.set("minutes", "3").set("patience", "0").set("save-every", "1000000");
  Recorder recorder;
  const Outcome outcome = train(task, recorder, clock);
  EXPECT_THAT(outcome.reason, HasSubstr("after 3 minutes (--minutes)"));
  EXPECT_GT(outcome.updates, 10);
  EXPECT_LE(outcome.updates, 180);
  EXPECT_LT(looks, 250) << "the clock did not matter";
  EXPECT_EQ(train(task, recorder, clock).kind, Outcome::Kind::complete);

  // The second piece has two minutes left of five, however long the night between was.
  now += 1e5;
  looks = 0;
  const Outcome more = train(task.set("minutes", "5"), recorder, clock);
  EXPECT_THAT(more.reason, HasSubstr("after 5 minutes (--minutes)"));
  EXPECT_GT(more.updates, outcome.updates);
  EXPECT_GT(looks, 90);
  EXPECT_LT(looks, 180);
}

}  // namespace
}  // namespace gloss::train
