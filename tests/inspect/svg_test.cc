#include "gloss/inspect/svg.h"

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

TEST(TidySvg, ShortensDecimals) {
  EXPECT_EQ(tidy_svg("<p d=\"M 1.23456789 -0.98765 L 12 3.5 L 100.0001 0.0123456\"/>", ""),
            "<p d=\"M 1.235 -0.988 L 12 3.5 L 100 0.01235\"/>");
  EXPECT_EQ(tidy_svg("<p s=\"rgb(94.509804%,0.000001%,100%)\"/>", ""), "<p s=\"rgb(94.51%,0%,100%)\"/>");
  EXPECT_EQ(tidy_svg("a. b.c 1.", ""), "a. b.c 1.");
}

TEST(TidySvg, PutsTheTitleFirst) {
  EXPECT_EQ(tidy_svg("<?xml?><svg a=\"1\"><g/></svg>", "a < b & \"c\" > d"),
            "<?xml?><svg role=\"img\" a=\"1\">\n<title>a &lt; b &amp; \"c\" &gt; d</title><g/></svg>");
  EXPECT_THAT(tidy_svg("<svg></svg>", ""), Not(HasSubstr("title")));
}

}  // namespace
}  // namespace gloss::inspect
