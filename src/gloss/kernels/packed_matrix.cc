#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "gloss/kernels/packed_matrix.cc"  // this file, compiled once a target
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "gloss/kernels/gemm_pack-inl.h"
#include "gloss/kernels/int8_scale-inl.h"
#include "gloss/kernels/packed_matrix.h"

HWY_BEFORE_NAMESPACE();
namespace gloss::kernels::HWY_NAMESPACE {
namespace {

// A panel of op(B), all its `k`.
void pack_whole_panel(Matrix<const float> b, Transpose tb, int64_t col, int64_t cols, int64_t k, float* out) {
  pack_panel(b, tb, col, cols, 0, k, width_of_panel(cols), out);
}

// q [count] = x as int8; returns what one of them is worth.
float int8_numbers(const float* x, int64_t count, int8_t* q) {
  const Int8Scale s = int8_scale(x, count);
  if (std::isnan(s.scale)) {
    std::fill_n(q, count, int8_t{0});
  } else {
    round_to_int8(x, count, s.factor, q);
  }
  return s.scale;
}

int64_t vector_width() {
  return kFloatLanes;
}

}  // namespace
}  // namespace gloss::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <algorithm>
#include <bit>
#include <cstring>

#include "gloss/base/error.h"
#include "gloss/kernels/gemm.h"
#include "gloss/kernels/gemm_bf16.h"
#include "gloss/kernels/gemm_onednn.h"
#include "gloss/kernels/gemm_run.h"
#include "gloss/kernels/gemm_vnni.h"
#include "gloss/kernels/packed_body.h"
#include "gloss/kernels/scratch.h"

namespace gloss::kernels {
namespace {
HWY_EXPORT(int8_numbers);
HWY_EXPORT(pack_whole_panel);
HWY_EXPORT(panel_width);
HWY_EXPORT(vector_width);

}  // namespace

std::shared_ptr<PackedMatrix::Body> make_packed_body(int64_t rows, int64_t cols, Precision precision) {
  require_precision(precision);
  auto body = std::make_shared<PackedMatrix::Body>();
  body->isa = current_isa();
  body->precision = precision;
  PanelLayout& layout = body->layout;
  layout.panel = HWY_DYNAMIC_DISPATCH(panel_width)();
  layout.vector = HWY_DYNAMIC_DISPATCH(vector_width)();
  layout.rows = rows;
  layout.cols = cols;
  const int64_t padded = multiple(rows, layout.vector);
  if (precision == Precision::bfloat16) {
    layout.per_step = kBf16PerStep;
    layout.number_bytes = 2;
  } else if (precision == Precision::int8) {
    require(cols <= kMostInt8Inputs,
            "a product in int8 sums at most {} numbers exactly, not {}: choose another precision",
            kMostInt8Inputs, cols);
    layout.per_step = vnni_served() ? kVnniPerStep : kPairPerStep;
    layout.number_bytes = 1;
    body->scales = allocate<float>(rows);
    if (vnni_served()) {
      body->starts = allocate<int32_t>(padded);
      std::fill_n(body->starts.get(), padded, 0);
    }
  }
  body->panels = allocate<std::byte>(layout.bytes());
  return body;
}

namespace {

// The panel that begins with row `row` of W, from its `count` rows of int8 numbers.
template <int64_t kPerStep>
void fill_int8_panel(PackedMatrix::Body& body, int64_t row, int64_t count, Matrix<const int8_t> numbers) {
  const PanelLayout::Row place = body.layout.row(row);
  const int64_t cols = body.layout.cols;
  std::byte* to = body.panels.get() + place.first;
  std::memset(to, 0, static_cast<size_t>(body.layout.steps() * place.stride));
  for (int64_t k = 0; k < cols; k += kPerStep, to += place.stride) {
    const auto bytes_here = static_cast<size_t>(std::min(kPerStep, cols - k));
    for (int64_t i = 0; i < count; ++i) {
      if (bytes_here == kPerStep) {
        std::memcpy(to + i * kPerStep, numbers.row(i) + k, kPerStep);
      } else {
        std::memcpy(to + i * kPerStep, numbers.row(i) + k, bytes_here);
      }
    }
  }
  if (!body.starts) return;
  for (int64_t i = 0; i < count; ++i) {
    uint32_t sum = 0;  // wraps, as sums in the kernel do
    for (int64_t k = 0; k < cols; ++k) sum += static_cast<uint32_t>(numbers.row(i)[k]);
    body.starts[static_cast<size_t>(row + i)] = static_cast<int32_t>(0u - 128u * sum);
  }
}
void fill_int8(PackedMatrix::Body& body, int64_t row, int64_t count, Matrix<const int8_t> numbers) {
  if (body.layout.per_step == kVnniPerStep) {
    fill_int8_panel<kVnniPerStep>(body, row, count, numbers);
  } else {
    fill_int8_panel<kPairPerStep>(body, row, count, numbers);
  }
}

// Where rows of W are: at `data` one after another, or (Transpose::no) side by side.
struct PlainRows {
  Matrix<const float> weights;
  Transpose stored;
  int64_t first;  // row of W that the first one is
};

// Quantises `count` rows of W, a panel.
void quantise_panel(PackedMatrix::Body& body, const PlainRows& from, int64_t row, int64_t count) {
  const int64_t cols = body.layout.cols, begin = row - from.first;
  const Scratch<int8_t> numbers(body.layout.panel * cols);
  const Scratch<float> gathered(from.stored == Transpose::yes ? 0 : cols);
  for (int64_t i = 0; i < count; ++i) {
    const float* numbers_of_row = gathered.data();
    if (from.stored == Transpose::yes) {
      numbers_of_row = from.weights.row(begin + i);
    } else {
      for (int64_t k = 0; k < cols; ++k) gathered[k] = from.weights.row(k)[begin + i];
    }
    body.scales[static_cast<size_t>(row + i)] =
        HWY_DYNAMIC_DISPATCH(int8_numbers)(numbers_of_row, cols, numbers.data() + i * cols);
  }
  fill_int8(body, row, count, {numbers.data(), count, cols, cols});
}

// Fills the panels of W's rows [from.first, from.first + rows).
void fill_panels(PackedMatrix::Body& body, const PlainRows& from, int64_t rows) {
  const PanelLayout& layout = body.layout;
  for_panels(layout, from.first, from.first + rows, [&](int64_t row, int64_t count) {
    std::byte* const to = body.panels.get() + layout.row(row).first;
    const int64_t col = row - from.first, width = multiple(count, layout.vector);  // a column of op(B)
    switch (body.precision) {
      case Precision::float32:
        return HWY_DYNAMIC_DISPATCH(pack_whole_panel)(from.weights, from.stored, col, count, layout.cols,
                                                      reinterpret_cast<float*>(to));
      case Precision::bfloat16:
        return bf16_pack_panel(from.weights, from.stored, col, count, 0, layout.cols, width, to);
      case Precision::int8:
        return quantise_panel(body, from, row, count);
    }
  });
}

// Calls read(k, where it stands) for each number of a row of W.
template <class Read>
void for_numbers(const PackedMatrix::Body& body, int64_t row, Read read) {
  const PanelLayout& layout = body.layout;
  const PanelLayout::Row place = layout.row(row);
  const std::byte* step = body.panels.get() + place.first;
  for (int64_t k = 0; k < layout.cols; k += layout.per_step, step += place.stride) {
    const int64_t here = std::min(layout.per_step, layout.cols - k);
    for (int64_t i = 0; i < here; ++i) read(k + i, step + i * layout.number_bytes);
  }
}

}  // namespace

int64_t PackedMatrix::rows() const {
  return body_ ? body_->layout.rows : 0;
}
int64_t PackedMatrix::cols() const {
  return body_ ? body_->layout.cols : 0;
}
size_t PackedMatrix::bytes() const {
  if (!body_) return 0;
  const PanelLayout& layout = body_->layout;
  int64_t bytes = layout.bytes();
  if (body_->scales) bytes += layout.rows * static_cast<int64_t>(sizeof(float));
  if (body_->starts) bytes += multiple(layout.rows, layout.vector) * static_cast<int64_t>(sizeof(int32_t));
  return static_cast<size_t>(bytes) + (body_->onednn ? bytes_of(*body_->onednn) : 0);
}
Precision PackedMatrix::precision() const {
  return body_ ? body_->precision : Precision::float32;
}
Isa PackedMatrix::isa() const {
  return body_ ? body_->isa : current_isa();
}

PackedMatrix pack(Matrix<const float> weights, Transpose stored, Precision precision) {
  if (stored == Transpose::yes) {
    Packer packer(weights.rows, weights.cols, precision);
    packer.add(0, weights);
    return std::move(packer).finish();
  }
  auto body = make_packed_body(weights.cols, weights.rows, precision);
  fill_panels(*body, {weights, stored, 0}, weights.cols);
  return PackedMatrix(std::move(body));
}

PackedMatrix pack_int8(Matrix<const int8_t> weights, std::span<const float> scales) {
  Packer packer(weights.rows, weights.cols, Precision::int8);
  packer.add_int8(0, weights, scales);
  return std::move(packer).finish();
}

Packer::Packer(int64_t rows, int64_t cols, Precision precision)
    : body_(make_packed_body(rows, cols, precision)) {}

namespace {

void check_rows(const PanelLayout& layout, int64_t first, int64_t rows, int64_t cols) {
  require(first >= 0 && first + rows <= layout.rows && cols == layout.cols,
          "rows {} to {} of {} numbers do not fit into weights [{}, {}]", first, first + rows, cols,
          layout.rows, layout.cols);
  require(first % Packer::kStep == 0 && (rows % Packer::kStep == 0 || first + rows == layout.rows),
          "rows {} to {} of {} do not make whole panels of {}", first, first + rows, layout.rows,
          Packer::kStep);
}

}  // namespace

void Packer::add(int64_t first, Matrix<const float> weights) {
  check_rows(body_->layout, first, weights.rows, weights.cols);
  fill_panels(*body_, {weights, Transpose::yes, first}, weights.rows);
}

void Packer::add_int8(int64_t first, Matrix<const int8_t> weights, std::span<const float> scales) {
  require(static_cast<int64_t>(scales.size()) == weights.rows,
          "weights of {} outputs have {} scales: make them equal", weights.rows, scales.size());
  require(body_->precision == Precision::int8, "int8 numbers cannot be packed as {}",
          precision_name(body_->precision));
  check_rows(body_->layout, first, weights.rows, weights.cols);
  std::copy(scales.begin(), scales.end(), body_->scales.get() + first);
  for_panels(body_->layout, first, first + weights.rows, [&](int64_t row, int64_t count) {
    fill_int8(*body_, row, count, rows(weights, row - first, count));
  });
}

PackedMatrix Packer::finish() && {
  PackedMatrix packed(body_);
  // Our own form is there in any case: whether oneDNN serves is asked again for each number of rows.
  if (packed.precision() == Precision::float32 && gemm_backend() == GemmBackend::onednn) {
    const Scratch<float> numbers(packed.rows() * packed.cols());
    for (int64_t row = 0; row < packed.rows(); ++row)
      unpack_row(packed, row, numbers.data() + row * packed.cols());
    body_->onednn = pack_for_onednn({numbers.data(), packed.rows(), packed.cols(), packed.cols()});
  }
  return packed;
}

namespace {

Product packed_product(Matrix<const float> x, const PackedMatrix& w, Matrix<float> y, Accumulate accumulate,
                       const Epilogue<float>& epilogue) {
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
  p.channel_scales = body.scales.get();
  p.starts = body.starts.get();
  p.c = y;
  p.k = w.cols();
  p.accumulate = accumulate;
  p.epilogue = epilogue;
  return p;
}

}  // namespace

void gemm_packed(ThreadPool& pool, Matrix<const float> x, const PackedMatrix& w, Matrix<float> y,
                 Accumulate accumulate, const Epilogue<float>& epilogue) {
  const Product p = packed_product(x, w, y, accumulate, epilogue);
  const OnednnWeights* onednn = w.body()->onednn.get();
  if (onednn && onednn_serves(p, onednn)) {
    run_onednn(&pool, p, onednn);
  } else {
    run_own(&pool, p);
  }
}

void gemm_packed_parts(ThreadPool& pool, Matrix<const float> x, const PackedMatrix& w, const float* bias,
                       ColumnParts parts, const SeePart& see) {
  const Epilogue<float> epilogue{bias};
  const Product p = packed_product(x, w, {nullptr, x.rows, w.rows(), w.rows()}, Accumulate::no, epilogue);
  run_parts(&pool, p, parts, see);
}

void unpack_row(const PackedMatrix& w, int64_t row, float* out) {
  require(row >= 0 && row < w.rows(), "packed weights of {} rows have no row {}", w.rows(), row);
  const PackedMatrix::Body& body = *w.body();
  switch (body.precision) {
    case Precision::float32:
      return for_numbers(body, row,
                         [&](int64_t k, const std::byte* at) { std::memcpy(out + k, at, sizeof(float)); });
    case Precision::bfloat16:
      return for_numbers(body, row, [&](int64_t k, const std::byte* at) {
        uint16_t upper;  // half of a float
        std::memcpy(&upper, at, sizeof(upper));
        out[k] = std::bit_cast<float>(static_cast<uint32_t>(upper) << 16);
      });
    case Precision::int8:
      return for_numbers(body, row,
                         [&, scale = body.scales[static_cast<size_t>(row)]](int64_t k, const std::byte* at) {
                           out[k] = static_cast<float>(static_cast<int8_t>(*at)) * scale;
                         });
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

void unpack_int8(const PackedMatrix& w, Matrix<int8_t> weights, std::span<float> scales) {
  require(w && w.precision() == Precision::int8, "weights packed in {} have no numbers of int8",
          precision_name(w.precision()));
  require(
      weights.rows == w.rows() && weights.cols == w.cols() && static_cast<int64_t>(scales.size()) == w.rows(),
      "int8 weights [{}, {}] do not fit into [{}, {}] with {} scales: make the shapes fit", w.rows(),
      w.cols(), weights.rows, weights.cols, scales.size());
  const PackedMatrix::Body& body = *w.body();
  for (int64_t row = 0; row < w.rows(); ++row) {
    int8_t* to = weights.row(row);
    for_numbers(body, row, [&](int64_t k, const std::byte* at) { to[k] = static_cast<int8_t>(*at); });
  }
  std::copy_n(body.scales.get(), w.rows(), scales.begin());
}

}  // namespace gloss::kernels
#endif  // HWY_ONCE
