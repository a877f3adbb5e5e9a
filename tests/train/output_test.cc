// The folder a run writes into: whose it is, and what is in it when something ends halfway.
#include "gloss/train/output.h"

#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include "gloss/train/log.h"
#include "gloss/train/setup.h"
#include "train/fixture.h"

namespace gloss::train {
namespace {

using testing::HasSubstr;

struct Folder {
  text::TemporaryFolder folder;
  TrainOptions options;
  Folder() { options.output = (folder.path() / "model").string(); }
  fs::path path() const { return options.output; }
  void put(const std::string& name, const std::string& contents = "x") const {
    fs::create_directories((path() / name).parent_path());
    std::ofstream(path() / name) << contents;
  }
};

TEST(Output, IsLockedAgainstASecondProcess) {
  Folder f;
  {
    const OutputFolder first(f.options, "{}");
    EXPECT_THAT(text::error_of([&] { OutputFolder(f.options, "{}"); }),
                HasSubstr("another process is training into " + f.path().string()));
    f.options.overwrite = true;
    EXPECT_THAT(text::error_of([&] { OutputFolder(f.options, "{}"); }), HasSubstr("another process"));
  }
  EXPECT_NO_THROW(OutputFolder(f.options, "{}"));
}

TEST(Output, IsNotAForeignModels) {
  Folder f;
  f.put("config.json");
  EXPECT_THAT(text::error_of([&] { OutputFolder(f.options, "{}"); }), HasSubstr("holds a model already"));
  EXPECT_FALSE(fs::exists(f.path() / "training")) << "nothing is left in a folder that was refused";
  f.options.overwrite = true;
  EXPECT_NO_THROW(OutputFolder(f.options, "{}"));
  EXPECT_TRUE(fs::exists(f.path() / "config.json")) << "it stays until the new run begins";
}

TEST(Output, MustBeWritable) {
  Folder f;
  f.options.output = "/proc/gloss-model";
  EXPECT_THAT(text::error_of([&] { OutputFolder(f.options, "{}"); }), HasSubstr("/proc/gloss-model"));
  std::ofstream(f.folder.path() / "file") << "x";
  f.options.output = (f.folder.path() / "file").string();
  EXPECT_THAT(text::error_of([&] { OutputFolder(f.options, "{}"); }), HasSubstr("it is a file"));
  EXPECT_THAT(text::error_of([&] {
                f.options.output = (f.folder.path() / "new").string();
                OutputFolder(f.options, "{}").require_room(uint64_t{1} << 60);
              }),
              HasSubstr("MB are needed"));
}

// A run that an older version began knows fewer options, one of a newer version more.
TEST(Output, ReadsTheRunsOfOtherVersions) {
  Folder f;
  const std::string own = identity(f.options, {"a", "b", ""});
  const auto written = nlohmann::ordered_json::parse(own);
  int options = 0;
  for (const auto& [key, value] : written.items()) {
    auto older = written;
    older.erase(key);
    f.put("training/run.json", older.dump());
    if (key.ends_with("_text")) {
      EXPECT_THAT(text::error_of([&] { OutputFolder(f.options, own); }), HasSubstr("a run on another"))
          << key;
    } else {
      EXPECT_TRUE(OutputFolder(f.options, own).continues()) << key;
      ++options;
    }
  }
  EXPECT_GT(options, 30);

  auto older = written;
  older.erase("ema");
  f.put("training/run.json", older.dump());
  TrainOptions averaging = f.options;
  averaging.ema = 0.5;
  EXPECT_THAT(text::error_of([&] {
                OutputFolder(averaging, identity(averaging, {"a", "b", ""}));
              }),
              HasSubstr("holds a run with --ema 0.0, and this command says 0.5"));

  auto newer = written;
  newer["moon_phase"] = "full";
  f.put("training/run.json", newer.dump());
  EXPECT_THAT(text::error_of([&] { OutputFolder(f.options, own); }),
              HasSubstr("holds a run with --moon-phase full, an option that this version of gloss does not"));
}

TEST(Output, GoesOnOverwritingUntilTheRunHasEnded) {
  Task task;
  train(task.set("max-updates", "2"));
  const text::Tokenizer tokenizer = text::Tokenizer::load(task.output());
  TrainOptions options = task.options.value;
  options.overwrite = true;
  const std::string own = identity(options, {"a", "b", ""});
  const auto continues = [&](const TrainOptions& with) {
    return OutputFolder(with, identity(with, {"a", "b", ""})).continues();
  };
  {
    const OutputFolder folder(options, own);
    EXPECT_FALSE(folder.continues()) << "another run";
    folder.begin(tokenizer);
  }
  EXPECT_TRUE(continues(options));
  TrainOptions other = options;
  other.dropout = 0.3;
  EXPECT_FALSE(continues(other)) << "another run, which --overwrite may begin";
  TrainOptions plain = options;
  plain.overwrite = false;
  EXPECT_TRUE(continues(plain));
  {
    const OutputFolder folder(plain, own);
    folder.end();
  }
  EXPECT_FALSE(continues(options));
  EXPECT_TRUE(continues(plain));
  OutputFolder(plain, own).begin(tokenizer);
  EXPECT_FALSE(continues(options)) << "a run that began without --overwrite is replaced";
  OutputFolder(options, own).begin(tokenizer);
  std::ofstream(task.output() / "training" / "run.json") << "[";
  EXPECT_FALSE(continues(options)) << "a damaged run is replaced";
}

TEST(Output, BeginsWithNothingOfAnEarlierRun) {
  Task task;
  task.set("max-updates", "20").set("validate-every", "5").set("joint", "false");
  train(task);
  const std::string before = bytes_of(task.output() / "vocab.json");
  EXPECT_THAT(error_of_training(task.set("vocab-size", "60")), HasSubstr("--vocab-size 100"));
  task.set("joint", "true").set("overwrite", "true").set("max-updates", "3");
  EXPECT_EQ(train(task).updates, 3);
  EXPECT_NE(bytes_of(task.output() / "vocab.json"), before);
  EXPECT_FALSE(fs::exists(task.output() / "target_vocab.json"));
  EXPECT_EQ(log_of(task.output()).back().at("update"), 3);
  for (const auto& entry : fs::directory_iterator(task.output() / "training"))
    EXPECT_THAT(entry.path().filename().string(), testing::AnyOf("lock", "run.json", "state.safetensors"));
}

// Whatever file the new run cannot write, no whole model with another run's vocabulary is left.
TEST(Output, IsNeverAMixtureOfTwoRuns) {
  Task task;
  task.set("max-updates", "5");
  train(task);
  task.set("vocab-size", "60").set("overwrite", "true");
  const auto files = {"source.spm", "target.spm", "vocab.json", "tokenizer_config.json", "training/run.json"};
  for (const char* obstacle : files) {
    const fs::path path = task.output() / obstacle;
    fs::remove(path);
    fs::create_directories(path / "not-empty");  // a folder stands where a file is to be written
    EXPECT_NE(error_of_training(task), "") << obstacle;
    EXPECT_FALSE(fs::exists(task.output() / "config.json")) << obstacle;
    EXPECT_FALSE(fs::exists(task.output() / "training" / "state.safetensors")) << obstacle;
    fs::remove_all(path);
  }
  task.set("overwrite", "false");
  EXPECT_EQ(train(task).updates, 5) << "the folder is free again";
}

// SIGXFSZ ignored, a process that may write no more than `bytes` into a file gets an error as from a full
// disk.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : handler_(::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    ::signal(SIGXFSZ, handler_);
  }

 private:
  rlimit before_{};
  void (*handler_)(int);
};

TEST(Output, KeepsStateAndModelWhenSavingFails) {
  Task task;
  task.set("max-updates", "20").set("validate-every", "5").set("save-every", "1");
  train(task);
  const fs::path state = task.output() / "training" / "state.safetensors";
  const std::string state_bytes = bytes_of(state),
                    model_bytes = bytes_of(task.output() / "model.safetensors");
  task.set("max-updates", "60");
  {
    const FileSizeLimit limit(state_bytes.size() / 2);  // the model fits, the state does not
    EXPECT_THAT(error_of_training(task),
                testing::AllOf(HasSubstr("state.safetensors"), HasSubstr("the previous file is intact")));
  }
  EXPECT_TRUE(bytes_of(state) == state_bytes);
  EXPECT_TRUE(bytes_of(task.output() / "model.safetensors") == model_bytes);
  {
    const FileSizeLimit limit(bytes_of(task.output() / "train.jsonl").size() + 100);
    EXPECT_THAT(error_of_training(task), HasSubstr("intact"));
  }
  EXPECT_EQ(train(task).updates, 60);

  Task whole;
  whole.set("max-updates", "60").set("validate-every", "5").set("save-every", "1");
  train(whole);
  expect_same_run(whole.output(), task.output());
}

TEST(Log, GoesOnBehindTheLinesItKeeps) {
  const text::TemporaryFolder folder;
  const fs::path path = folder.write("train.jsonl", "{\"update\":1}\n{\"update\":2}\n{\"upda");
  TrainLog log(path, 1);
  EXPECT_EQ(log.lines(), 1);
  log.write({{"update", 7}});
  EXPECT_EQ(log.lines(), 2);
  EXPECT_EQ(bytes_of(path), "{\"update\":1}\n{\"update\":7}\n");
  EXPECT_EQ(TrainLog(folder.path() / "new.jsonl", 5).lines(), 0);
  EXPECT_THAT(text::error_of([&] {
                TrainLog full(folder.path() / "train.jsonl", 2);
                const FileSizeLimit limit(10);
                full.write({{"update", 8}});
              }),
              HasSubstr("the disk may be full"));
}

}  // namespace
}  // namespace gloss::train
