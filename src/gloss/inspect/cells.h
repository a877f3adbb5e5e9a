// The coloured part of a heat map.
#pragma once

#include <cstdint>

#include "gloss/inspect/canvas.h"
#include "gloss/inspect/heat_map.h"

namespace gloss::inspect {

// How one map lies on the page.
struct CellGrid {
  int64_t rows = 0, columns = 0;
  double x = 0, y = 0;           // of its corner
  double width = 0, height = 0;  // of a cell
  // This many rows and columns, or what is left of them, share a place on the page.
  int64_t pooled_rows = 1, pooled_columns = 1;

  Box box() const { return {x, y, width * static_cast<double>(columns), height * static_cast<double>(rows)}; }
};

// HeatMapStyle with the ends of the scale settled.
struct CellStyle {
  Theme theme = Theme::light;
  double low = 0, high = 1;
  bool numbers = false;
};

// What a place shows: one cell, or the largest of those that are pooled there.
enum class CellKind { value, hidden, nan };

// Which kinds occur, for the legend.
struct CellKinds {
  bool hidden = false, nan = false;
};

// Throws Error for the first value that cannot be drawn; `name` is the map's ("layer 2, head 1"; may be
// empty).
CellKinds check_cells(const Cells& cells, int64_t rows, int64_t columns, const CellStyle& style,
                      const std::string& name);

// Up to this many cells are rectangles, which stay sharp at any size; more become an image, since a file of
// 250,000 rectangles opens slowly everywhere.
inline constexpr int64_t kMostRectangles = 4096;

// `may_be_rectangles`: as such where cells are large, otherwise as an image. Gives whether numbers stand in
// the cells: they were asked for, and fit.
bool draw_cells(Canvas& canvas, const Cells& cells, const CellGrid& grid, const CellStyle& style,
                bool may_be_rectangles);

// How hidden and undefined cells look, for cells and legend alike.
void draw_hidden(Canvas& canvas, std::span<const Box> boxes, Theme theme);
void draw_nan(Canvas& canvas, const Box& box, Theme theme);

}  // namespace gloss::inspect
