#include <algorithm>
#include <cstring>
#include <vector>

#include "gloss/base/error.h"
#include "gloss/kernels/packed_body.h"

namespace gloss::kernels {
namespace {

// Panels a task fills: enough that waking a thread pays.
constexpr int64_t kPanelsATask = 4;

// One panel of `count` rows at `to`, from where each of them stands: step by step, of each row its kBytes.
template <size_t kBytes>
void gather_panel(std::span<const std::byte*> from, std::span<const int64_t> strides, int64_t steps,
                  int64_t stride, std::byte* to) {
  const size_t count = from.size(), rest = static_cast<size_t>(stride) - count * kBytes;
  for (int64_t step = 0; step < steps; ++step, to += stride) {
    for (size_t i = 0; i < count; ++i) {
      std::memcpy(to + i * kBytes, from[i], kBytes);
      from[i] += strides[i];
    }
    std::memset(to + count * kBytes, 0, rest);
  }
}

}  // namespace

PackedMatrix gather_rows(ThreadPool& pool, const PackedMatrix& w, std::span<const int32_t> rows) {
  require(static_cast<bool>(w), "there are no packed weights to take rows of");
  const PackedMatrix::Body& whole = *w.body();
  for (const int32_t row : rows)
    require(row >= 0 && row < w.rows(), "packed weights of {} rows have no row {}", w.rows(), row);
  const auto body = make_packed_body(std::ssize(rows), w.cols(), whole.precision);
  const PanelLayout& layout = body->layout;
  require(whole.isa == body->isa && whole.layout.per_step == layout.per_step,
          "weights packed for {} cannot be used while kernels run on {}: pack them again",
          isa_name(whole.isa), isa_name(body->isa));
  const int64_t panels = ceil_div(layout.rows, layout.panel),
                step_bytes = layout.per_step * layout.number_bytes;
  pool.parallel_ranges(panels, kPanelsATask, [&](int64_t begin, int64_t end) {
    std::vector<const std::byte*> from;
    std::vector<int64_t> strides;
    const int64_t first = begin * layout.panel, behind = std::min(layout.rows, end * layout.panel);
    for_panels(layout, first, behind, [&](int64_t row, int64_t count) {
      from.clear();
      strides.clear();
      for (int64_t i = row; i < row + count; ++i) {
        const PanelLayout::Row place = whole.layout.row(rows[static_cast<size_t>(i)]);
        from.push_back(whole.panels.get() + place.first);
        strides.push_back(place.stride);
      }
      const PanelLayout::Row place = layout.row(row);
      std::byte* const to = body->panels.get() + place.first;
      if (step_bytes == 4) {
        gather_panel<4>(from, strides, layout.steps(), place.stride, to);
      } else {
        gather_panel<2>(from, strides, layout.steps(), place.stride, to);
      }
    });
  });
  for (size_t i = 0; i < rows.size(); ++i) {
    const auto row = static_cast<size_t>(rows[i]);
    if (body->scales) body->scales[i] = whole.scales[row];
    if (body->starts) body->starts[i] = whole.starts[row];
  }
  return PackedMatrix(body);
}

}  // namespace gloss::kernels
