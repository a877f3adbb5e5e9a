#include "gloss/inspect/chart.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "inspect/support.h"
#include "io/scratch.h"

namespace gloss::inspect {
namespace {

using io::message_of;
using ::testing::HasSubstr;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

Series line(const std::string& name, size_t count, double (*f)(double), size_t style = 0) {
  Series series{name};
  for (size_t i = 0; i < count; ++i) {
    series.x.push_back(static_cast<double>(i));
    series.y.push_back(f(static_cast<double>(i)));
  }
  series.style = style;
  return series;
}

double constant(double) {
  return 3;
}
double rising(double x) {
  return x;
}

Chart chart_of(std::vector<Series> series, Scaling scaling = Scaling::linear) {
  return {"", "updates", {{"loss", std::move(series), scaling}}};
}

// Which columns of pixels hold the colour, from the first to the last that does.
std::string columns_with(const Png& png, uint32_t colour) {
  std::string columns;
  for (size_t x = 0; x < png.width(); ++x) {
    bool found = false;
    for (size_t y = 0; y < png.height(); ++y) found |= png.pixel(x, y) == colour;
    columns += found ? '#' : ' ';
  }
  const size_t first = columns.find('#');
  return first == std::string::npos ? "" : columns.substr(first, columns.rfind('#') - first + 1);
}

// The highest row of pixels that holds the colour.
size_t top_of(const Png& png, uint32_t colour) {
  for (size_t y = 0; y < png.height(); ++y) {
    for (size_t x = 0; x < png.width(); ++x) {
      if (png.pixel(x, y) == colour) return y;
    }
  }
  return png.height();
}

using Charts = PictureTest;

TEST_F(Charts, HaveTheFormOfTheirFormatAndTheSameBytesEachTime) {
  Chart chart = chart_of({line("a", 50, rising), line("b", 50, constant, 1)});
  chart.title = "two lines";
  for (const Theme theme : {Theme::light, Theme::dark}) {
    const Png png(draw(chart, PictureFormat::png, theme));
    EXPECT_EQ(png.pixel(0, 0), to_rgb24(palette(theme).page));
    for (const size_t style : {0, 1}) EXPECT_GT(png.count(to_rgb24(series_colour(theme, style))), 100u);
    const Svg svg(draw(chart, PictureFormat::svg, theme));
    EXPECT_EQ(svg.width(), std::to_string(png.width() / 2) + "pt");
    EXPECT_EQ(svg.title(), "two lines, loss");
    for (const PictureFormat format : {PictureFormat::svg, PictureFormat::png, PictureFormat::pdf})
      EXPECT_EQ(draw(chart, format, theme).bytes, draw(chart, format, theme).bytes);
  }
}

TEST_F(Charts, HaveGapsWhereValuesAreMissing) {
  const uint32_t colour = to_rgb24(series_colour(Theme::light, 0));
  Series whole = line("", 100, constant), broken = whole, cut = whole;
  for (size_t i = 40; i < 60; ++i) broken.y[i] = i % 2 ? kNaN : std::numeric_limits<double>::infinity();
  EXPECT_EQ(columns_with(Png(draw(chart_of({whole}), PictureFormat::png)), colour).find(' '),
            std::string::npos);
  const std::string columns = columns_with(Png(draw(chart_of({broken}), PictureFormat::png)), colour);
  // A fifth of the line is missing, in one stretch.
  const auto missing = static_cast<double>(std::ranges::count(columns, ' '));
  EXPECT_NEAR(missing / static_cast<double>(columns.size()), 0.2, 0.02);
  EXPECT_EQ(columns.find('#', columns.find(' ')) - columns.find(' '), static_cast<size_t>(missing));
  // On a logarithmic axis what is not above zero is missing.
  for (size_t i = 40; i < 60; ++i) cut.y[i] = i % 2 ? 0 : -5;
  const std::string other =
      columns_with(Png(draw(chart_of({cut}, Scaling::logarithmic), PictureFormat::png)), colour);
  EXPECT_NEAR(static_cast<double>(std::ranges::count(other, ' ')), missing, 2);
}

TEST_F(Charts, ShowAPointBetweenGaps) {
  Series point = line("", 9, constant);
  for (size_t i = 0; i < 9; ++i) point.y[i] = i == 4 ? 3 : kNaN;
  const uint32_t colour = to_rgb24(series_colour(Theme::light, 0));
  EXPECT_GT(Png(draw(chart_of({point}), PictureFormat::png)).count(colour), 4u);
  EXPECT_GT(Png(draw(chart_of({line("", 1, rising)}), PictureFormat::png)).count(colour), 4u);
}

// A million values make no large file, and none of the peaks is lost.
TEST_F(Charts, KeepPeaksOfLongLines) {
  Series flat = line("", 1000000, constant);
  Series peak = flat;
  peak.y[654321] = 9;
  peak.y[123456] = -9;
  const uint32_t colour = to_rgb24(series_colour(Theme::light, 0));
  const Picture picture = draw(chart_of({peak}), PictureFormat::svg);
  EXPECT_LT(picture.bytes.size(), 120000u);
  const Png png(draw(chart_of({peak}), PictureFormat::png));
  const Series lone{"", {0, 1}, {9, -9}};  // where the ends of the axis are
  const Png ends(draw(chart_of({lone}), PictureFormat::png));
  EXPECT_NEAR(static_cast<double>(top_of(png, colour)), static_cast<double>(top_of(ends, colour)), 2);
  EXPECT_GT(Png(draw(chart_of({flat}), PictureFormat::png)).count(colour), 500u);
}

TEST_F(Charts, TellLinesApartByDashesToo) {
  // In one colour twelve later only; dashes differ where colours do not.
  const auto gaps = [](size_t style) {
    const std::string columns =
        columns_with(Png(draw(chart_of({line("", 100, constant, style)}), PictureFormat::png)),
                     to_rgb24(series_colour(Theme::light, style)));
    return std::ranges::count(columns, ' ');
  };
  EXPECT_EQ(gaps(0), 0);
  for (const size_t style : {1, 2, 3}) EXPECT_GT(gaps(style), 50) << style;
  for (size_t style = 0; style < 6; ++style) EXPECT_NE(gaps(style), gaps(style + 6)) << style;
  EXPECT_EQ(gaps(12), gaps(0));
}

TEST_F(Charts, NameALineOnceInTheLegend) {
  Chart chart = chart_of({line("run", 9, rising)});
  const auto letters = [&] { return Svg(draw(chart, PictureFormat::svg)).elements("use"); };
  const size_t once = letters();
  Series pale = line("run", 9, rising);
  pale.faint = true;
  chart.panels[0].series.push_back(pale);
  chart.panels[0].series.push_back(line("run", 9, constant));
  EXPECT_EQ(letters(), once);
  chart.panels[0].series.push_back(line("other", 9, constant, 1));
  EXPECT_EQ(letters(), once + 5);
  const size_t height = Png(draw(chart, PictureFormat::png)).height();
  for (size_t i = 0; i < 30; ++i)
    chart.panels[0].series.push_back(line("run " + std::to_string(i), 9, rising, i));
  EXPECT_GT(Png(draw(chart, PictureFormat::png)).height(), height + 50);  // it has several lines then
}

TEST_F(Charts, PutPanelsSideBySide) {
  Chart chart = chart_of({line("run", 9, rising)});
  std::vector<std::pair<size_t, size_t>> sizes;
  for (size_t panels = 1; panels <= 6; ++panels) {
    chart.panels.resize(panels, chart.panels[0]);
    const Png png(draw(chart, PictureFormat::png));
    sizes.emplace_back(png.width(), png.height());
  }
  EXPECT_EQ(sizes[3].first, sizes[1].first);  // two by two
  EXPECT_GT(sizes[3].second, sizes[1].second);
  EXPECT_EQ(sizes[4], sizes[5]);  // two rows of three
  EXPECT_EQ(sizes[4].first, sizes[2].first);
}

TEST_F(Charts, SayWhatIsWrongWithTheirNumbers) {
  const auto message = [](const Chart& chart) {
    return message_of([&] { draw(chart, PictureFormat::svg); });
  };
  EXPECT_EQ(message({}), "a chart without panels shows nothing");
  EXPECT_EQ(message(chart_of({})), "there is no value of loss to draw");
  EXPECT_EQ(message(chart_of({{"a", {1, 2}, {kNaN, kNaN}}})), "there is no value of loss to draw");
  EXPECT_EQ(message(chart_of({{"a", {1, 2}, {0, -1}}}, Scaling::logarithmic)),
            "there is no value of loss to draw");
  EXPECT_EQ(message(chart_of({{"a", {1, 2}, {1}}})), "the line a has 2 places for 1 values");
  EXPECT_EQ(message(chart_of({{"a", {2, 1}, {1, 2}}})), "the places of the line a must not go back");
}

}  // namespace
}  // namespace gloss::inspect
