// Pictures of attention: one head, the mean of a layer, or every head of it in a grid.
#pragma once

#include <string>

#include "gloss/inspect/attended_pair.h"
#include "gloss/inspect/attention_view.h"
#include "gloss/inspect/heat_map.h"

namespace gloss::inspect {

struct PictureOptions {
  ViewOptions view;
  bool all_heads = false;  // a grid, layers down and heads along, instead of one table
  HeatMapStyle style;
};

// Of the pair's maps, which are layers of one kind.
Picture draw_attention(const AttendedPair& pair, PictureFormat format, const PictureOptions& options);

}  // namespace gloss::inspect
