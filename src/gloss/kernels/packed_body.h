// What a PackedMatrix holds: for those who pack and multiply.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "gloss/base/large_memory.h"
#include "gloss/kernels/gemm_onednn.h"
#include "gloss/kernels/gemm_task.h"
#include "gloss/kernels/isa.h"
#include "gloss/kernels/packed_matrix.h"

namespace gloss::kernels {

// Where the numbers of W stand. Panels are `panel` rows of W wide, the last one as narrow as whole vectors
// allow; a panel holds its steps one after another, a step the numbers of each row for `per_step` k.
struct PanelLayout {
  int64_t panel = 0, vector = 0;
  int64_t per_step = 1, number_bytes = sizeof(float);
  int64_t rows = 0, cols = 0;

  int64_t steps() const { return ceil_div(cols, per_step); }
  int64_t bytes() const { return multiple(rows, vector) * steps() * per_step * number_bytes; }
  // Of row `row`: where its first number is, and how far apart the numbers of two steps are.
  struct Row {
    int64_t first, stride;
  };
  Row row(int64_t row) const {
    const int64_t begin = row / panel * panel, width = std::min(panel, multiple(rows - begin, vector));
    const int64_t step_bytes = per_step * number_bytes;
    return {(begin * steps() + row - begin) * step_bytes, width * step_bytes};
  }
};

template <class T>
using Memory = std::unique_ptr<T[], FreeLarge>;
template <class T>
Memory<T> allocate(int64_t count) {
  const size_t bytes = static_cast<size_t>(count) * sizeof(T);
  return Memory<T>(static_cast<T*>(allocate_large(bytes)), FreeLarge{bytes});
}

struct PackedMatrix::Body {
  Isa isa = Isa::ssse3;
  Precision precision = Precision::float32;
  PanelLayout layout;
  Memory<std::byte> panels;     // of our kernel
  OnednnWeightsPointer onednn;  // the same in oneDNN's layout, or null
  Memory<float> scales;         // int8: [rows]
  Memory<int32_t> starts;       // int8 in the form for VNNI: [rows up to whole vectors], see gemm_vnni.h
};

// Room for W [rows, cols] as the kernels of this instruction set read it; all but the starts of int8 is left
// to be filled. Throws UsageError for a precision that this CPU does not serve.
std::shared_ptr<PackedMatrix::Body> make_packed_body(int64_t rows, int64_t cols, Precision precision);

// Calls fill(row, count) for the rows of each panel of W's rows [first, end).
template <class Fill>
void for_panels(const PanelLayout& layout, int64_t first, int64_t end, Fill fill) {
  for (int64_t row = first; row < end; row += layout.panel) fill(row, std::min(layout.panel, end - row));
}

}  // namespace gloss::kernels
