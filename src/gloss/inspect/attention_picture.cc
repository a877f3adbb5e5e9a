#include "gloss/inspect/attention_picture.h"

#include <optional>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

namespace gloss::inspect {
namespace {

using models::AttentionKind;
using models::AttentionMap;

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
  require(!pair.maps.empty(), "there is no attention to draw: ask for a layer of a kind that the model has");
  const std::span<const AttentionMap> maps = pair.maps;
  std::vector<std::span<const AttentionMap>> layers{maps};
  if (options.each_layer) {
    layers.clear();
    for (size_t i = 0; i < maps.size(); ++i) layers.push_back(maps.subspan(i, 1));
  }
  std::vector<std::optional<int64_t>> heads{options.view.head};
  if (options.each_head) {
    heads.clear();
    for (int64_t head = 0; head < maps[0].heads; ++head) heads.emplace_back(head);
  }
  HeatMapGrid grid;
  std::tie(grid.row_axis, grid.column_axis) = axes_of(maps[0].kind);
  grid.title = kind_text(maps[0].kind);
  const bool alone = layers.size() == 1 && heads.size() == 1;
  if (!alone) {
    grid.grid_rows.clear();
    grid.grid_columns.clear();
    for (const auto& layer : layers) grid.grid_rows.push_back(layers_text(layer));
    for (const auto& head : heads) grid.grid_columns.push_back(heads_text(maps[0], head));
  }
  for (const auto& layer : layers) {
    for (const auto& head : heads) {
      ViewOptions of_one = options.view;
      of_one.head = head;
      AttentionView one = view(pair, layer, of_one);
      if (alone) grid.title = std::move(one.title);
      grid.row_labels = std::move(one.rows);
      grid.column_labels = std::move(one.columns);
      grid.maps.push_back({std::move(one.values), std::move(one.hidden)});
    }
  }
  return draw(grid, format, options.style);
}

}  // namespace gloss::inspect
