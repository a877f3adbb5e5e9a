#include "gloss/inspect/svg.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gloss::inspect {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(TidySvg, NumbersNamesInOrderBehindAHash) {
  const auto svg = [](int surface, int image) {
    return "<svg><image id=\"image" + std::to_string(image) + "\"/><g id=\"surface" +
           std::to_string(surface) + "\"><use xlink:href=\"#image" + std::to_string(image) +
           "\" fill=\"url(#image" + std::to_string(image) + ")\"/></g></svg>";
  };
  const std::string tidy = tidy_svg(svg(3, 17), "");
  EXPECT_EQ(tidy, tidy_svg(svg(29, 30), ""));
  EXPECT_THAT(tidy, ::testing::MatchesRegex(
                        "<svg><image id=\"[a-z]{4}-image0\"/><g id=\"[a-z]{4}-surface0\"><use "
                        "xlink:href=\"#[a-z]{4}-image0\" fill=\"url\\(#[a-z]{4}-image0\\)\"/></g></svg>"));
}

TEST(TidySvg, ShortensDecimalsButThoseOfAMatrix) {
  EXPECT_EQ(tidy_svg("<p d=\"M 1.23456789 -0.98765 L 12 3.5 L 100.0001 0.00123456\"/>", ""),
            "<p d=\"m1.23-.99l10.77 4.49 88-3.5\"/>");
  EXPECT_EQ(tidy_svg("<p t=\"matrix(0.7071068,0.001234,1)\" x=\"0.7071068\"/>", ""),
            "<p t=\"matrix(0.7071068,0.001234,1)\" x=\"0.71\"/>");
  EXPECT_EQ(tidy_svg("a. b.c 1. matrix(", ""), "a. b.c 1. matrix(");
}

TEST(TidySvg, WritesColoursInEightBits) {
  for (int i = 0; i < 256; ++i) {
    const std::string percent = fmt::format("{:.6f}", i / 2.55);  // as cairo writes it
    EXPECT_EQ(tidy_svg("<p style=\"fill:rgb(" + percent + "%,100%,0%);\"/>", ""),
              fmt::format("<p fill=\"#{:02x}ff00\"/>", i));
  }
  EXPECT_EQ(tidy_svg("rgb(", ""), "#000000");
}

TEST(TidySvg, LeavesOutWhatGoesWithoutSaying) {
  EXPECT_EQ(
      tidy_svg("<p style=\"stroke:none;\" d=\"\"/><p style=\"fill-rule:nonzero;fill:red;fill-opacity:1;\"/>",
               ""),
      "<p d=\"\"/><p fill=\"red\"/>");
  EXPECT_EQ(tidy_svg("<p style=\" fill:none;stroke:red;\"/><p style=\"fill\"/>", ""),
            "<p style=\"fill:none;stroke:red;\"/><p style=\"fill\"/>");
}

TEST(TidySvg, UsesOutlinesOfGlyphsAsTheyAre) {
  const std::string open = "<symbol overflow=\"visible\" id=\"glyph0-1\">\n", close = "</symbol>\n";
  EXPECT_THAT(tidy_svg(open + "<path style=\"stroke:none;\" d=\"M 1 2 L 3 4 \"/>\n" + close + "<g/>", ""),
              ::testing::MatchesRegex("<path id=\"[a-z]{4}-g0-1\" d=\"m1 2l2 2\"/>\n<g/>"));
  // What is more than an outline stays.
  for (const char* inside : {"<image/>\n", "<path d=\"\"/>\n<path d=\"\"/>\n", "<path d=\"\"></path>\n", ""})
    EXPECT_THAT(tidy_svg(open + inside + close, ""), HasSubstr(inside + close)) << inside;
}

TEST(TidySvg, PutsTheTitleFirst) {
  EXPECT_EQ(tidy_svg("<?xml?><svg a=\"1\"><g/></svg>", "a < b & \"c\" > d"),
            "<?xml?><svg role=\"img\" a=\"1\">\n<title>a &lt; b &amp; \"c\" &gt; d</title><g/></svg>");
  EXPECT_THAT(tidy_svg("<svg></svg>", ""), Not(HasSubstr("title")));
}

}  // namespace
}  // namespace gloss::inspect
