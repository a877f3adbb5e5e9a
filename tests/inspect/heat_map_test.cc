#include "gloss/inspect/heat_map.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "gloss/inspect/cells.h"
#include "inspect/support.h"
#include "io/scratch.h"
#include "support/random.h"

namespace gloss::inspect {
namespace {

using io::message_of;
using ::testing::HasSubstr;

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr PictureFormat kFormats[] = {PictureFormat::svg, PictureFormat::png, PictureFormat::pdf};
constexpr Theme kThemes[] = {Theme::light, Theme::dark};

std::vector<std::string> labels(int64_t count) {
  std::vector<std::string> out;
  for (int64_t i = 0; i < count; ++i) out.push_back("piece" + std::to_string(i));
  return out;
}

Cells random_cells(int64_t rows, int64_t columns, uint64_t seed) {
  Cells cells{tests::random_values<float>(rows * columns, seed)};
  for (float& value : cells.values) value = std::min(1.0f, std::abs(value) / 3);
  return cells;
}

HeatMap random_map(int64_t rows, int64_t columns) {
  HeatMap map;
  map.title = "title";
  map.row_labels = labels(rows);
  map.column_labels = labels(columns);
  map.cells = random_cells(rows, columns, 1);
  return map;
}

HeatMapGrid random_grid(size_t layers, size_t heads, int64_t pieces) {
  HeatMapGrid grid;
  grid.row_labels = grid.column_labels = labels(pieces);
  grid.grid_rows.clear();
  grid.grid_columns.clear();
  for (size_t i = 0; i < layers; ++i) grid.grid_rows.push_back("layer " + std::to_string(i + 1));
  for (size_t i = 0; i < heads; ++i) grid.grid_columns.push_back("head " + std::to_string(i + 1));
  for (size_t i = 0; i < layers * heads; ++i) grid.maps.push_back(random_cells(pieces, pieces, i));
  return grid;
}

// Cells of ten points each, alone on a page.
Png cells_alone(const Cells& cells, int64_t rows, int64_t columns, const CellStyle& style, bool rectangles,
                double size = 10) {
  Canvas canvas;
  draw_cells(canvas, cells, {rows, columns, 0, 0, size, size}, style, rectangles);
  return Png(canvas.picture(PictureFormat::png,
                            {size * static_cast<double>(columns), size * static_cast<double>(rows)},
                            palette(style.theme).page, ""));
}

// The inside of a cell, without the lines around it.
Box inside(int64_t row, int64_t column, double size = 10) {
  return {static_cast<double>(column) * size + 1, static_cast<double>(row) * size + 1, size - 2, size - 2};
}
constexpr size_t kInside = 16 * 16;  // pixels

using HeatMaps = PictureTest;

TEST_F(HeatMaps, CellsHaveTheColourOfTheirValue) {
  const std::vector<float> values = {0, 0.25f, 0.5f, 0.75f, 1, 0.1f};
  for (const Theme theme : kThemes) {
    for (const bool rectangles : {true, false}) {
      const Png png = cells_alone({values}, 2, 3, {theme}, rectangles);
      for (size_t i = 0; i < values.size(); ++i) {
        const double level = std::lround(values[i] * 255) / 255.0;
        EXPECT_EQ(png.count(to_rgb24(scale_colour(theme, level)), inside(i / 3, i % 3)), kInside) << i;
      }
    }
  }
  // Of another scale, and just beyond its ends.
  const Png png = cells_alone({{-2, 0, 2, 2.0001f}}, 1, 4, {Theme::light, -2, 2}, true);
  EXPECT_EQ(png.count(to_rgb24(scale_colour(Theme::light, 0)), inside(0, 0)), kInside);
  EXPECT_EQ(png.count(to_rgb24(scale_colour(Theme::light, std::lround(127.5) / 255.0)), inside(0, 1)),
            kInside);
  for (const int64_t column : {2, 3})
    EXPECT_EQ(png.count(to_rgb24(scale_colour(Theme::light, 1)), inside(0, column)), kInside);
}

TEST_F(HeatMaps, HiddenCellsDifferFromZerosAndAreNotRead) {
  for (const Theme theme : kThemes) {
    for (const bool rectangles : {true, false}) {
      const Png png = cells_alone({{0, 0, 1, 0}, {0, 1, 0, 0}}, 2, 2, {theme}, rectangles);
      const uint32_t page = to_rgb24(palette(theme).page);
      EXPECT_EQ(png.count(page, inside(0, 0)), kInside);
      EXPECT_EQ(png.count(page, inside(0, 1)), 0u);  // hatched over a ground of its own
      EXPECT_EQ(png.count(page, inside(1, 1)), kInside);
      const std::set<uint32_t> colours = png.colours();
      const Png other = cells_alone({{0, kNaN, 1, 0}, {0, 1, 0, 0}}, 2, 2, {theme}, rectangles);
      const Png another = cells_alone({{0, 7e20f, 1, 0}, {0, 1, 0, 0}}, 2, 2, {theme}, rectangles);
      EXPECT_EQ(other.colours(), colours);
      EXPECT_EQ(another.colours(), colours);
    }
  }
  HeatMap map = random_map(3, 3);
  map.cells.hidden = {0, 1, 1, 0, 0, 1, 0, 0, 0};
  const std::string before = draw(map, PictureFormat::svg).bytes;
  for (const size_t i : {1, 2, 5}) map.cells.values[i] = kNaN;
  EXPECT_EQ(draw(map, PictureFormat::svg).bytes, before);
}

// Causal self-attention of n pieces whose last two keys are padded: a lower triangle, cut off at the right.
TEST_F(HeatMaps, ShowTheTriangleOfCausalAttention) {
  constexpr int64_t kPieces = 6, kPadded = 2;
  Cells cells{std::vector<float>(kPieces * kPieces, 0), std::vector<char>(kPieces * kPieces, 0)};
  for (int64_t row = 0; row < kPieces; ++row) {
    for (int64_t column = 0; column < kPieces; ++column) {
      const bool hidden = column > row || column >= kPieces - kPadded;
      cells.hidden[static_cast<size_t>(row * kPieces + column)] = hidden ? 1 : 0;
      if (!hidden) cells.values[static_cast<size_t>(row * kPieces + column)] = 1;
    }
  }
  const Png png = cells_alone(cells, kPieces, kPieces, {}, true);
  for (int64_t row = 0; row < kPieces; ++row) {
    for (int64_t column = 0; column < kPieces; ++column) {
      const bool seen = column <= row && column < kPieces - kPadded;
      EXPECT_EQ(png.count(to_rgb24(scale_colour(Theme::light, 1)), inside(row, column)), seen ? kInside : 0u);
    }
  }
}

TEST_F(HeatMaps, NaNHasAColourOfItsOwn) {
  const uint32_t alarm = to_rgb24(palette(Theme::light).alarm);
  for (const bool rectangles : {true, false}) {
    const Png png = cells_alone({{0, kNaN, 1, 1}}, 2, 2, {}, rectangles);
    EXPECT_GT(png.count(alarm, inside(0, 1)), kInside / 2);
    EXPECT_EQ(png.count(alarm, inside(0, 0)) + png.count(alarm, inside(1, 1)), 0u);
  }
  HeatMap map = random_map(3, 3);
  const Png without(draw(map, PictureFormat::png));
  map.cells.values[4] = kNaN;
  const Png with(draw(map, PictureFormat::png));
  EXPECT_EQ(without.count(alarm), 0u);
  EXPECT_GT(with.count(alarm), 400u);
  EXPECT_GT(with.width(), without.width());  // the legend says what it is
}

// Cells too small for rectangles of their own, and several in one pixel.
TEST_F(HeatMaps, PoolTheLargestOfCellsThatShareAPoint) {
  Cells cells{std::vector<float>(100 * 100, 0)};
  cells.values[37 * 100 + 81] = 1;
  CellGrid grid{100, 100, 0, 0, 0.125, 0.125, 4, 4};
  Canvas canvas;
  draw_cells(canvas, cells, grid, {}, true);
  const Png png(canvas.picture(PictureFormat::png, {12.5, 12.5}, palette(Theme::light).page, ""));
  EXPECT_EQ(png.count(to_rgb24(scale_colour(Theme::light, 1))), 1u);
  EXPECT_EQ(png.pixel(81 / 4, 37 / 4), to_rgb24(scale_colour(Theme::light, 1)));
}

TEST_F(HeatMaps, NumbersStandInLargeCellsOnly) {
  HeatMapStyle numbers;
  numbers.numbers = true;
  const HeatMap small = random_map(4, 4), large = random_map(60, 60);
  EXPECT_NE(draw(small, PictureFormat::svg, numbers).bytes, draw(small, PictureFormat::svg).bytes);
  // In small cells the legend says so: a sentence more, not 3,600 numbers.
  const size_t with = draw(large, PictureFormat::svg, numbers).bytes.size(),
               without = draw(large, PictureFormat::svg).bytes.size();
  EXPECT_GT(with, without);
  EXPECT_LT(with, without + 50000);
}

TEST_F(HeatMaps, OfAllSizesInAllFormats) {
  const std::pair<int64_t, int64_t> sizes[] = {{1, 1},   {1, 60},  {60, 1}, {14, 12},
                                               {60, 60}, {1, 500}, {130, 7}};
  for (const auto& [rows, columns] : sizes) {
    const HeatMap map = random_map(rows, columns);
    for (const Theme theme : kThemes) {
      HeatMapStyle style;
      style.theme = theme;
      const Png png(draw(map, PictureFormat::png, style));
      EXPECT_EQ(png.pixel(0, 0), to_rgb24(palette(theme).page));
      EXPECT_LT(png.width(), 2600u);
      EXPECT_LT(png.height(), 2600u);
      EXPECT_GT(png.width(), 250u);
      const Svg svg(draw(map, PictureFormat::svg, style));
      EXPECT_EQ(svg.width(), std::to_string(png.width() / 2) + "pt");
      EXPECT_EQ(svg.height(), std::to_string(png.height() / 2) + "pt");
      EXPECT_EQ(svg.title(), "title");
      EXPECT_THAT(draw(map, PictureFormat::pdf, style).bytes, ::testing::StartsWith("%PDF"));
    }
  }
}

TEST_F(HeatMaps, OfFiveHundredPiecesStayLegible) {
  const HeatMap map = random_map(500, 500);
  const Picture svg = draw(map, PictureFormat::svg), png = draw(map, PictureFormat::png);
  const Svg parsed(svg);
  EXPECT_EQ(parsed.elements("image"), 1u);
  EXPECT_LT(svg.bytes.size(), size_t{3} << 20);
  const Png pixels(png);
  EXPECT_LT(pixels.width(), 2400u);
  EXPECT_GT(pixels.width(), 2000u);  // two points a cell
  // Every fifth label, of eight letters or so, and the legend.
  EXPECT_GT(parsed.elements("use"), 2 * 100 * 6u);
  EXPECT_LT(parsed.elements("use"), 2 * 100 * 9u);
  // Longer ones share points and are no larger.
  const HeatMap book = random_map(2300, 3);
  EXPECT_LT(Png(draw(book, PictureFormat::png)).height(), 2600u);
}

TEST_F(HeatMaps, OfManyHeadsShareLabelsAndOneLegend) {
  const HeatMapGrid grid = random_grid(4, 4, 8);
  const Picture picture = draw(grid, PictureFormat::png);
  const Png png(picture);
  const Png one(draw(random_grid(1, 1, 8), PictureFormat::png));
  EXPECT_GT(png.width(), one.width() * 3 / 2);
  EXPECT_GT(png.height(), one.height() * 3 / 2);
  // The strong end of the scale stands once in the legend and in no cell.
  HeatMapGrid zeros = grid;
  for (Cells& cells : zeros.maps) cells.values.assign(cells.values.size(), 0);
  const size_t strong = Png(draw(zeros, PictureFormat::png)).count(to_rgb24(scale_colour(Theme::light, 1)));
  EXPECT_GT(strong, 20u);
  EXPECT_LT(strong, 120u);
  for (const PictureFormat format : kFormats)
    EXPECT_FALSE(draw(random_grid(6, 16, 30), format).bytes.empty());
}

TEST_F(HeatMaps, TakeLabelsInEveryScript) {
  HeatMap map = random_map(3, 9);
  map.column_labels = {"القطة",
                       "جلست",
                       "我坐在垫子上",
                       "नमस्ते",
                       "👩‍👩‍👧",
                       "e\u0301",
                       "",
                       "Wörterbuchverlagsangestelltenversammlungssaal",
                       "\xFF\n"};
  map.row_labels = {"مرحبا hello 你好 परीक्षण 🎉 mixed and rather long, longer than a label may be", "\u202E",
                    "x"};
  map.title = std::string(3000, 'W');
  for (const PictureFormat format : kFormats) {
    const Picture picture = draw(map, format);
    EXPECT_EQ(picture.bytes, draw(map, format).bytes);
  }
  EXPECT_LT(Png(draw(map, PictureFormat::png)).width(), 1600u);  // the title is cut too
}

TEST_F(HeatMaps, ScaleMayEndAtTheLargestVisibleValue) {
  HeatMap map = random_map(1, 3);
  map.cells = {{0.1f, 0.2f, 0.9f}, {0, 0, 1}};
  HeatMapStyle style;
  style.high.reset();
  const uint32_t strong = to_rgb24(scale_colour(Theme::light, 1));
  EXPECT_GT(Png(draw(map, PictureFormat::png, style)).count(strong), 1000u);
  EXPECT_LT(Png(draw(map, PictureFormat::png)).count(strong), 200u);
  map.cells.values.assign(3, 0);
  EXPECT_NO_THROW(draw(map, PictureFormat::png, style));
}

// Weights of long sentences are small each: the scale follows them, whatever their size.
TEST_F(HeatMaps, SmallValuesAreNoBlankPage) {
  const uint32_t strong = to_rgb24(scale_colour(Theme::light, 1));
  for (const int64_t n : {11, 64, 500}) {
    HeatMap map = random_map(2, n);
    map.cells.values.assign(static_cast<size_t>(2 * n), 1 / static_cast<float>(n));
    const size_t small = Png(draw(map, PictureFormat::png)).count(strong);
    map.cells.values[0] = 0.5f;  // the scale of one such value shows no other strongly
    EXPECT_GT(small, 10 * Png(draw(map, PictureFormat::png)).count(strong)) << n;
  }
}

TEST_F(HeatMaps, SayWhatIsWrongWithTheirNumbers) {
  const auto message = [](const HeatMap& map, const HeatMapStyle& style = {}) {
    return message_of([&] { draw(map, PictureFormat::svg, style); });
  };
  HeatMap map = random_map(2, 3);
  map.cells.values[4] = 1.5f;
  EXPECT_EQ(message(map),
            "row 2, column 2 of the heat map is 1.5, and its colours reach from 0 to 1: scale the values, or "
            "set the "
            "ends of the colours");
  map.cells.values[4] = -std::numeric_limits<float>::infinity();
  EXPECT_THAT(message(map), HasSubstr("row 2, column 2 of the heat map is -inf"));
  map.cells.values.pop_back();
  EXPECT_EQ(message(map), "the heat map has 5 values, and 2 rows of 3 columns need 6");
  map = random_map(2, 3);
  map.cells.hidden = {1};
  EXPECT_THAT(message(map), HasSubstr("has 1 cells instead of 6"));
  map = random_map(2, 3);
  map.column_labels.clear();
  EXPECT_THAT(message(map), HasSubstr("2 rows and 0 columns"));
  HeatMapStyle style;
  style.low = 1;
  EXPECT_THAT(message(random_map(2, 3), style),
              HasSubstr("from a smaller to a larger number, not from 1 to 1"));
  HeatMapGrid grid = random_grid(2, 2, 3);
  grid.maps[2].values[0] = 2;
  EXPECT_THAT(message_of([&] { draw(grid, PictureFormat::svg); }), HasSubstr("of layer 2, head 1 is 2"));
  grid.maps.pop_back();
  EXPECT_THAT(message_of([&] { draw(grid, PictureFormat::svg); }), HasSubstr("2 by 2 heat maps was given 3"));
}

}  // namespace
}  // namespace gloss::inspect
