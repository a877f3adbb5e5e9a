#include "gloss/io/atomic_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "io/scratch.h"

namespace gloss::io {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(AtomicFile, PutsTheWholeFileInPlaceAtCommit) {
  const Scratch scratch;
  put(scratch / "f", "old");
  AtomicFile file(scratch / "f");
  file.write("new ");
  file.write(std::string(700'000, 'x'));
  file.write("end");
  EXPECT_EQ(contents(scratch / "f"), "old");
  EXPECT_EQ(file.bytes_written(), 700'007u);
  file.commit();
  EXPECT_EQ(contents(scratch / "f"), "new " + std::string(700'000, 'x') + "end");
  EXPECT_THAT(scratch.files(), ElementsAre("f"));
  EXPECT_THAT(message_of([&] { file.write("more"); }), HasSubstr("already finished"));
  EXPECT_THAT(message_of([&] { file.commit(); }), HasSubstr("already finished"));
}

TEST(AtomicFile, LeavesEverythingAsItWasWithoutCommit) {
  const Scratch scratch;
  put(scratch / "f", "old");
  {
    AtomicFile file(scratch / "f");
    file.write(std::string(700'000, 'x'));
    AtomicFile fresh(scratch / "g");
  }
  EXPECT_EQ(contents(scratch / "f"), "old");
  EXPECT_THAT(scratch.files(), ElementsAre("f"));
}

TEST(AtomicFile, WritesRelativeNamesAndEmptyFiles) {
  const Scratch scratch;
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(scratch.path());
  write_file_atomically("f", "");
  std::filesystem::current_path(before);
  EXPECT_TRUE(std::filesystem::exists(scratch / "f"));
  EXPECT_EQ(contents(scratch / "f"), "");
}

TEST(AtomicFile, KeepsPermissionsAndLinks) {
  const Scratch scratch;
  put(scratch / "f", "old");
  ::chmod((scratch / "f").c_str(), 0640);
  std::filesystem::create_symlink("f", scratch / "link");
  write_file_atomically(scratch / "link", "new");
  EXPECT_TRUE(std::filesystem::is_symlink(scratch / "link"));
  EXPECT_EQ(contents(scratch / "f"), "new");
  struct stat status {};
  ASSERT_EQ(::stat((scratch / "f").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0640u);
  std::filesystem::create_symlink("loop", scratch / "loop");
  EXPECT_NE(message_of([&] { write_file_atomically(scratch / "missing" / "f", "x"); }), "");
}

TEST(AtomicFile, WritesDevicesDirectly) {
  write_file_atomically("/dev/null", "gone");
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
}

TEST(AtomicFile, SaysWhatIsInTheWay) {
  const Scratch scratch;
  EXPECT_THAT(message_of([&] { AtomicFile file(scratch.path()); }), HasSubstr("it is a folder"));
  EXPECT_THAT(message_of([&] { AtomicFile file(scratch / "no" / "f"); }),
              HasSubstr((scratch / "no").string() + " does not exist; make it and run again"));
  put(scratch / "f", "old");
  EXPECT_THAT(message_of([&] { AtomicFile file(scratch / "f" / "g"); }), HasSubstr("f is not a folder"));
  EXPECT_THAT(message_of([&] { AtomicFile file(scratch / std::string(300, 'n')); }),
              HasSubstr("choose a shorter name"));
  EXPECT_THAT(message_of([&] { AtomicFile file(""); }), HasSubstr("the name of a file is missing"));
  EXPECT_THAT(scratch.files(), ElementsAre("f"));
}

TEST(AtomicFile, ReportsAFullDevice) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "there is no /dev/full here";
  EXPECT_THAT(message_of([&] { write_file_atomically("/dev/full", "x"); }),
              HasSubstr("cannot write /dev/full: No space left on device"));
}

TEST(AtomicFile, KeepsThePreviousFileAtTheFileSizeLimit) {
  const Scratch scratch;
  put(scratch / "f", "old");
  rlimit former{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &former), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit small = former;
  small.rlim_cur = 1 << 20;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const std::string message =
      message_of([&] { write_file_atomically(scratch / "f", std::string(3 << 20, 'x')); });
  ::setrlimit(RLIMIT_FSIZE, &former);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(message,
            "cannot write " + (scratch / "f").string() +
                ": File too large; the previous file is intact; raise the file size limit (ulimit -f) or "
                "write to another file system");
  EXPECT_EQ(contents(scratch / "f"), "old");
  EXPECT_THAT(scratch.files(), ElementsAre("f"));
}

// A file system of one megabyte.
class FullDisk : public ::testing::Test {
 protected:
  void SetUp() override {
    if (::mount("none", scratch_.path().c_str(), "tmpfs", 0, "size=1m") != 0)
      GTEST_SKIP() << "mounting a small file system is not permitted here";
    mounted_ = true;
  }
  void TearDown() override {
    if (mounted_) ::umount(scratch_.path().c_str());
  }
  const Scratch scratch_;
  bool mounted_ = false;
};

TEST_F(FullDisk, KeepsThePreviousFile) {
  put(scratch_ / "f", "old");
  EXPECT_EQ(message_of([&] { write_file_atomically(scratch_ / "f", std::string(3 << 20, 'x')); }),
            "cannot write " + (scratch_ / "f").string() +
                ": No space left on device; the previous file is intact; free some space and run again");
  EXPECT_EQ(contents(scratch_ / "f"), "old");
  EXPECT_THAT(scratch_.files(), ElementsAre("f"));
}

TEST_F(FullDisk, IsNoticedBeforeLongWork) {
  writable_folder(scratch_ / "new", 1 << 16);
  EXPECT_THAT(message_of([&] { writable_folder(scratch_ / "new", 5 << 20); }),
              HasSubstr("6 MB are needed; free some space or choose another folder"));
}

// Runs as a user without rights, so that permissions count even when the tests run as root.
class OrdinaryUser {
 public:
  OrdinaryUser() : root_(::geteuid() == 0) {
    if (root_ && ::seteuid(65534) != 0) root_ = false;
  }
  ~OrdinaryUser() {
    if (root_ && ::seteuid(0) != 0) ADD_FAILURE() << "cannot become root again";
  }

 private:
  bool root_;
};

TEST(AtomicFile, ReportsAReadOnlyFolder) {
  const Scratch scratch;
  std::filesystem::create_directory(scratch / "d");
  put(scratch / "d/f", "old");
  ::chmod(scratch.path().c_str(), 0755);
  ::chmod((scratch / "d").c_str(), 0555);
  ::chmod((scratch / "d/f").c_str(), 0666);
  {
    const OrdinaryUser user;
    EXPECT_EQ(message_of([&] { write_file_atomically(scratch / "d/f", "new"); }),
              "cannot write " + (scratch / "d/f").string() +
                  ": Permission denied; the previous file is intact; choose a folder you can write to");
    EXPECT_THAT(message_of([&] { writable_folder(scratch / "d"); }), HasSubstr("Permission denied"));
    EXPECT_THAT(message_of([&] { writable_folder(scratch / "d/e"); }), HasSubstr("Permission denied"));
    EXPECT_THAT(message_of([&] { AtomicFolder folder(scratch / "d/e"); }), HasSubstr("Permission denied"));
  }
  EXPECT_EQ(contents(scratch / "d/f"), "old");
  ::chmod((scratch / "d").c_str(), 0755);
}

TEST(AtomicFile, RefusesToReplaceAReadOnlyFile) {
  const Scratch scratch;
  put(scratch / "f", "old");
  ::chmod(scratch.path().c_str(), 0777);
  ::chmod((scratch / "f").c_str(), 0444);
  const OrdinaryUser user;
  EXPECT_THAT(message_of([&] { write_file_atomically(scratch / "f", "new"); }),
              HasSubstr("Permission denied; the previous file is intact"));
}

// A writer killed in the middle leaves the old file, and the next writer removes its remains but not those of
// a living one.
TEST(AtomicFile, TidiesUpAfterTheKilledOnly) {
  const Scratch scratch;
  put(scratch / "f", "old");
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    AtomicFile file(scratch / "f");
    file.write(std::string(700'000, 'x'));
    AtomicFolder folder(scratch / "d");
    put(folder.path() / "g", "half");
    ::raise(SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(contents(scratch / "f"), "old");
  ASSERT_EQ(scratch.files().size(), 3u);

  AtomicFile living(scratch / "f");
  living.write("living");
  write_file_atomically(scratch / "f", "next");
  AtomicFolder(scratch / "d").commit();
  living.commit();
  EXPECT_EQ(contents(scratch / "f"), "living");
  EXPECT_THAT(scratch.files(), ElementsAre("d", "f"));
}

TEST(AtomicFolder, AppearsWholeAndReplacesWhole) {
  const Scratch scratch;
  for (const std::string name : {"first", "second"}) {
    AtomicFolder folder(scratch / "checkpoint/");
    write_file_atomically(folder.path() / name, name);
    EXPECT_EQ(std::filesystem::exists(scratch / "checkpoint"), name == "second");
    folder.commit();
    EXPECT_EQ(contents(scratch / "checkpoint" / name), name);
    EXPECT_THAT(scratch.files(), ElementsAre("checkpoint"));
  }
  EXPECT_FALSE(std::filesystem::exists(scratch / "checkpoint/first"));
}

TEST(AtomicFolder, IsAbsentWithoutCommit) {
  const Scratch scratch;
  {
    AtomicFolder folder(scratch / "checkpoint");
    put(folder.path() / "f", "x");
  }
  EXPECT_THAT(scratch.files(), IsEmpty());
}

TEST(AtomicFolder, ComesBackAfterAHaltBetweenTwoRenames) {
  const Scratch scratch;
  std::filesystem::create_directory(scratch / ".checkpoint.previous");
  put(scratch / ".checkpoint.previous" / "f", "kept");
  { AtomicFolder folder(scratch / "checkpoint"); }
  EXPECT_EQ(contents(scratch / "checkpoint" / "f"), "kept");
}

TEST(AtomicFolder, SaysWhatIsInTheWay) {
  const Scratch scratch;
  put(scratch / "f", "x");
  EXPECT_THAT(message_of([&] { AtomicFolder folder(scratch / "f"); }), HasSubstr("a file of this name"));
  EXPECT_THAT(message_of([&] { AtomicFolder folder(scratch / "no" / "d"); }),
              HasSubstr("the folder above it does not exist"));
}

TEST(WritableFolder, IsMadeWithItsParentsAndLeftEmpty) {
  const Scratch scratch;
  writable_folder(scratch / "a/b/c", 1);
  writable_folder(scratch / "a/b/c");
  EXPECT_TRUE(std::filesystem::is_directory(scratch / "a/b/c"));
  EXPECT_TRUE(std::filesystem::is_empty(scratch / "a/b/c"));
  put(scratch / "f", "x");
  EXPECT_THAT(message_of([&] { writable_folder(scratch / "f"); }), HasSubstr("it is a file"));
  EXPECT_THAT(message_of([&] { writable_folder(scratch / "f/g"); }), HasSubstr("Not a directory"));
  EXPECT_THAT(message_of([&] { writable_folder(scratch.path(), uint64_t{1} << 62); }), HasSubstr("MB free"));
}

}  // namespace
}  // namespace gloss::io
