// Line charts: several panels, several lines in each, one legend.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "gloss/inspect/axis.h"
#include "gloss/inspect/colour.h"
#include "gloss/inspect/picture.h"

namespace gloss::inspect {

struct Series {
  std::string name;              // lines of equal name, style and marks share a place in the legend
  std::vector<double> x{}, y{};  // of one length, x never falling; where y is not finite the line has a gap
  size_t style = 0;    // colour and dashes, for what belongs together; twelve differ, then they repeat
  bool marks = false;  // a mark at each point, for values that are few
  bool faint = false;  // behind the others and not in the legend: what a smoothed line was made of
};

struct Panel {
  std::string name;  // what y is
  std::vector<Series> series;
  Scaling scaling = Scaling::linear;  // of y; a logarithmic axis has gaps where y is not above 0
  bool from_zero = false;             // y begins at 0
};

struct Chart {
  std::string title;
  std::string x_axis;  // one for all panels
  std::vector<Panel> panels;
};

// The picture. Panels stand side by side, three in a row at most, with the same x. Lines of more points than
// the picture can show keep the first, last, smallest and largest of each column of pixels, so that no peak
// is lost. Throws Error for a chart without panels, a panel without a value to draw, and series whose x and y
// do not match.
Picture draw(const Chart& chart, PictureFormat format, Theme theme = Theme::light);

}  // namespace gloss::inspect
