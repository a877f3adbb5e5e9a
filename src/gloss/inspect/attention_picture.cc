#include "gloss/inspect/attention_picture.h"

#include <tuple>
#include <utility>

namespace gloss::inspect {
namespace {

using models::AttentionKind;

std::pair<std::string, std::string> axes_of(AttentionKind kind) {
  switch (kind) {
    case AttentionKind::cross:
      return {"target", "source"};
    case AttentionKind::encoder:
      return {"source, as query", "source, as key"};
    case AttentionKind::decoder:
      return {"decoder input, as query", "decoder input, as key"};
  }
  return {};
}

}  // namespace

Picture draw_attention(const AttendedPair& pair, PictureFormat format, const PictureOptions& options) {
  const models::AttentionMap& first = pair.maps.at(0);
  HeatMapGrid grid;
  std::tie(grid.row_axis, grid.column_axis) = axes_of(first.kind);
  if (!options.all_heads) {
    AttentionView one = view(pair, first, options.view);
    grid.title = std::move(one.title);
    grid.row_labels = std::move(one.rows);
    grid.column_labels = std::move(one.columns);
    grid.maps.push_back({std::move(one.values), std::move(one.hidden)});
    return draw(grid, format, options.style);
  }
  grid.grid_rows.clear();
  grid.grid_columns.clear();
  for (int64_t head = 0; head < first.heads; ++head)
    grid.grid_columns.push_back(fmt::format("head {}", head));
  for (const models::AttentionMap& map : pair.maps) {
    grid.grid_rows.push_back(fmt::format("layer {}", map.layer));
    for (int64_t head = 0; head < map.heads; ++head) {
      ViewOptions of_head = options.view;
      of_head.head = head;
      AttentionView one = view(pair, map, of_head);
      grid.row_labels = std::move(one.rows);
      grid.column_labels = std::move(one.columns);
      grid.maps.push_back({std::move(one.values), std::move(one.hidden)});
    }
  }
  grid.title = fmt::format("{}{}", kind_name(first.kind),
                           first.kind == AttentionKind::cross ? "-attention" : " self-attention");
  return draw(grid, format, options.style);
}

}  // namespace gloss::inspect
