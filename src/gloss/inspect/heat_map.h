// Heat maps of attention: who looked at whom, and how much.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gloss/inspect/colour.h"
#include "gloss/inspect/picture.h"

namespace gloss::inspect {

// The numbers of one map.
struct Cells {
  std::vector<float> values;  // [rows, columns], from HeatMapStyle::low to high
  // [rows, columns]: other than 0 where a mask forbids to look; drawn hatched, and the value there is never
  // read. Empty: nothing is hidden.
  std::vector<char> hidden{};
};

// Maps side by side with the same rows and columns: layers down, heads along. One map alone has one name of
// each, which may be empty.
struct HeatMapGrid {
  std::string title;
  std::vector<std::string> row_labels;     // targets, down the side
  std::vector<std::string> column_labels;  // sources, along the top
  std::vector<std::string> grid_rows{""}, grid_columns{""};
  std::vector<Cells> maps;  // [grid_rows, grid_columns]
  std::string row_axis = "target", column_axis = "source";
};

struct HeatMap {
  std::string title;
  std::vector<std::string> row_labels;     // targets, down the side
  std::vector<std::string> column_labels;  // sources, along the top
  Cells cells{};
  std::string row_axis = "target", column_axis = "source";
};

struct HeatMapStyle {
  Theme theme = Theme::light;
  std::string value_name = "attention weight";
  double low = 0;  // the ends of the colour scale
  std::optional<double> high =
      1;                 // nothing, or where no value reaches a tenth of it: the largest that is not hidden
  bool numbers = false;  // in the cells; where these are too small the legend says so
};

// The picture. Cells shrink with the number of labels, labels with the cells, and past a readable size every
// second, fifth, tenth... label is shown, with a tick. Where a point would hold several cells it shows the
// largest, and the legend says so. NaN is drawn crossed out in a colour of its own. Throws Error for a map
// without rows or columns, for numbers of another count than the labels ask for, and for a visible value
// outside the scale.
Picture draw(const HeatMapGrid& grid, PictureFormat format, const HeatMapStyle& style = {});
Picture draw(const HeatMap& map, PictureFormat format, const HeatMapStyle& style = {});

}  // namespace gloss::inspect
