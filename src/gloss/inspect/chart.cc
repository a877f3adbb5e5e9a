#include "gloss/inspect/chart.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "gloss/base/error.h"
#include "gloss/inspect/canvas.h"

namespace gloss::inspect {
namespace {

constexpr double kMargin = 12, kGap = 22;
constexpr Font kTitleFont{11, true}, kPanelFont{9, true}, kFont{8};
constexpr double kTitleLine = 18, kLine = 13;
constexpr double kSample = 24;  // of a line, in the legend
constexpr double kLineWidth = 1.2;
constexpr double kMarkRadius = 2;
constexpr size_t kMostMarks = 40;  // on a line

// The range of numbers.
struct Range {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  bool empty() const { return low > high; }
  void add(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
};

// Also not what could only come from a damaged number, and would overflow the arithmetic of the axes.
bool is_shown(double x, double y, Scaling scaling) {
  constexpr double kLargest = 1e100;
  return std::abs(x) < kLargest && std::abs(y) < kLargest && (scaling == Scaling::linear || y > 1 / kLargest);
}

void check(const Chart& chart) {
  require(!chart.panels.empty(), "a chart without panels shows nothing");
  for (const Panel& panel : chart.panels) {
    bool shows = false;
    for (const Series& series : panel.series) {
      require(series.x.size() == series.y.size(), "the line {} has {} places for {} values", series.name,
              series.x.size(), series.y.size());
      require(std::ranges::is_sorted(series.x), "the places of the line {} must not go back", series.name);
      for (size_t i = 0; i < series.x.size(); ++i) shows |= is_shown(series.x[i], series.y[i], panel.scaling);
    }
    require(shows, "there is no value of {} to draw", panel.name);
  }
}

Range x_range(const Chart& chart) {
  Range range;
  for (const Panel& panel : chart.panels) {
    for (const Series& series : panel.series) {
      for (size_t i = 0; i < series.x.size(); ++i) {
        if (is_shown(series.x[i], series.y[i], panel.scaling)) range.add(series.x[i]);
      }
    }
  }
  constexpr double kNear = 0.1;
  if (range.low > 0 && range.low < kNear * range.high) range.low = 0;
  return range;
}

// With a little room, so that no line runs along the edge.
Axis y_axis(const Panel& panel) {
  Range range;
  for (const Series& series : panel.series) {
    for (size_t i = 0; i < series.x.size(); ++i) {
      if (is_shown(series.x[i], series.y[i], panel.scaling)) range.add(series.y[i]);
    }
  }
  if (panel.from_zero) range.add(0);
  constexpr double kRoom = 0.04;
  if (panel.scaling == Scaling::logarithmic) {
    const double room = std::pow(range.high / range.low, kRoom);
    return {range.low / room, range.high * room, panel.scaling};
  }
  const double room = (range.high - range.low) * kRoom;
  const bool at_zero = panel.from_zero && range.low == 0;
  return {at_zero ? 0 : range.low - room, range.high + room, panel.scaling};
}

std::vector<Tick> y_ticks(const Axis& axis, double height) {
  constexpr double kApart = 24;
  return axis.ticks(static_cast<int>(height / kApart));
}

// How much the numbers of the y axes need.
double widest_number(const Canvas& canvas, const Chart& chart, double height) {
  double widest = 0;
  for (const Panel& panel : chart.panels) {
    for (const Tick& tick : y_ticks(y_axis(panel), height))
      widest = std::max(widest, canvas.text(tick.label, kFont).width());
  }
  return widest;
}

// Six colours and four dashes: a pair of them comes again after twelve.
Stroke stroke_of(const Series& series, Theme theme) {
  static const std::vector<double> kDashes[] = {{}, {6, 2.5}, {1.5, 2}, {7, 2, 1.5, 2}};
  const Colour colour = series_colour(theme, series.style);
  if (series.faint) return {mix(palette(theme).page, colour, 0.3), 0.6};
  return {colour, kLineWidth, kDashes[series.style % std::size(kDashes)]};
}

void draw_mark(Canvas& canvas, const Point& at, const Series& series, Theme theme) {
  canvas.disc(at, kMarkRadius + 0.8, palette(theme).page);  // apart from lines that pass
  canvas.disc(at, kMarkRadius, series_colour(theme, series.style));
}

// Points of one stretch without gaps, at most four of each column of this width.
std::vector<Point> thinned(const std::vector<Point>& points, double width) {
  std::vector<Point> kept;
  for (size_t begin = 0; begin < points.size();) {
    const double column = std::floor(points[begin].x / width);
    size_t end = begin, lowest = begin, highest = begin;
    for (; end < points.size() && std::floor(points[end].x / width) == column; ++end) {
      if (points[end].y < points[lowest].y) lowest = end;
      if (points[end].y > points[highest].y) highest = end;
    }
    size_t keep[] = {begin, std::min(lowest, highest), std::max(lowest, highest), end - 1};
    for (size_t i = 0; i < std::size(keep); ++i) {
      if (i == 0 || keep[i] != keep[i - 1]) kept.push_back(points[keep[i]]);
    }
    begin = end;
  }
  return kept;
}

class Plot {
 public:
  Plot(Canvas& canvas, const Panel& panel, const Axis& x, const Box& box, Theme theme)
      : canvas_(canvas), panel_(panel), x_(x), y_(y_axis(panel)), box_(box), theme_(theme) {}

  void draw(const std::string& x_axis) {
    draw_axes(x_axis);
    for (const bool faint : {true, false}) {
      for (const Series& series : panel_.series) {
        if (series.faint == faint) draw_line(series);
      }
    }
  }

 private:
  // An eighth of a point is finer than the eye, and a third of the bytes.
  Point place(double x, double y) const {
    const auto snapped = [](double v) { return std::round(v * 8) / 8; };
    return {snapped(box_.x + x_.place(x) * box_.width), snapped(box_.y + (1 - y_.place(y)) * box_.height)};
  }

  void draw_axes(const std::string& x_axis) {
    const Palette page = palette(theme_);
    constexpr double kThin = 0.5;
    const double bottom = box_.y + box_.height;
    std::vector<Box> grid, axis = {{box_.x, bottom - kThin / 2, box_.width, kThin}};
    for (const Tick& tick : y_ticks(y_, box_.height)) {
      const double y = bottom - y_.place(tick.value) * box_.height;
      grid.push_back({box_.x, y - kThin / 2, box_.width, kThin});
      canvas_.draw(canvas_.text(tick.label, kFont), {box_.x - 4, y + kFont.size * 0.36}, Anchor::end,
                   page.soft);
    }
    for (const Tick& tick : x_.ticks(static_cast<int>(box_.width / 42))) {
      const double x = box_.x + x_.place(tick.value) * box_.width;
      grid.push_back({x - kThin / 2, box_.y, kThin, box_.height});
      axis.push_back({x - kThin / 2, bottom, kThin, 3});
      canvas_.draw(canvas_.text(tick.label, kFont), {x, bottom + 4 + kFont.size}, Anchor::middle, page.soft);
    }
    canvas_.fill(grid, page.faint);
    canvas_.fill(axis, page.soft);
    canvas_.draw(canvas_.text(panel_.name, kPanelFont), {box_.x, box_.y - 6}, Anchor::start, page.text);
    canvas_.draw(canvas_.text(x_axis, kFont), {box_.x + box_.width / 2, bottom + 4 + kFont.size + kLine},
                 Anchor::middle, page.soft);
  }

  void draw_line(const Series& series) {
    const Stroke stroke = stroke_of(series, theme_);
    std::vector<Point> shown, stretch;
    const auto end_stretch = [&] {
      if (stretch.size() == 1 && !series.marks)
        canvas_.disc(stretch.front(), kMarkRadius / 2 + stroke.width / 2, stroke.colour);
      if (stretch.size() > 1) canvas_.line(thinned(stretch, series.faint ? 1 : 0.5), stroke);
      stretch.clear();
    };
    for (size_t i = 0; i < series.x.size(); ++i) {
      if (is_shown(series.x[i], series.y[i], panel_.scaling)) {
        stretch.push_back(place(series.x[i], series.y[i]));
        shown.push_back(stretch.back());
      } else {
        end_stretch();
      }
    }
    end_stretch();
    const size_t step = shown.size() / kMostMarks + 1;
    for (size_t i = 0; series.marks && i < shown.size(); i += step)
      draw_mark(canvas_, shown[i], series, theme_);
  }

  Canvas& canvas_;
  const Panel& panel_;
  const Axis& x_;
  const Axis y_;
  const Box box_;
  const Theme theme_;
};

// What has a place in the legend.
std::vector<const Series*> legend_of(const Chart& chart) {
  std::vector<const Series*> entries;
  for (const Panel& panel : chart.panels) {
    for (const Series& series : panel.series) {
      const bool known = std::ranges::any_of(entries, [&](const Series* entry) {
        return entry->name == series.name && entry->style == series.style && entry->marks == series.marks;
      });
      if (!series.faint && !series.name.empty() && !known) entries.push_back(&series);
    }
  }
  std::ranges::stable_sort(entries, {}, &Series::style);  // what belongs together stands together
  return entries;
}

// Gives the place below it.
double draw_legend(Canvas& canvas, const Chart& chart, double top, double width, Theme theme) {
  double x = kMargin, y = top;
  for (const Series* entry : legend_of(chart)) {
    const Text name = canvas.text(entry->name, kFont, width / 2);
    const double needed = kSample + 5 + name.width();
    if (x > kMargin && x + needed > kMargin + width) {
      x = kMargin;
      y += kLine;
    }
    const double middle = y + kLine / 2;
    canvas.line({x, middle}, {x + kSample, middle}, stroke_of(*entry, theme));
    if (entry->marks) draw_mark(canvas, {x + kSample / 2, middle}, *entry, theme);
    canvas.draw(name, {x + kSample + 5, middle + kFont.size * 0.36}, Anchor::start, palette(theme).text);
    x += needed + 16;
  }
  return x > kMargin ? y + kLine + 4 : y;
}

size_t columns_for(size_t panels) {
  if (panels <= 3) return panels;
  return panels == 4 ? 2 : 3;
}

}  // namespace

Picture draw(const Chart& chart, PictureFormat format, Theme theme) {
  check(chart);
  Canvas canvas;
  const Range range = x_range(chart);
  const Axis x(range.low, range.high, Scaling::linear);
  const size_t columns = columns_for(chart.panels.size());
  const Size plot = chart.panels.size() == 1 ? Size{400, 230} : Size{230, 140};
  // Beside and around a plot: numbers of its axes and names.
  constexpr double kAbove = 18;
  const double left = widest_number(canvas, chart, plot.height) + 6;
  const double below = 4 + kFont.size + kLine + 6;
  const Size cell{left + plot.width + kGap, kAbove + plot.height + below + 6};
  const double width = static_cast<double>(columns) * cell.width - kGap;

  double top = kMargin;
  if (!chart.title.empty()) {
    canvas.draw(canvas.text(chart.title, kTitleFont, width), {kMargin, top + kTitleFont.size}, Anchor::start,
                palette(theme).text);
    top += kTitleLine;
  }
  top = draw_legend(canvas, chart, top, width, theme);
  for (size_t i = 0; i < chart.panels.size(); ++i) {
    const size_t row = i / columns, column = i % columns;
    const Box box{kMargin + left + static_cast<double>(column) * cell.width,
                  top + kAbove + static_cast<double>(row) * cell.height, plot.width, plot.height};
    const bool last = i + columns >= chart.panels.size();
    Plot(canvas, chart.panels[i], x, box, theme).draw(last ? chart.x_axis : "");
  }
  const size_t rows = (chart.panels.size() + columns - 1) / columns;
  constexpr double kLastNumber = 8;  // reaches beyond the x axis
  const Size size{std::ceil(width + 2 * kMargin + kLastNumber),
                  std::ceil(top + static_cast<double>(rows) * cell.height - 6 + kMargin / 2)};
  std::string name = chart.title;
  for (const Panel& panel : chart.panels) name += (name.empty() ? "" : ", ") + panel.name;
  return canvas.picture(format, size, palette(theme).page, name);
}

}  // namespace gloss::inspect
