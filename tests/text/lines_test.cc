#include "gloss/text/lines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <thread>

#include "gloss/text/utf8.h"
#include "text/fixture.h"

namespace gloss::text {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::vector<Line> lines_of(std::string_view bytes, InvalidUtf8 invalid = InvalidUtf8::fail) {
  const TemporaryFolder folder;
  return read_lines(folder.write("lines.txt", bytes), invalid);
}

std::string error_for(std::string_view bytes, InvalidUtf8 invalid = InvalidUtf8::fail) {
  return error_of([&] { lines_of(bytes, invalid); });
}

TEST(Lines, KeepEachLinesOwnEnding) {
  const auto lines = lines_of("one\r\ntwo\n\n\r\nfive");
  ASSERT_EQ(lines.size(), 5u);
  EXPECT_EQ(lines[0].text, "one");
  EXPECT_EQ(lines[0].ending, "\r\n");
  EXPECT_EQ(lines[1].text, "two");
  EXPECT_EQ(lines[1].ending, "\n");
  EXPECT_EQ(lines[2].text + lines[3].text, "");
  EXPECT_EQ(lines[3].ending, "\r\n");
  EXPECT_EQ(lines[4].text, "five");
  EXPECT_EQ(lines[4].ending, "");
  EXPECT_EQ(lines[4].number, 5);
}

TEST(Lines, NothingButNewlinesEndsALine) {
  const auto lines = lines_of(
      "a\rb\vc\fd\xC2\x85"
      "e\xE2\x80\xA8"
      "f\n");  // NEL and LINE SEPARATOR among them
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0].text,
            "a\rb\vc\fd\xC2\x85"
            "e\xE2\x80\xA8"
            "f");
}

TEST(Lines, EmptyInputHasNoLines) {
  EXPECT_TRUE(lines_of("").empty());
  EXPECT_TRUE(lines_of("\xEF\xBB\xBF").empty());
  EXPECT_EQ(lines_of("\n").size(), 1u);
}

TEST(Lines, AByteOrderMarkIsDroppedAtTheStartOnly) {
  const auto lines = lines_of("\xEF\xBB\xBFone\n\xEF\xBB\xBFtwo\n");
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0].text, "one");
  EXPECT_EQ(lines[0].offset, 3);
  EXPECT_EQ(lines[1].text, "\xEF\xBB\xBFtwo");
}

TEST(Lines, MayBeVeryLong) {
  std::string big;
  while (big.size() < (size_t{5} << 20)) big += "wörter ";
  const auto lines = lines_of("short\n" + big + "\nshort");
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[1].text, big);
  EXPECT_EQ(lines[2].text, "short");
}

RC_GTEST_PROP(Lines, TextAndEndingsTogetherAreTheFile, ()) {
  const auto parts = *rc::gen::container<std::vector<std::string>>(
      rc::gen::element<std::string>("a", "é", " ", "\r", "\n", "\r\n", "中"));
  std::string bytes, again;
  for (const auto& part : parts) bytes += part;
  for (const Line& line : lines_of(bytes)) {
    RC_ASSERT(line.offset == static_cast<int64_t>(again.size()));
    RC_ASSERT(line.text.find('\n') == std::string::npos);
    again += line.text + std::string(line.ending);
  }
  RC_ASSERT(again == bytes);
}

TEST(Lines, InvalidUtf8IsNamedByLineAndByte) {
  const std::string bytes = "fine\nalso fine\ncaf\xE9 au lait\n";
  EXPECT_THAT(error_for(bytes), AllOf(HasSubstr("line 3"), HasSubstr("lines.txt"), HasSubstr("byte 4"),
                                      HasSubstr("0xE9"), HasSubstr("--replace-invalid")));
}

TEST(Lines, InvalidUtf8IsReplacedWhenAsked) {
  const TemporaryFolder folder;
  LineReader reader(folder.write("lines.txt", "fine\ncaf\xE9!\n"), InvalidUtf8::replace);
  Line line;
  ASSERT_TRUE(reader.next(line));
  EXPECT_FALSE(line.replaced);
  ASSERT_TRUE(reader.next(line));
  EXPECT_TRUE(line.replaced);
  EXPECT_EQ(line.text, "caf\xEF\xBF\xBD!");
  EXPECT_EQ(reader.replaced_lines(), 1);
}

TEST(Lines, RefuseWhatIsNoText) {
  EXPECT_THAT(error_for(std::string("one\ntw\0o\n", 9)), AllOf(HasSubstr("line 2"), HasSubstr("NUL")));
  EXPECT_THAT(error_for(std::string("one\ntw\0o\n", 9), InvalidUtf8::replace), HasSubstr("NUL"));
  EXPECT_THAT(error_for("\x7F"
                        "ELF\x02\x01\x01" +
                        std::string(9, '\0')),
              HasSubstr("NUL"));
  EXPECT_THAT(error_for("\x1F\x8B\x08 more"), AllOf(HasSubstr("gzip"), HasSubstr("gunzip")));
  EXPECT_THAT(error_for("PK\x03\x04 more"), HasSubstr("zip archive"));
  EXPECT_THAT(error_for(std::string("\xFF\xFEh\0i\0\n\0", 8)),
              AllOf(HasSubstr("UTF-16"), HasSubstr("iconv")));
  EXPECT_EQ(lines_of("BZh is a word, PK too\n").size(), 1u);
}

TEST(Lines, RefuseWhatCannotBeOpened) {
  const TemporaryFolder folder;
  EXPECT_THAT(error_of([&] { read_lines(folder.path() / "none.txt"); }),
              AllOf(HasSubstr("none.txt"), HasSubstr("does not exist")));
  EXPECT_THAT(error_of([&] { read_lines(folder.path()); }), HasSubstr("is a folder"));
  const auto secret = folder.write("secret.txt", "x");
  std::filesystem::permissions(secret, std::filesystem::perms::none);
  if (::access(secret.c_str(), R_OK) != 0) {  // root may read everything
    EXPECT_THAT(error_of([&] { read_lines(secret); }),
                AllOf(HasSubstr("secret.txt"), HasSubstr("permission")));
  }
}

TEST(Lines, ADeviceFullOfZerosDoesNotFillTheMemory) {
  EXPECT_THAT(error_of([] { read_lines("/dev/zero"); }), HasSubstr("NUL"));
}

TEST(Lines, ComeOutOfAPipeAsTheyComeIn) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const auto put = [&](std::string_view text) {
    ASSERT_EQ(::write(ends[1], text.data(), text.size()), static_cast<ssize_t>(text.size()));
  };
  LineReader reader(ends[0], "standard input");
  Line line;
  EXPECT_FALSE(reader.ready());
  put("\xEF\xBB\xBFone\r\ntwo\nthr");
  EXPECT_TRUE(reader.ready());
  ASSERT_TRUE(reader.next(line));  // although more of it is open
  EXPECT_EQ(line.text, "one");
  EXPECT_TRUE(reader.ready());
  ASSERT_TRUE(reader.next(line));
  EXPECT_EQ(line.text, "two");
  EXPECT_FALSE(reader.ready());
  put("e");
  EXPECT_FALSE(reader.ready()) << "there is something to read, but no whole line";
  std::thread writer([&] {
    put("e");
    ::close(ends[1]);
  });
  ASSERT_TRUE(reader.next(line));
  EXPECT_EQ(line.text, "three");
  EXPECT_EQ(line.ending, "");
  EXPECT_FALSE(reader.next(line));
  EXPECT_FALSE(reader.next(line));
  writer.join();
  ::close(ends[0]);
}

TEST(Lines, ErrorsOfAPipeCarryItsName) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  ASSERT_EQ(::write(ends[1], "ok\n\xFF\n", 5), 5);
  ::close(ends[1]);
  LineReader reader(ends[0], "standard input");
  Line line;
  ASSERT_TRUE(reader.next(line));
  EXPECT_THAT(error_of([&] { reader.next(line); }), AllOf(HasSubstr("line 2"), HasSubstr("standard input")));
  ::close(ends[0]);
}

}  // namespace
}  // namespace gloss::text
