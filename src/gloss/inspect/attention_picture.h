// Pictures of attention: one head, a mean over heads or layers, or a grid of them.
#pragma once

#include <string>

#include "gloss/inspect/attended_pair.h"
#include "gloss/inspect/attention_view.h"
#include "gloss/inspect/heat_map.h"

namespace gloss::inspect {

struct PictureOptions {
  ViewOptions view;
  // A grid, layers down and heads along, instead of one table: each layer by itself instead of the mean, and
  // each head instead of view.head.
  bool each_layer = false, each_head = false;
  HeatMapStyle style;
};

// Of the pair's maps, which are layers of one kind. Throws Error where there are none, and as view does.
Picture draw_attention(const AttendedPair& pair, PictureFormat format, const PictureOptions& options);

}  // namespace gloss::inspect
