// A drawing surface with real text shaping.
//
// Lengths are points (1/72 inch); x runs to the right and y down. What is drawn is kept and painted when the
// size is known, so that a layout may measure its text before it decides.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "gloss/inspect/colour.h"
#include "gloss/inspect/picture.h"

namespace gloss::inspect {

struct Point {
  double x = 0, y = 0;
};
struct Size {
  double width = 0, height = 0;
};
struct Box {
  double x = 0, y = 0, width = 0, height = 0;
};
struct Stroke {
  Colour colour;
  double width = 1;
  std::vector<double> dashes{};  // lengths on, off, on...; empty: solid
};
struct Font {
  double size = 9;
  bool bold = false;
};
// 0xRRGGBB, row by row.
struct Pixels {
  int width = 0, height = 0;
  std::vector<uint32_t> colours;  // [height, width]
};

// One shaped line of text. It may outlive the canvas that shaped it.
class Text {
 public:
  double width() const { return width_; }
  bool shortened() const { return shortened_; }

 private:
  friend class Canvas;
  std::shared_ptr<void> layout_;
  double width_ = 0;
  bool shortened_ = false;
};

enum class Anchor { start, middle, end };  // the point of a line that is put in place, from left to right

class Canvas {
 public:
  // Throws Error in a build without pictures, and where no font is installed.
  Canvas();
  ~Canvas();
  Canvas(const Canvas&) = delete;
  Canvas& operator=(const Canvas&) = delete;

  // Shapes a line in any script, right to left where the text is. What is wider than `max_width` loses its
  // middle to an ellipsis, whole characters at a time. Control bytes become \xNN and invalid UTF-8 U+FFFD.
  Text text(std::string_view utf8, const Font& font,
            double max_width = std::numeric_limits<double>::infinity()) const;

  void fill(const Box& box, const Colour& colour) { fill(std::span(&box, 1), colour); }
  void fill(std::span<const Box> boxes, const Colour& colour);
  void polygon(std::span<const Point> corners, const Colour& colour);
  void disc(const Point& centre, double radius, const Colour& colour);
  void frame(const Box& box, const Stroke& stroke);
  void line(std::span<const Point> points, const Stroke& stroke);
  void line(const Point& from, const Point& to, const Stroke& stroke);
  // Slanted lines across all boxes, in step with each other.
  void hatch(std::span<const Box> boxes, const Stroke& stroke, double spacing);
  // Each pixel becomes a rectangle of one colour in the box.
  void pixels(const Box& box, const Pixels& pixels);
  // `place` lies on the baseline; the line turns around it by `angle` degrees, counter-clockwise.
  void draw(const Text& text, const Point& place, Anchor anchor, const Colour& colour, double angle = 0);

  // The file. `title` is for those who cannot see the picture (SVG and PDF). A PNG has kPixelsPerPoint pixels
  // a point. Throws Error where a PNG would be larger than it can be.
  Picture picture(PictureFormat format, const Size& size, const Colour& page, std::string_view title) const;

  static constexpr double kPixelsPerPoint = 2;

 private:
  struct Drawing;
  std::unique_ptr<Drawing> drawing_;
};

}  // namespace gloss::inspect
