// A run that stops, however it stops, goes on as if it had not.
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <set>

#include "gloss/models/model_folder.h"
#include "gloss/text/tokenizer.h"
#include "train/fixture.h"

namespace {

// The moments at which a process can die are counted and not timed. Every file of a run takes its place by
// rename(), so what is on the disk changes from one moment to the next, right before a rename and right after
// it.
int moments_to_live = 0;  // 0: for ever

void live_through_a_moment() {
  if (moments_to_live > 0 && --moments_to_live == 0) ::kill(::getpid(), SIGKILL);
}

}  // namespace

// In this program it stands in front of the C library's.
extern "C" int rename(const char* from, const char* to) noexcept {
  live_through_a_moment();
  const int result = ::renameat(AT_FDCWD, from, AT_FDCWD, to);
  live_through_a_moment();
  return result;
}

namespace gloss::train {
namespace {

// Runs `work` in a process of its own; what kills it does not kill the tests. Returns the signal, or 0.
int in_child(const std::function<void()>& work) {
  const pid_t child = ::fork();
  if (child == 0) {
    try {
      work();
    } catch (const std::exception& error) {
      fprintf(stderr, "in the child: %s\n", error.what());
      ::_exit(1);
    }
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status) || WEXITSTATUS(status) == 0);
  return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

// Trains and dies by SIGKILL when a message holds `text`.
void die_at(const Task& task, const std::string& text) {
  const int signal = in_child([&] {
    Recorder recorder;
    recorder.on_message = [&](const std::string& message) {
      if (message.find(text) != std::string::npos) ::kill(::getpid(), SIGKILL);
    };
    train(task, recorder);
  });
  ASSERT_EQ(signal, SIGKILL) << "nothing said '" << text << "'";
}

// Trains until a line of any kind holds `text`: that is told to stop.
Outcome stop_at(const Task& task, const std::string& text, Recorder& recorder) {
  std::atomic<bool> stop{false};
  const auto look = [&](const std::string& line) {
    if (line.find(text) != std::string::npos) stop = true;
  };
  recorder.on_message = look;
  recorder.on_progress = [&] { look(recorder.lines.back()); };
  const Outcome outcome = run(task.options, recorder, stop);
  EXPECT_TRUE(stop.load()) << "nothing said '" << text << "'";
  recorder.on_message = [](const std::string&) {};
  recorder.on_progress = [] {};
  return outcome;
}

// The lengths are no multiples of each other, so that the limits fall into the middle of epochs.
struct LongTask : Task {
  LongTask() { set("max-updates", "200").set("save-every", "9").set("average", "3"); }
};

TEST(Resume, EqualsNeverHavingStopped) {
  LongTask task;
  task.into("whole");
  EXPECT_EQ(train(task).updates, 200);
  const fs::path whole = task.output();

  task.into("killed");
  die_at(task, "epoch 12 ");
  EXPECT_LT(progress_of(task.output()).at("update"), 199);
  EXPECT_GT(progress_of(task.output()).at("update"), 50);
  Recorder recorder;
  EXPECT_EQ(train(task, recorder).kind, Outcome::Kind::trained);
  EXPECT_THAT(recorder.messages, testing::Contains(testing::HasSubstr("going on after update")));
  expect_same_run(whole, task.output());

  task.into("pieces");
  for (const char* updates : {"1", "37", "100", "101", "200"})
    EXPECT_EQ(train(task.set("max-updates", updates)).updates, std::stoi(updates));
  expect_same_run(whole, task.output());

  // The comparison can fail: another seed is another run.
  task.into("other").set("seed", "2");
  train(task);
  EXPECT_NE(state_tensors(whole), state_tensors(task.output()));
}

TEST(Resume, EqualsWithAccumulationAveragesAndBleu) {
  LongTask task;
  task.set("accumulate", "2").set("ema", "0.9").set("valid-metric", "bleu").set("validate-every", "7");
  task.set("max-updates", "60").set("dropout", "0.3").set("attention-dropout", "0.1");
  task.into("whole");
  train(task);
  const fs::path whole = task.output();
  task.into("killed");
  die_at(task, "update 28:");
  train(task);
  expect_same_run(whole, task.output());
  EXPECT_TRUE(state_tensors(whole).contains("moving_average"));
}

TEST(Resume, DoesNotDependOnThreads) {
  for (const kernels::Precision precision : {kernels::Precision::float32, kernels::Precision::bfloat16}) {
    if (!kernels::precision_served(precision)) continue;
    SCOPED_TRACE(kernels::precision_name(precision));
    LongTask task;
    task.set("max-updates", "40")
        .set("dropout", "0.2")
        .set("precision", std::string(kernels::precision_name(precision)));
    task.into("one");
    train(task);
    const fs::path one = task.output();
    for (const char* threads : {"2", "3"}) {
      task.into(std::string("threads") + threads).set("threads", threads);
      train(task.set("max-updates", "17"));
      train(task.set("max-updates", "40"));
      expect_same_run(one, task.output());
    }
  }
}

// Whenever the process dies: the model is whole or absent, and the run goes on.
TEST(Resume, SurvivesDeathAtAnyMoment) {
  LongTask task;
  task.set("max-updates", "120").set("save-every", "4").set("validate-every", "5").into("whole");
  train(task);
  const fs::path whole = task.output();
  task.into("killed");
  // The first dies at its first moment, the second at its second: so that all die that begin a run, and then
  // whatever they do where they come to.
  int deaths = 0;
  const auto live_longer = [&] {
    moments_to_live = deaths + 1;
    train(task);
  };
  for (; in_child(live_longer) == SIGKILL; ++deaths) {
    ASSERT_LT(deaths, 200) << "it never comes to its end";
    if (!fs::exists(task.output() / "config.json")) continue;
    Arena arena;
    const auto model = models::load_model(task.output(), arena);
    const auto tokenizer = text::Tokenizer::load(task.output());
    EXPECT_NO_THROW(tokenizer.require_fits(model->source_vocabulary(), model->target_vocabulary(),
                                           model->symbols().end, "model"));
  }
  EXPECT_GT(deaths, 20);
  EXPECT_EQ(train(task).kind, Outcome::Kind::complete);
  expect_same_run(whole, task.output());
}

TEST(Resume, StopsWhereItIsTold) {
  LongTask task;
  task.set("max-updates", "60").into("whole");
  train(task);
  const fs::path whole = task.output();
  task.into("stopped");
  Recorder recorder;
  const Outcome outcome = stop_at(task, "epoch 3 ", recorder);
  EXPECT_EQ(outcome.kind, Outcome::Kind::interrupted);
  EXPECT_THAT(outcome.reason, testing::HasSubstr("the same command goes on"));
  EXPECT_EQ(progress_of(task.output()).at("update"), outcome.updates);
  EXPECT_LT(outcome.updates, 60);
  EXPECT_EQ(train(task).kind, Outcome::Kind::trained);
  expect_same_run(whole, task.output());

  const std::string model = bytes_of(whole / "model.safetensors"), log = bytes_of(whole / "train.jsonl");
  const Outcome again = train(task);
  EXPECT_EQ(again.kind, Outcome::Kind::complete);
  EXPECT_EQ(again.updates, 60);
  EXPECT_GT(again.perplexity, 1);
  EXPECT_THAT(again.reason, testing::HasSubstr("nothing to do"));
  EXPECT_TRUE(bytes_of(whole / "model.safetensors") == model);
  EXPECT_EQ(bytes_of(whole / "train.jsonl"), log);
}

// The line of progress comes right before the validation, which is then put off.
TEST(Resume, PutsOffAValidationThatIsStopped) {
  LongTask task;
  task.set("max-updates", "60").set("validate-every", "7").set("valid-metric", "bleu").into("whole");
  train(task);
  const fs::path whole = task.output();
  for (const int64_t update : {7, 28, 56}) {
    for (const int64_t limit : {update, int64_t{60}}) {  // at a limit and before it
      SCOPED_TRACE(fmt::format("stopped at {} of {}", update, limit));
      task.into(fmt::format("{}-of-{}", update, limit)).set("max-updates", std::to_string(limit));
      Recorder recorder;
      const Outcome outcome = stop_at(task, fmt::format("update {} ", update), recorder);
      EXPECT_EQ(outcome.kind, Outcome::Kind::interrupted);
      EXPECT_EQ(outcome.updates, update);
      const auto validated = testing::HasSubstr(fmt::format("update {}: validation", update));
      EXPECT_THAT(recorder.messages, testing::Not(testing::Contains(validated)));
      EXPECT_EQ(progress_of(task.output()).at("validation_pending"), true);
      EXPECT_EQ(train(task, recorder).kind, Outcome::Kind::trained);
      EXPECT_THAT(recorder.messages, testing::Contains(validated));
      train(task.set("max-updates", "60"));
      expect_same_run(whole, task.output());
    }
  }
}

// After the last update the last models are judged, and their mean. Stopped there, the run ends another time.
TEST(Resume, EndsAnotherTimeWhenItsEndIsStopped) {
  LongTask task;
  task.set("max-updates", "60").into("whole");
  Recorder whole_run;
  train(task, whole_run);
  const fs::path whole = task.output();
  const std::string last = "update 60: validation";
  ASSERT_THAT(whole_run.messages, testing::Contains(testing::HasSubstr(last)));
  task.into("stopped");
  Recorder recorder;
  EXPECT_EQ(stop_at(task, last, recorder).kind, Outcome::Kind::interrupted);
  EXPECT_THAT(recorder.messages, testing::Not(testing::Contains(testing::HasSubstr("the mean of"))));
  EXPECT_EQ(train(task, recorder).kind, Outcome::Kind::trained);
  EXPECT_THAT(recorder.messages, testing::Contains(testing::HasSubstr("the mean of")));
  expect_same_run(whole, task.output());
}

// --overwrite starts anew, but not over its own beginning: whoever gives an interrupted command again wants
// to go on.
TEST(Resume, GoesOnWithACommandThatOverwrites) {
  LongTask task;
  task.set("max-updates", "60").into("whole");
  train(task);
  const fs::path whole = task.output();
  for (const bool killed : {false, true}) {
    SCOPED_TRACE(killed);
    task.into(killed ? "killed" : "stopped").set("overwrite", "false").set("seed", "2");
    train(task.set("max-updates", "9"));  // what is to be replaced
    task.set("seed", "1").set("overwrite", "true").set("max-updates", "60");
    if (killed) {
      die_at(task, "epoch 5 ");
    } else {
      Recorder recorder;
      EXPECT_EQ(stop_at(task, "epoch 5 ", recorder).kind, Outcome::Kind::interrupted);
      EXPECT_THAT(recorder.messages, testing::Not(testing::Contains(testing::HasSubstr("going on"))));
    }
    const int64_t update = progress_of(task.output()).at("update");
    EXPECT_GT(update, 9);
    Recorder recorder;
    EXPECT_EQ(train(task, recorder).kind, Outcome::Kind::trained);
    EXPECT_THAT(recorder.messages,
                testing::Contains(testing::HasSubstr(fmt::format("going on after update {} ", update))));
    expect_same_run(whole, task.output());

    // It has ended: the command means what it says again.
    Recorder again;
    EXPECT_EQ(train(task, again).kind, Outcome::Kind::trained);
    EXPECT_THAT(again.messages, testing::Not(testing::Contains(testing::HasSubstr("going on"))));
    expect_same_run(whole, task.output());
  }
}

TEST(Resume, CutsTheLogToWhatTheStateKnows) {
  LongTask task;
  task.set("max-updates", "50");
  train(task);
  std::ofstream(task.output() / "train.jsonl", std::ios::app) << "{\"update\": 50, \"half a li";
  train(task.set("max-updates", "90"));
  int64_t last = 0;
  std::set<int64_t> validated;
  for (const nlohmann::json& entry : log_of(task.output())) {
    EXPECT_GE(entry.at("update").get<int64_t>(), last);
    last = entry.at("update");
    if (!entry.contains("valid_perplexity")) continue;
    EXPECT_TRUE(validated.insert(last).second) << last;
  }
  EXPECT_EQ(last, 90);
}

TEST(Resume, RefusesAnotherRunAndSaysWhatDiffers) {
  LongTask task;
  task.set("max-updates", "5");
  train(task);
  const std::string model = bytes_of(task.output() / "model.safetensors");
  const auto refused = [&](const std::string& name, const std::string& other, const std::string& was) {
    const Typed<TrainOptions> before = task.options;
    task.set(name, other);
    EXPECT_THAT(error_of_training(task),
                testing::AllOf(testing::HasSubstr("--" + name + " " + was),
                               testing::HasSubstr("says " + other), testing::HasSubstr("--overwrite")));
    task.options = before;
  };
  refused("dropout", "0.25", "0.1");
  refused("d-model", "32", "16");
  refused("pre-norm", "true", "false");
  refused("activation", "gelu", "relu");
  refused("seed", "7", "1");
  refused("average", "9", "3");
  EXPECT_EQ(bytes_of(task.output() / "model.safetensors"), model);

  // Limits, threads and where the texts lie may change; the texts may not.
  task.set("patience", "2").set("threads", "2").set("save-every", "3").set("minutes", "5");
  fs::copy(task.folder.path() / "train.src", task.folder.path() / "moved.src");
  task.set("train", {(task.folder.path() / "moved.src").string(), task.options.value.train[1]});
  EXPECT_EQ(train(task).kind, Outcome::Kind::complete);
  task.folder.write("moved.src", bytes_of(task.folder.path() / "train.src").replace(0, 3, "fox"));
  EXPECT_THAT(error_of_training(task), testing::HasSubstr("a run on another training text"));
  task.folder.write("valid.src", bytes_of(task.folder.path() / "valid.src").replace(0, 3, "owl"));
  task.set("train", {(task.folder.path() / "train.src").string(), task.options.value.train[1]});
  EXPECT_THAT(error_of_training(task), testing::HasSubstr("a run on another validation text"));
}

TEST(Resume, SaysWhichFileIsDamaged) {
  LongTask task;
  train(task.set("max-updates", "5"));
  task.set("max-updates", "9");
  const fs::path state = task.output() / "training" / "state.safetensors";
  const std::string whole = bytes_of(state);
  for (const size_t kept : {size_t{0}, size_t{4}, size_t{100}, whole.size() - 1}) {
    std::ofstream(state, std::ios::binary) << whole.substr(0, kept);
    EXPECT_THAT(error_of_training(task), testing::HasSubstr("state.safetensors"));
  }
  std::string other = whole;
  other.replace(other.find("adam.first_moment"), 17, "adam.f1rst_moment");
  std::ofstream(state, std::ios::binary) << other;
  EXPECT_THAT(error_of_training(task), testing::HasSubstr("'adam.first_moment' does not have the"));
  other = whole;
  other.replace(other.find("\\\"update\\\":5"), 12, "\\\"update\\\":-");
  std::ofstream(state, std::ios::binary) << other;
  EXPECT_THAT(error_of_training(task), testing::HasSubstr("state.safetensors"));
  std::ofstream(state, std::ios::binary) << whole;
  std::ofstream(task.output() / "training" / "run.json") << "[]";
  EXPECT_THAT(error_of_training(task), testing::HasSubstr("run.json"));
}

}  // namespace
}  // namespace gloss::train
