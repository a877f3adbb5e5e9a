#include "gloss/inspect/cells.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "gloss/base/error.h"

namespace gloss::inspect {
namespace {

constexpr double kHair = 0.5;  // one pixel of a PNG
constexpr int kLevels = 256;   // as many as eight bits of a channel can tell apart

bool is_hidden(const Cells& cells, size_t at) {
  return !cells.hidden.empty() && cells.hidden[at] != 0;
}

// From 0 (low) to 1 (high).
double share(double value, const CellStyle& style) {
  return std::clamp((value - style.low) / (style.high - style.low), 0.0, 1.0);
}

// A map as it is shown: a cell a place.
struct Places {
  int64_t rows = 0, columns = 0;
  std::vector<float> values;    // NaN where the kind is nan
  std::vector<CellKind> kinds;  // [rows, columns]
};

Places pooled(const Cells& cells, const CellGrid& grid) {
  Places places;
  places.rows = (grid.rows + grid.pooled_rows - 1) / grid.pooled_rows;
  places.columns = (grid.columns + grid.pooled_columns - 1) / grid.pooled_columns;
  const auto count = static_cast<size_t>(places.rows * places.columns);
  places.values.assign(count, 0);
  places.kinds.assign(count, CellKind::hidden);
  for (int64_t row = 0; row < grid.rows; ++row) {
    for (int64_t column = 0; column < grid.columns; ++column) {
      const auto from = static_cast<size_t>(row * grid.columns + column);
      if (is_hidden(cells, from)) continue;
      const auto to =
          static_cast<size_t>(row / grid.pooled_rows * places.columns + column / grid.pooled_columns);
      const float value = cells.values[from];
      if (std::isnan(value) || places.kinds[to] == CellKind::nan) {
        places.kinds[to] = CellKind::nan;
      } else if (places.kinds[to] == CellKind::hidden) {
        places.kinds[to] = CellKind::value;
        places.values[to] = value;
      } else {
        places.values[to] = std::max(places.values[to], value);
      }
    }
  }
  return places;
}

Box box_of(const CellGrid& grid, int64_t row, int64_t column, int64_t columns = 1) {
  const double width = grid.width * static_cast<double>(grid.pooled_columns);
  const double height = grid.height * static_cast<double>(grid.pooled_rows);
  const Box all = grid.box();
  const double x = all.x + width * static_cast<double>(column), y = all.y + height * static_cast<double>(row);
  return {x, y, std::min(width * static_cast<double>(columns), all.x + all.width - x),
          std::min(height, all.y + all.height - y)};
}

// Runs of hidden places, a box a run.
std::vector<Box> hidden_boxes(const Places& places, const CellGrid& grid) {
  std::vector<Box> boxes;
  for (int64_t row = 0; row < places.rows; ++row) {
    const auto kind = [&](int64_t column) {
      return places.kinds[static_cast<size_t>(row * places.columns + column)];
    };
    for (int64_t column = 0; column < places.columns;) {
      int64_t end = column;
      while (end < places.columns && kind(end) == CellKind::hidden) ++end;
      if (end > column) boxes.push_back(box_of(grid, row, column, end - column));
      column = std::max(end, column + 1);
    }
  }
  return boxes;
}

int level_of(float value, const CellStyle& style) {
  return static_cast<int>(std::lround(share(value, style) * (kLevels - 1)));
}

Colour colour_of(int level, Theme theme) {
  return scale_colour(theme, static_cast<double>(level) / (kLevels - 1));
}

// One path a colour: a rectangle then takes a fifth of the bytes of one with its own style. Level 0 is the
// page.
void draw_rectangles(Canvas& canvas, const Places& places, const CellGrid& grid, const CellStyle& style) {
  std::map<int, std::vector<Box>> by_level;
  for (int64_t row = 0; row < places.rows; ++row) {
    for (int64_t column = 0; column < places.columns; ++column) {
      const auto at = static_cast<size_t>(row * places.columns + column);
      if (places.kinds[at] != CellKind::value) continue;
      const int level = level_of(places.values[at], style);
      if (level > 0) by_level[level].push_back(box_of(grid, row, column));
    }
  }
  for (const auto& [level, boxes] : by_level) canvas.fill(boxes, colour_of(level, style.theme));
}

// Several pixels a place, so that viewers which smooth images leave its middle alone; more would be bytes
// only.
void draw_image(Canvas& canvas, const Places& places, const CellGrid& grid, const CellStyle& style) {
  const auto factor = [](double length) {
    constexpr int64_t kMost = 4;
    return std::clamp<int64_t>(std::lround(length * Canvas::kPixelsPerPoint), 1, kMost);
  };
  const int64_t across = factor(grid.width * static_cast<double>(grid.pooled_columns));
  const int64_t down = factor(grid.height * static_cast<double>(grid.pooled_rows));
  std::vector<uint32_t> colours(kLevels);
  for (int level = 0; level < kLevels; ++level)
    colours[static_cast<size_t>(level)] = to_rgb24(colour_of(level, style.theme));
  const Palette page = palette(style.theme);
  Pixels pixels{static_cast<int>(places.columns * across), static_cast<int>(places.rows * down), {}};
  pixels.colours.reserve(static_cast<size_t>(pixels.width) * static_cast<size_t>(pixels.height));
  for (int64_t row = 0; row < places.rows; ++row) {
    std::vector<uint32_t> line;
    for (int64_t column = 0; column < places.columns; ++column) {
      const auto at = static_cast<size_t>(row * places.columns + column);
      uint32_t colour = to_rgb24(page.page);
      if (places.kinds[at] == CellKind::nan) colour = to_rgb24(page.alarm);
      if (places.kinds[at] == CellKind::value)
        colour = colours[static_cast<size_t>(level_of(places.values[at], style))];
      line.insert(line.end(), static_cast<size_t>(across), colour);
    }
    for (int64_t i = 0; i < down; ++i) pixels.colours.insert(pixels.colours.end(), line.begin(), line.end());
  }
  Box box = grid.box();
  box.width = grid.width * static_cast<double>(grid.pooled_columns * places.columns);
  box.height = grid.height * static_cast<double>(grid.pooled_rows * places.rows);
  canvas.pixels(box, pixels);
}

// Whether they fit; nothing is drawn where they do not.
bool draw_numbers(Canvas& canvas, const Places& places, const CellGrid& grid, const CellStyle& style) {
  const Palette page = palette(style.theme);
  const Font font{std::min(8.0, grid.height * 0.4)};
  const double widest = canvas.text(style.high - style.low > 1 ? "-00.00" : "0.00", font).width();
  constexpr double kSmallest = 5;
  if (font.size < kSmallest || widest + 2 > grid.width) return false;
  for (int64_t row = 0; row < places.rows; ++row) {
    for (int64_t column = 0; column < places.columns; ++column) {
      const auto at = static_cast<size_t>(row * places.columns + column);
      if (places.kinds[at] != CellKind::value) continue;
      const Colour under = colour_of(level_of(places.values[at], style), style.theme);
      const bool on_page = contrast(page.text, under) > contrast(page.page, under);
      const Box box = box_of(grid, row, column);
      canvas.draw(canvas.text(fmt::format("{:.2f}", places.values[at]), font),
                  {box.x + box.width / 2, box.y + box.height / 2 + font.size * 0.36}, Anchor::middle,
                  on_page ? page.text : page.page);
    }
  }
  return true;
}

// Where cells are large enough, lines between them guide the eye to the labels.
bool is_ruled(const CellGrid& grid) {
  constexpr double kSmallest = 7;
  return std::min(grid.width, grid.height) >= kSmallest;
}

}  // namespace

CellKinds check_cells(const Cells& cells, int64_t rows, int64_t columns, const CellStyle& style,
                      const std::string& name) {
  const auto count = static_cast<size_t>(rows * columns);
  const std::string where = name.empty() ? "" : " of " + name;
  require(cells.values.size() == count, "the heat map{} has {} values, and {} rows of {} columns need {}",
          where, cells.values.size(), rows, columns, count);
  require(cells.hidden.empty() || cells.hidden.size() == count,
          "the mask of the heat map{} has {} cells instead of {}", where, cells.hidden.size(), count);
  const double slack = 1e-4 * (style.high - style.low);  // rounding: rows of weights sum to 1 only almost
  CellKinds kinds;
  for (size_t at = 0; at < count; ++at) {
    if (is_hidden(cells, at)) {
      kinds.hidden = true;
      continue;
    }
    const float value = cells.values[at];
    kinds.nan |= std::isnan(value);
    if (value < style.low - slack || value > style.high + slack) {
      const auto width = static_cast<size_t>(columns);
      fail(
          "row {}, column {} of the heat map{} is {}, and its colours reach from {} to {}: scale the values, "
          "or set "
          "the ends of the colours",
          at / width + 1, at % width + 1, where, value, style.low, style.high);
    }
  }
  return kinds;
}

void draw_hidden(Canvas& canvas, std::span<const Box> boxes, Theme theme) {
  if (boxes.empty()) return;
  const Palette page = palette(theme);
  canvas.fill(boxes, mix(page.page, page.faint, 0.4));
  canvas.hatch(boxes, {mix(page.page, page.soft, 0.45), 0.5}, 4);
}

void draw_nan(Canvas& canvas, const Box& box, Theme theme) {
  const Palette page = palette(theme);
  canvas.fill(box, page.alarm);
  const double inset = std::min(box.width, box.height) * 0.25;
  if (inset < 1) return;  // too small for a cross
  const Stroke stroke{page.page, std::min(1.0, inset / 2)};
  const double left = box.x + inset, right = box.x + box.width - inset;
  const double top = box.y + inset, bottom = box.y + box.height - inset;
  canvas.line({left, top}, {right, bottom}, stroke);
  canvas.line({left, bottom}, {right, top}, stroke);
}

bool draw_cells(Canvas& canvas, const Cells& cells, const CellGrid& grid, const CellStyle& style,
                bool may_be_rectangles) {
  const Places places = pooled(cells, grid);
  // Without lines between them, renderers that smooth edges would show the page there.
  const bool rectangles = may_be_rectangles && is_ruled(grid);
  if (rectangles) {
    draw_rectangles(canvas, places, grid, style);
  } else {
    draw_image(canvas, places, grid, style);
  }
  draw_hidden(canvas, hidden_boxes(places, grid), style.theme);
  const bool whole = grid.pooled_rows * grid.pooled_columns == 1;
  for (int64_t at = 0; rectangles && at < places.rows * places.columns; ++at) {
    if (places.kinds[static_cast<size_t>(at)] == CellKind::nan)
      draw_nan(canvas, box_of(grid, at / places.columns, at % places.columns), style.theme);
  }
  const bool numbers = style.numbers && whole && draw_numbers(canvas, places, grid, style);
  const Palette page = palette(style.theme);
  const Box box = grid.box();
  if (is_ruled(grid)) {
    // On whole pixels of a PNG, as all edges of cells are.
    std::vector<Box> rules;
    for (int64_t column = 1; column < grid.columns; ++column)
      rules.push_back({box.x + grid.width * static_cast<double>(column), box.y, kHair, box.height});
    for (int64_t row = 1; row < grid.rows; ++row)
      rules.push_back({box.x, box.y + grid.height * static_cast<double>(row), box.width, kHair});
    canvas.fill(rules, mix(page.page, page.faint, 0.7));
  }
  canvas.frame({box.x - kHair / 2, box.y - kHair / 2, box.width + kHair, box.height + kHair},
               {page.soft, kHair});
  return numbers;
}

}  // namespace gloss::inspect
