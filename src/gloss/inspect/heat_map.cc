#include "gloss/inspect/heat_map.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "gloss/base/error.h"
#include "gloss/inspect/canvas.h"
#include "gloss/inspect/cells.h"

namespace gloss::inspect {
namespace {

constexpr double kMargin = 12;
constexpr Font kTitleFont{11, true}, kNameFont{9}, kLegendFont{8};
constexpr double kTitleLine = 17, kNameLine = 13, kLegendLine = 12;  // heights of lines in these fonts
constexpr double kTick = 3, kThin = 0.5;                             // a tick's length and width
// From the middle of the letters to the baseline, in sizes of the font.
constexpr double kMiddle = 0.36;

// Sizes in points that differ between one map and many.
struct Limits {
  double comfortable,
      largest;  // sides of a map: up to the first while cells are large enough, never above the second
  double largest_cell, smallest_cell;
  double largest_label;  // length
  double smallest_font;
};

Limits limits_for(const HeatMapGrid& grid) {
  const auto maps = static_cast<double>(std::max(grid.grid_columns.size(), grid.grid_rows.size()));
  if (maps == 1) return {460, 1000, 26, 2, 120, 6};
  return {std::clamp(900 / maps, 80.0, 220.0), std::clamp(2000 / maps, 100.0, 250.0), 18, 1, 80, 5};
}

// Length of a cell and how many share a place, for `count` of them in a row. Whole pixels of a PNG, so that
// no two edges are blurred differently.
struct CellLength {
  double length = 0;
  int64_t pooled = 1;
};

CellLength cell_length(int64_t count, const Limits& limits) {
  constexpr double kPixel = 1 / Canvas::kPixelsPerPoint;
  const auto n = static_cast<double>(count);
  const double wished = std::clamp(limits.comfortable / n, limits.smallest_cell, limits.largest_cell);
  const double length = std::floor(std::min(wished, limits.largest / n) / kPixel) * kPixel;
  if (length >= kPixel) return {length, 1};
  const double pooled = std::ceil(n * kPixel / limits.largest);
  return {kPixel / pooled, static_cast<int64_t>(pooled)};
}

// Labels of one side, shaped: every step-th.
struct Labels {
  Font font;
  int64_t step = 1;
  double angle = 0;  // of column labels: 0, 45 or 90
  std::vector<Text> texts;
  double longest = 0;

  void shape(const Canvas& canvas, const std::vector<std::string>& labels, double most) {
    texts.clear();
    longest = 0;
    for (size_t i = 0; i < labels.size(); i += static_cast<size_t>(step)) {
      texts.push_back(canvas.text(labels[i], font, most));
      longest = std::max(longest, texts.back().width());
    }
  }
};

// The largest font that fits into lines `pitch` apart; where none is readable the smallest that is, on fewer
// lines.
void fit(Labels& labels, double pitch, double smallest) {
  constexpr double kLargest = 9, kLeading = 1.12;
  labels.font.size = std::min(kLargest, pitch / kLeading);
  if (labels.font.size >= smallest) return;
  labels.font.size = smallest;
  for (int64_t unit = 1;; unit *= 10) {
    for (const int64_t step : {1, 2, 5}) {
      labels.step = step * unit;
      if (static_cast<double>(labels.step) * pitch >= smallest * kLeading) return;
    }
  }
}

Labels row_labels(const Canvas& canvas, const std::vector<std::string>& texts, double height,
                  const Limits& limits) {
  Labels labels;
  fit(labels, height, limits.smallest_font);
  labels.shape(canvas, texts, limits.largest_label);
  return labels;
}

// Upright where all fit between their neighbours, else slanted, else turned.
Labels column_labels(const Canvas& canvas, const std::vector<std::string>& texts, double width,
                     const Limits& limits) {
  constexpr double kRoom = 4, kSmallestSlanted = 7.5;
  Labels labels;
  labels.shape(canvas, texts, limits.largest_label);
  if (labels.longest + kRoom <= width) return labels;
  labels.angle = 45;
  fit(labels, width * std::numbers::sqrt2 / 2, kSmallestSlanted);
  if (labels.step > 1) {
    labels = {};
    labels.angle = 90;
    fit(labels, width, limits.smallest_font);
  }
  labels.shape(canvas, texts, limits.largest_label);
  return labels;
}

double highest(const HeatMapGrid& grid, const HeatMapStyle& style) {
  double high = style.low;
  for (const Cells& cells : grid.maps) {
    for (size_t i = 0; i < cells.values.size(); ++i) {
      const bool hidden = i < cells.hidden.size() && cells.hidden[i] != 0;
      if (!hidden && std::isfinite(cells.values[i])) high = std::max<double>(high, cells.values[i]);
    }
  }
  // Below a tenth of the scale all is page.
  constexpr double kPale = 0.1;
  if (style.high && (high <= style.low || high - style.low >= kPale * (*style.high - style.low)))
    return *style.high;
  return high > style.low ? high : style.low + 1;
}

class Painting {
 public:
  Painting(const HeatMapGrid& grid, const HeatMapStyle& style);
  Picture picture(PictureFormat format);

 private:
  void place_columns(double left, double top);
  void draw_row_labels(double left, double top);
  void draw_column_labels(double left, double top);
  void draw_names();
  double draw_legend(double left, double top);
  void grow(double right, double bottom);

  CellGrid cells_at(size_t row, size_t column) const;
  double label_height() const;

  const HeatMapGrid& grid_;
  const HeatMapStyle& style_;
  const CellStyle cell_style_{style_.theme, style_.low, highest(grid_, style_), style_.numbers};
  const Palette page_ = palette(style_.theme);
  const Limits limits_ = limits_for(grid_);
  Canvas canvas_;
  CellKinds kinds_;
  CellGrid cells_;  // of the first map
  Labels rows_, columns_;
  bool numbers_missing_ = false;
  double gap_ = 0;  // between maps
  Size size_;
};

bool any(const std::vector<std::string>& names) {
  return std::ranges::any_of(names, [](const std::string& name) { return !name.empty(); });
}

Painting::Painting(const HeatMapGrid& grid, const HeatMapStyle& style) : grid_(grid), style_(style) {
  require(!grid.row_labels.empty() && !grid.column_labels.empty(),
          "a heat map of {} rows and {} columns shows nothing: it needs at least one of each",
          grid.row_labels.size(), grid.column_labels.size());
  require(!grid.maps.empty() && grid.maps.size() == grid.grid_rows.size() * grid.grid_columns.size(),
          "a grid of {} by {} heat maps was given {} of them", grid.grid_rows.size(),
          grid.grid_columns.size(), grid.maps.size());
  const double low = cell_style_.low, high = cell_style_.high;
  require(std::isfinite(low) && std::isfinite(high) && low < high,
          "the colours of a heat map must reach from a smaller to a larger number, not from {} to {}", low,
          high);
  cells_.rows = static_cast<int64_t>(grid.row_labels.size());
  cells_.columns = static_cast<int64_t>(grid.column_labels.size());
  for (size_t i = 0; i < grid.maps.size(); ++i) {
    std::string name = grid.grid_rows[i / grid.grid_columns.size()];
    const std::string& second = grid.grid_columns[i % grid.grid_columns.size()];
    if (!second.empty()) name += (name.empty() ? "" : ", ") + second;
    const CellKinds kinds = check_cells(grid.maps[i], cells_.rows, cells_.columns, cell_style_, name);
    kinds_.hidden |= kinds.hidden;
    kinds_.nan |= kinds.nan;
  }
  // Square cells, but no strip so thin that it is not seen.
  const CellLength side = cell_length(std::max(cells_.rows, cells_.columns), limits_);
  const auto at_least = [&](int64_t count) {
    constexpr double kThinnest = 12, kStrip = 60;
    return std::max(side.length, std::floor(std::min(kThinnest, kStrip / static_cast<double>(count))));
  };
  cells_.width = at_least(cells_.columns);
  cells_.height = at_least(cells_.rows);
  cells_.pooled_columns = cells_.width > side.length ? 1 : side.pooled;
  cells_.pooled_rows = cells_.height > side.length ? 1 : side.pooled;
  rows_ = row_labels(canvas_, grid.row_labels, cells_.height, limits_);
  columns_ = column_labels(canvas_, grid.column_labels, cells_.width, limits_);
  gap_ = std::max(10.0, std::ceil(cells_.width / 2));
}

void Painting::grow(double right, double bottom) {
  size_.width = std::max(size_.width, right);
  size_.height = std::max(size_.height, bottom);
}

CellGrid Painting::cells_at(size_t row, size_t column) const {
  CellGrid cells = cells_;
  const Box box = cells.box();
  cells.x += static_cast<double>(column) * (box.width + gap_);
  cells.y += static_cast<double>(row) * (box.height + gap_);
  return cells;
}

double Painting::label_height() const {
  if (columns_.angle == 0) return columns_.font.size + kTick;
  const double sine = std::sin(columns_.angle * std::numbers::pi / 180);
  return columns_.longest * sine + columns_.font.size * (1.5 - sine) + kTick + 2;
}

void Painting::draw_row_labels(double left, double top) {
  std::vector<Box> ticks;
  for (size_t i = 0; i < rows_.texts.size(); ++i) {
    const double middle =
        top + (static_cast<double>(static_cast<int64_t>(i) * rows_.step) + 0.5) * cells_.height;
    canvas_.draw(rows_.texts[i], {left - kTick - 2, middle + kMiddle * rows_.font.size}, Anchor::end,
                 page_.text);
    if (rows_.step > 1) ticks.push_back({left - kTick, middle - kThin / 2, kTick - kThin, kThin});
  }
  if (!ticks.empty()) canvas_.fill(ticks, page_.soft);
}

void Painting::draw_column_labels(double left, double top) {
  const double size = columns_.font.size;
  std::vector<Box> ticks;
  for (size_t i = 0; i < columns_.texts.size(); ++i) {
    const double middle =
        left + (static_cast<double>(static_cast<int64_t>(i) * columns_.step) + 0.5) * cells_.width;
    Point place{middle, top - kTick - 2};
    Anchor anchor = Anchor::start;
    if (columns_.angle == 0) {
      anchor = Anchor::middle;
    } else if (columns_.angle == 90) {
      place.x += kMiddle * size;
    } else {
      // The middle of the first letter stands above the column's.
      place.x += kMiddle * size / 2;
      place.y -= kMiddle * size / 2;
      grow(place.x + columns_.texts[i].width() * std::numbers::sqrt2 / 2 + size / 2, 0);
    }
    canvas_.draw(columns_.texts[i], place, anchor, page_.text, columns_.angle);
    if (columns_.step > 1) ticks.push_back({middle - kThin / 2, top - kTick, kThin, kTick - kThin});
  }
  if (!ticks.empty()) canvas_.fill(ticks, page_.soft);
}

// Axes and, in a grid, what each row and column of maps is.
void Painting::draw_names() {
  const CellGrid last = cells_at(grid_.grid_rows.size() - 1, grid_.grid_columns.size() - 1);
  const double right = last.box().x + last.box().width, bottom = last.box().y + last.box().height;
  double above = cells_.y - label_height(), beside = cells_.x - rows_.longest - kTick - 2;
  const auto write = [&](const std::string& name, const Point& place, double angle, double room,
                         const Colour& colour) {
    canvas_.draw(canvas_.text(name, kNameFont, room), place, Anchor::middle, colour, angle);
  };
  if (any(grid_.grid_columns)) {
    for (size_t i = 0; i < grid_.grid_columns.size(); ++i) {
      const Box box = cells_at(0, i).box();
      write(grid_.grid_columns[i], {box.x + box.width / 2, above - 4}, 0, box.width, page_.text);
    }
    above -= kNameLine;
  }
  if (any(grid_.grid_rows)) {
    for (size_t i = 0; i < grid_.grid_rows.size(); ++i) {
      const Box box = cells_at(i, 0).box();
      write(grid_.grid_rows[i], {beside - 6, box.y + box.height / 2}, 90, box.height, page_.text);
    }
    beside -= kNameLine;
  }
  constexpr double kShortestAxis = 80;  // a name may be longer than its axis
  write(grid_.column_axis, {(cells_.x + right) / 2, above - 4}, 0, std::max(kShortestAxis, right - cells_.x),
        page_.soft);
  write(grid_.row_axis, {beside - 6, (cells_.y + bottom) / 2}, 90, std::max(kShortestAxis, bottom - cells_.y),
        page_.soft);
  grow(right, bottom);
}

// What the colours mean; gives the height it takes.
double Painting::draw_legend(double left, double top) {
  constexpr double kBar = 120, kBarHeight = 7;
  const std::string stronger = style_.theme == Theme::light ? "darker" : "brighter";
  const Text what = canvas_.text(fmt::format("{} ({} is more)", style_.value_name, stronger), kLegendFont);
  canvas_.draw(what, {left, top + kLegendFont.size}, Anchor::start, page_.text);
  const double bar = top + kLegendLine;
  constexpr int kSteps = 60;
  for (int i = 0; i < kSteps; ++i) {
    const double x = kBar * i / kSteps;
    // Each to the end of the bar, so that no edge lies on the page.
    canvas_.fill(Box{left + x, bar, kBar - x, kBarHeight},
                 scale_colour(style_.theme, static_cast<double>(i) / (kSteps - 1)));
  }
  canvas_.frame({left - 0.25, bar - 0.25, kBar + 0.5, kBarHeight + 0.5}, {page_.soft, 0.5});
  const double numbers = bar + kBarHeight + kLegendFont.size + 1;
  const auto number = [&](double share, Anchor anchor) {
    const double value = cell_style_.low + (cell_style_.high - cell_style_.low) * share;
    canvas_.draw(canvas_.text(fmt::format("{:.3g}", value), kLegendFont), {left + kBar * share, numbers},
                 anchor, page_.soft);
  };
  number(0, Anchor::start);
  number(0.5, Anchor::middle);
  number(1, Anchor::end);

  double x = left + std::max(kBar, what.width()) + 20, y = top, right = x - 20;
  const auto say = [&](const std::string& text, double indent) {
    const Text line = canvas_.text(text, kLegendFont);
    canvas_.draw(line, {x + indent, y + kLegendFont.size}, Anchor::start, page_.text);
    right = std::max(right, x + indent + line.width());
    y += kLegendLine;
  };
  const auto swatch = [&] { return Box{x, y + 0.5, 14, 8}; };
  if (kinds_.hidden) {
    const Box box = swatch();
    draw_hidden(canvas_, std::span(&box, 1), style_.theme);
    canvas_.frame(box, {page_.soft, 0.5});
    say("masked", 19);
  }
  if (kinds_.nan) {
    draw_nan(canvas_, swatch(), style_.theme);
    say("not a number (NaN)", 19);
  }
  if (style_.high && cell_style_.high < *style_.high) say("the scale ends at the largest of small values", 0);
  if (numbers_missing_) say("cells are too small for numbers", 0);
  if (cells_.pooled_rows * cells_.pooled_columns > 1)
    say(fmt::format("each point shows the largest of {} x {} values", cells_.pooled_rows,
                    cells_.pooled_columns),
        0);
  grow(right, 0);
  return std::max(numbers, y) - top;
}

Picture Painting::picture(PictureFormat format) {
  const auto line = [](bool is_there, double height) { return is_there ? height : 0; };
  const double left = kMargin + line(!grid_.row_axis.empty(), kNameLine) +
                      line(any(grid_.grid_rows), kNameLine) + rows_.longest + kTick + 2;
  const double top = kMargin + line(!grid_.title.empty(), kTitleLine) +
                     line(!grid_.column_axis.empty(), kNameLine) + line(any(grid_.grid_columns), kNameLine) +
                     label_height();
  cells_.x = std::ceil(left * 2) / 2;  // whole pixels
  cells_.y = std::ceil(top * 2) / 2;
  int64_t rectangles = cells_.rows * cells_.columns * static_cast<int64_t>(grid_.maps.size());
  for (size_t i = 0; i < grid_.maps.size(); ++i) {
    const CellGrid cells = cells_at(i / grid_.grid_columns.size(), i % grid_.grid_columns.size());
    const bool numbers =
        draw_cells(canvas_, grid_.maps[i], cells, cell_style_, rectangles <= kMostRectangles);
    numbers_missing_ = style_.numbers && !numbers;
  }
  for (size_t i = 0; i < grid_.grid_rows.size(); ++i) {
    const CellGrid cells = cells_at(i, 0);
    draw_row_labels(cells.x, cells.y);
  }
  for (size_t i = 0; i < grid_.grid_columns.size(); ++i) {
    const CellGrid cells = cells_at(0, i);
    draw_column_labels(cells.x, cells.y);
  }
  draw_names();
  const double legend = size_.height + 12;
  grow(0, legend + draw_legend(cells_.x, legend));
  if (!grid_.title.empty()) {
    constexpr double kNarrowest = 300;
    const Text title = canvas_.text(grid_.title, kTitleFont, std::max(kNarrowest, size_.width - kMargin));
    canvas_.draw(title, {kMargin, kMargin + kTitleFont.size}, Anchor::start, page_.text);
    grow(kMargin + title.width(), 0);
  }
  const std::string name = grid_.title.empty() ? "Heat map: " + style_.value_name : grid_.title;
  return canvas_.picture(format, {std::ceil(size_.width + kMargin), std::ceil(size_.height + kMargin)},
                         page_.page, name);
}

}  // namespace

Picture draw(const HeatMapGrid& grid, PictureFormat format, const HeatMapStyle& style) {
  return Painting(grid, style).picture(format);
}

Picture draw(const HeatMap& map, PictureFormat format, const HeatMapStyle& style) {
  HeatMapGrid grid;
  grid.title = map.title;
  grid.row_labels = map.row_labels;
  grid.column_labels = map.column_labels;
  grid.maps = {map.cells};
  grid.row_axis = map.row_axis;
  grid.column_axis = map.column_axis;
  return draw(grid, format, style);
}

}  // namespace gloss::inspect
