#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "gloss/kernels/packed_matrix.cc"  // this file, compiled once a target
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "gloss/kernels/gemm_pack-inl.h"
#include "gloss/kernels/packed_matrix.h"

HWY_BEFORE_NAMESPACE();
namespace gloss::kernels::HWY_NAMESPACE {
namespace {

// All of op(B), panel after panel.
void pack_panels(Matrix<const float> b, Transpose tb, int64_t n, int64_t k, float* out) {
  for (int64_t col = 0; col < n; col += kPanelWidth) {
    const int64_t cols = std::min(kPanelWidth, n - col);
    pack_panel(b, tb, col, cols, 0, k, width_of_panel(cols), out + col * k);
  }
}

int64_t vector_width() {
  return kFloatLanes;
}

}  // namespace
}  // namespace gloss::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <hwy/aligned_allocator.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <new>

#include "gloss/base/error.h"
#include "gloss/kernels/gemm.h"
#include "gloss/kernels/gemm_bf16.h"
#include "gloss/kernels/gemm_onednn.h"
#include "gloss/kernels/gemm_run.h"

namespace gloss::kernels {
namespace {
HWY_EXPORT(pack_panels);
HWY_EXPORT(panel_width);
HWY_EXPORT(vector_width);

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
}  // namespace

struct PackedMatrix::Body {
  Isa isa = Isa::ssse3;
  Precision precision = Precision::float32;
  PanelLayout layout;
  hwy::AlignedFreeUniquePtr<std::byte[]> panels;  // of our kernel
  OnednnWeightsPointer onednn;                    // the same in oneDNN's layout, or null
};

int64_t PackedMatrix::rows() const {
  return body_ ? body_->layout.rows : 0;
}
int64_t PackedMatrix::cols() const {
  return body_ ? body_->layout.cols : 0;
}
size_t PackedMatrix::bytes() const {
  if (!body_) return 0;
  return static_cast<size_t>(body_->layout.bytes()) + (body_->onednn ? bytes_of(*body_->onednn) : 0);
}
Precision PackedMatrix::precision() const {
  return body_ ? body_->precision : Precision::float32;
}
Isa PackedMatrix::isa() const {
  return body_ ? body_->isa : current_isa();
}

PackedMatrix pack(Matrix<const float> weights, Transpose stored, Precision precision) {
  require_precision(precision);
  auto body = std::make_shared<PackedMatrix::Body>();
  body->isa = current_isa();
  body->precision = precision;
  PanelLayout& layout = body->layout;
  layout.panel = HWY_DYNAMIC_DISPATCH(panel_width)();
  layout.vector = HWY_DYNAMIC_DISPATCH(vector_width)();
  layout.rows = stored == Transpose::yes ? weights.rows : weights.cols;
  layout.cols = stored == Transpose::yes ? weights.cols : weights.rows;
  if (precision == Precision::bfloat16) {
    layout.per_step = kBf16PerStep;
    layout.number_bytes = 2;
  }
  body->panels = hwy::AllocateAligned<std::byte>(static_cast<size_t>(std::max<int64_t>(layout.bytes(), 1)));
  if (body->panels == nullptr) throw std::bad_alloc();
  if (precision == Precision::bfloat16) {
    for (int64_t row = 0; row < layout.rows; row += layout.panel) {
      const int64_t count = std::min(layout.panel, layout.rows - row);
      bf16_pack_panel(weights, stored, row, count, 0, layout.cols, multiple(count, layout.vector),
                      body->panels.get() + layout.row(row).first);
    }
  } else {
    HWY_DYNAMIC_DISPATCH(pack_panels)
    (weights, stored, layout.rows, layout.cols, reinterpret_cast<float*>(body->panels.get()));
    // Our own form is there in any case: whether oneDNN serves is asked again for each number of rows.
    if (gemm_backend() == GemmBackend::onednn && stored == Transpose::yes)
      body->onednn = pack_for_onednn(weights);
  }
  return PackedMatrix(std::move(body));
}

void gemm_packed(ThreadPool& pool, Matrix<const float> x, const PackedMatrix& w, Matrix<float> y,
                 Accumulate accumulate, const Epilogue<float>& epilogue) {
  require(static_cast<bool>(w), "the weights of a product are empty: pack them first");
  const PackedMatrix::Body& body = *w.body();
  require(body.isa == current_isa(),
          "weights packed for {} cannot be used while kernels run on {}: pack them again", isa_name(body.isa),
          isa_name(current_isa()));
  check_shapes<float>(x, Transpose::no, {nullptr, w.rows(), w.cols(), w.cols()}, Transpose::yes, y, epilogue);
  Product p;
  p.precision = body.precision;
  p.a = x;
  p.panels = body.panels.get();
  p.c = y;
  p.k = w.cols();
  p.accumulate = accumulate;
  p.epilogue = epilogue;
  if (body.onednn && onednn_serves(p, body.onednn.get())) {
    run_onednn(&pool, p, body.onednn.get());
  } else {
    run_own(&pool, p);
  }
}

void unpack_row(const PackedMatrix& w, int64_t row, float* out) {
  require(row >= 0 && row < w.rows(), "packed weights of {} rows have no row {}", w.rows(), row);
  const PackedMatrix::Body& body = *w.body();
  const auto [first, stride] = body.layout.row(row);
  const std::byte* from = body.panels.get() + first;
  if (body.precision == Precision::bfloat16) {
    for (int64_t k = 0; k < w.cols(); ++k) {
      uint16_t upper;  // half of a float
      std::memcpy(&upper, from + k / kBf16PerStep * stride + k % kBf16PerStep * 2, sizeof(upper));
      out[k] = std::bit_cast<float>(static_cast<uint32_t>(upper) << 16);
    }
  } else {
    for (int64_t k = 0; k < w.cols(); ++k, from += stride) std::memcpy(out + k, from, sizeof(float));
  }
}

void unpack_rows(ThreadPool& pool, const PackedMatrix& w, std::span<const int32_t> rows, Matrix<float> out) {
  const auto count = static_cast<int64_t>(rows.size());
  require(out.rows == count && out.cols == w.cols(),
          "{} rows of packed weights [{}, {}] do not fit into [{}, {}]: make the shapes fit", count, w.rows(),
          w.cols(), out.rows, out.cols);
  pool.parallel_ranges(count, 16, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) unpack_row(w, rows[static_cast<size_t>(i)], out.row(i));
  });
}

}  // namespace gloss::kernels
#endif  // HWY_ONCE
