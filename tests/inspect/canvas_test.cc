#include "gloss/inspect/canvas.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "inspect/support.h"
#include "io/scratch.h"

namespace gloss::inspect {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr Colour kWhite{1, 1, 1}, kBlack{0, 0, 0}, kRed{1, 0, 0};
constexpr PictureFormat kFormats[] = {PictureFormat::svg, PictureFormat::png, PictureFormat::pdf};

TEST(PictureFormat, GoesByTheEnding) {
  EXPECT_EQ(picture_format("a.svg"), PictureFormat::svg);
  EXPECT_EQ(picture_format("some/folder.x/a.PNG"), PictureFormat::png);
  EXPECT_EQ(picture_format("a.b.pdf"), PictureFormat::pdf);
  for (const char* name : {"a.jpg", "a", "", ".svg", "a.svg.gz", "png"}) {
    EXPECT_EQ(io::message_of([&] { picture_format(name); }).substr(0, 45),
              "a picture's name must end in .svg, .png or .p");
    EXPECT_THROW(picture_format(name), UsageError);
  }
}

TEST_F(PictureTest, FileIsRefusedBeforeTheWorkAndWholeAfterIt) {
  const io::Scratch scratch;
  io::put(scratch / "a.svg", "old");
  EXPECT_THAT(io::message_of([&] { PictureFile(scratch / "no" / "a.svg"); }), HasSubstr("does not exist"));
  EXPECT_THAT(io::message_of([&] { PictureFile(scratch / "a.jpg"); }), HasSubstr(".svg, .png or .pdf"));
  {
    const PictureFile file(scratch / "a.svg");
    EXPECT_EQ(file.format(), PictureFormat::svg);
  }
  EXPECT_EQ(io::contents(scratch / "a.svg"), "old");
  PictureFile(scratch / "a.svg").commit({"new", 0});
  EXPECT_EQ(io::contents(scratch / "a.svg"), "new");
  EXPECT_EQ(scratch.files(), std::vector<std::string>{"a.svg"});
}

TEST(Pictures, AreRefusedInABuildWithoutThem) {
  if (pictures_available()) GTEST_SKIP() << "this build has pictures";
  const io::Scratch scratch;
  EXPECT_THAT(io::message_of([] { Canvas(); }), HasSubstr("built without pictures"));
  EXPECT_THAT(io::message_of([&] { PictureFile(scratch / "a.svg"); }), HasSubstr("GLOSS_PICTURES=ON"));
  EXPECT_TRUE(scratch.files().empty());
}

// Something of everything.
void draw_all(Canvas& canvas) {
  canvas.fill(Box{10, 10, 20, 20}, kRed);
  canvas.frame({40, 10, 20, 20}, {kBlack, 0.5});
  canvas.line({70, 10}, {90, 30}, {kBlack, 1, {2, 2}});
  canvas.disc({110, 20}, 8, kRed);
  const Point corners[] = {{130, 30}, {150, 30}, {140, 10}};
  canvas.polygon(corners, kBlack);
  const Box hatched[] = {{10, 50, 20, 20}, {50, 50, 20, 20}};
  canvas.hatch(hatched, {kBlack, 0.5}, 4);
  canvas.pixels({90, 50, 20, 20}, {2, 2, {0x0000FF, 0x00FF00, 0xFF0000, 0xFFFF00}});
  canvas.draw(canvas.text("Hamburgefonstiv", {10}), {10, 100}, Anchor::start, kBlack);
  canvas.draw(canvas.text("slanted", {10, true}), {120, 100}, Anchor::middle, kBlack, 45);
}

TEST_F(PictureTest, HasTheFormOfItsFormat) {
  Canvas canvas;
  draw_all(canvas);
  const auto bytes = [&](PictureFormat format) {
    return canvas.picture(format, {200, 120}, kWhite, "A < B & C");
  };

  const Picture png = bytes(PictureFormat::png);
  EXPECT_THAT(png.bytes, StartsWith("\x89PNG\r\n\x1a\n"));
  EXPECT_EQ(png.bytes.substr(12, 12), std::string("IHDR\0\0\x01\x90\0\0\0\xF0", 12));  // two pixels a point
  const Png pixels(png);
  EXPECT_EQ(pixels.count(0xFF0000, {10, 10, 20, 20}), 1600u);
  for (const auto& [x, y, colour] :
       {std::tuple{90, 50, 0x0000FFu}, {100, 50, 0x00FF00u}, {90, 60, 0xFF0000u}, {100, 60, 0xFFFF00u}})
    EXPECT_EQ(pixels.count(colour, {x * 1.0, y * 1.0, 10, 10}), 400u);
  EXPECT_GT(pixels.count(0x000000, {10, 90, 80, 12}), 20u);  // text

  const Picture svg = bytes(PictureFormat::svg);
  const Svg parsed(svg);
  EXPECT_EQ(parsed.width(), "200pt");
  EXPECT_EQ(parsed.height(), "120pt");
  EXPECT_EQ(parsed.title(), "A < B & C");
  EXPECT_EQ(parsed.elements("text"), 0u);  // glyphs are outlines, so that no reader needs our fonts
  EXPECT_GT(parsed.elements("use"), 20u);
  EXPECT_EQ(parsed.elements("symbol"), 0u);

  const Picture pdf = bytes(PictureFormat::pdf);
  EXPECT_THAT(pdf.bytes, StartsWith("%PDF-1."));
  EXPECT_THAT(pdf.bytes.substr(pdf.bytes.size() - 6), HasSubstr("%%EOF"));
  EXPECT_THAT(pdf.bytes, HasSubstr("/MediaBox [ 0 0 200 120 ]"));
  EXPECT_THAT(pdf.bytes, HasSubstr("A < B & C"));
}

TEST_F(PictureTest, IsTheSameBytesEachTimeWithoutADate) {
  for (const PictureFormat format : kFormats) {
    std::string first;
    for (int i = 0; i < 3; ++i) {
      Canvas canvas;
      draw_all(canvas);
      const Picture picture = canvas.picture(format, {200, 120}, kWhite, "same");
      if (i == 0) first = picture.bytes;
      EXPECT_EQ(picture.bytes, first);
      EXPECT_EQ(canvas.picture(format, {200, 120}, kWhite, "same").bytes, first);
    }
    EXPECT_THAT(first, Not(HasSubstr("CreationDate")));
    EXPECT_THAT(first, Not(HasSubstr("tIME")));
  }
}

// So that several can stand in one HTML page.
TEST_F(PictureTest, SvgOfOthersHasOtherNames) {
  std::set<std::string> names[2];
  for (const int i : {0, 1}) {
    Canvas canvas;
    draw_all(canvas);
    canvas.draw(canvas.text(i == 0 ? "one" : "two", {10}), {10, 115}, Anchor::start, kBlack);
    names[i] = Svg(canvas.picture(PictureFormat::svg, {200, 120}, kWhite, "")).names();
  }
  for (const std::string& name : names[0]) EXPECT_FALSE(names[1].contains(name)) << name;
}

TEST_F(PictureTest, SaysWhenAPngIsTooLarge) {
  Canvas canvas;
  draw_all(canvas);
  EXPECT_THAT(io::message_of([&] {
                canvas.picture(PictureFormat::png, {20000, 100}, kWhite, "");
              }),
              HasSubstr("choose .svg or .pdf"));
  EXPECT_EQ(Svg(canvas.picture(PictureFormat::svg, {20000, 100}, kWhite, "")).width(), "20000pt");
}

using TextLines = PictureTest;

TEST_F(TextLines, AreShapedInEveryScriptAndMeasured) {
  Canvas canvas;
  for (const char* words : {"word", "القطة جلست", "我坐在垫子上", "नमस्ते दुनिया", "😀👩‍👩‍👧",
                            "e\u0301te\u0301", "שלום world", "", " ", "\u202Ereversed", "▁piece"}) {
    const Text small = canvas.text(words, {8}), large = canvas.text(words, {16});
    EXPECT_NEAR(large.width(), 2 * small.width(), 0.05 * large.width()) << words;
    EXPECT_FALSE(small.shortened());
    for (const double angle : {0.0, 45.0, 90.0}) canvas.draw(small, {50, 50}, Anchor::start, kBlack, angle);
  }
  // A combining mark takes no room of its own, and letters that join are narrower than apart.
  EXPECT_NEAR(canvas.text("e\u0301", {10}).width(), canvas.text("e", {10}).width(), 0.2);
  for (const PictureFormat format : kFormats)
    EXPECT_FALSE(canvas.picture(format, {99, 99}, kWhite, "").bytes.empty());
}

TEST_F(TextLines, LoseTheirMiddleByWidth) {
  const Canvas canvas;
  const std::string latin = "Donaudampfschifffahrtsgesellschaft", arabic = "مستشفيات المدينة الكبيرة القديمة";
  for (const std::string& words : {latin, arabic, std::string("我坐在垫子上我坐在垫子上我坐在垫子上")}) {
    const double whole = canvas.text(words, {9}).width();
    for (const double width : {whole * 0.9, whole / 2, whole / 4}) {
      const Text text = canvas.text(words, {9}, width);
      EXPECT_TRUE(text.shortened());
      EXPECT_LE(text.width(), width);
      EXPECT_GT(text.width(), width / 3);
    }
    EXPECT_FALSE(canvas.text(words, {9}, whole + 0.1).shortened());
    EXPECT_NO_THROW(canvas.text(words, {9}, 0));
    EXPECT_NO_THROW(canvas.text(words, {9}, -5));
  }
}

TEST_F(TextLines, OfAnyBytesAreDrawn) {
  Canvas canvas;
  const std::string nul("a\0b", 3);
  EXPECT_GT(canvas.text(nul, {9}).width(), canvas.text("ab", {9}).width());  // shown as \x00
  EXPECT_GT(canvas.text("a\nb", {9}).width(), canvas.text("ab", {9}).width());
  EXPECT_GT(canvas.text("\xFF\xFE", {9}).width(), 0);
  const Text endless = canvas.text(std::string(1 << 20, 'x'), {9}, 100);
  EXPECT_TRUE(endless.shortened());
  EXPECT_LE(endless.width(), 100);
  for (const std::string& title : {nul, std::string("\xFF\n<b>\"'&"), std::string("\uFFFE\uFFFF")}) {
    canvas.draw(canvas.text(title, {9}), {5, 20}, Anchor::end, kBlack);
    EXPECT_NO_THROW(Svg(canvas.picture(PictureFormat::svg, {50, 50}, kWhite, title)));
    EXPECT_NO_THROW(canvas.picture(PictureFormat::pdf, {50, 50}, kWhite, title));
  }
}

// Anchors move the line, angles turn it: counted in pixels of each half.
TEST_F(TextLines, StandWhereTheyArePut) {
  const auto ink = [](Anchor anchor, double angle, const Box& box) {
    Canvas canvas;
    canvas.draw(canvas.text("HHHHHHHH", {12}), {100, 100}, anchor, kBlack, angle);
    return Png(canvas.picture(PictureFormat::png, {200, 200}, kWhite, "")).count(0x000000, box);
  };
  const Box left{0, 0, 100, 200}, right{100, 0, 100, 200}, above{0, 0, 200, 99};
  EXPECT_EQ(ink(Anchor::start, 0, left), 0u);
  EXPECT_GT(ink(Anchor::start, 0, right), 100u);
  EXPECT_GT(ink(Anchor::end, 0, left), 100u);
  EXPECT_EQ(ink(Anchor::end, 0, right), 0u);
  EXPECT_GT(ink(Anchor::middle, 0, left), 50u);
  EXPECT_GT(ink(Anchor::middle, 0, right), 50u);
  EXPECT_GT(ink(Anchor::start, 90, above), 100u);
  EXPECT_EQ(ink(Anchor::start, 90, {0, 101, 200, 99}), 0u);
  EXPECT_EQ(ink(Anchor::end, 90, above), 0u);
}

TEST_F(TextLines, CountWhatNoFontHas) {
  Canvas canvas;
  canvas.draw(canvas.text("plain", {9}), {5, 20}, Anchor::start, kBlack);
  EXPECT_EQ(canvas.picture(PictureFormat::svg, {50, 50}, kWhite, "").missing_glyphs, 0);
  canvas.draw(canvas.text("\U0010FFFD\U0010FFFC", {9}), {5, 20}, Anchor::start, kBlack);  // for private use
  EXPECT_EQ(canvas.picture(PictureFormat::svg, {50, 50}, kWhite, "").missing_glyphs, 2);
  EXPECT_EQ(missing_glyphs_text(0), "");
  EXPECT_THAT(missing_glyphs_text(2), HasSubstr("has 2 of the characters"));
  EXPECT_THAT(missing_glyphs_text(2), HasSubstr("fonts-noto-core"));
}

}  // namespace
}  // namespace gloss::inspect
