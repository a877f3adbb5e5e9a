// The way out of a matrix product: sums join what chains before gave and what C holds, get their bias, are
// activated. Per-target include, as wide-inl.h.
#include "gloss/kernels/activation-inl.h"
#include "gloss/kernels/gemm_task.h"
#include "gloss/kernels/wide-inl.h"

#if defined(GLOSS_KERNELS_GEMM_OUT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef GLOSS_KERNELS_GEMM_OUT_INL_H_
#undef GLOSS_KERNELS_GEMM_OUT_INL_H_
#else
#define GLOSS_KERNELS_GEMM_OUT_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace gloss::kernels::HWY_NAMESPACE {
namespace {

// Rows of op(A) for one chain: one after another, or (`across`) side by side in each step.
struct LeftSide {
  const std::byte* data;
  int64_t stride;  // bytes between rows; across: between steps, or 0 where they are packed in tiles
  bool across;
  const float* scales;  // of int8 rows
};

// Rows x cols of C at (row, col).
struct TilePlace {
  int64_t row, rows, col, cols;
};

// What the register tile left for a TilePlace. Of a row, at(j, read) gives columns from j on as float; `read`
// loads them.
struct FloatSums {
  const float* data;
  int64_t stride;

  struct Row {
    const float* data;
    template <class Read>
    HWY_INLINE Wide<float> at(int64_t j, Read read) const {
      return read(data + j);
    }
  };
  HWY_INLINE Row row(int64_t i) const { return {data + i * stride}; }
};

// The sums of a chain that is not the last one: kept, or added to what the chains before it gave.
void keep_tile(const TilePlace& tile, const FloatSums& from, float* kept, int64_t kept_stride, bool first) {
  for (int64_t i = 0; i < tile.rows; ++i) {
    const float* sums = from.data + i * from.stride;
    float* to = kept + i * kept_stride;
    int64_t j = 0;
    for (; j + kWide <= tile.cols; j += kWide) {
      const Wide<float> x = load(sums + j);
      store(first ? x : load(to + j) + x, to + j);
    }
    if (j < tile.cols) {
      const Wide<float> x = load_first(sums + j, tile.cols - j);
      store_first(first ? x : load_first(to + j, tile.cols - j) + x, to + j, tile.cols - j);
    }
  }
}

template <Activation A, class Sums>
HWY_NOINLINE void finish_tile_with(const TilePlace& tile, const Sums& sums, const float* kept,
                                   int64_t kept_stride, const Product& p) {
  const bool add_c = p.accumulate == Accumulate::yes;
  for (int64_t i = 0; i < tile.rows; ++i) {
    const auto row = sums.row(i);
    const float* before = kept ? kept + i * kept_stride : nullptr;
    float* c = p.c.row(tile.row + i) + tile.col;
    const float* bias = p.epilogue.bias ? p.epilogue.bias + tile.col : nullptr;
    const Matrix<float>& pre = p.epilogue.pre_activation;
    float* keep = pre.data ? pre.row(tile.row + i) + tile.col : nullptr;
    const auto finish = [&](int64_t j, auto read, auto write) HWY_ATTR {
      Wide<float> x = row.at(j, read);
      if (before) x = read(before + j) + x;
      if (add_c) x = read(c + j) + x;
      if (bias) x = x + read(bias + j);
      if (keep) write(x, keep + j);
      write(activate<A>(x), c + j);
    };
    int64_t j = 0;
    for (; j + kWide <= tile.cols; j += kWide) {
      finish(
          j, [](const auto* from) HWY_ATTR { return load(from); },
          [](const Wide<float>& x, float* to) HWY_ATTR { store(x, to); });
    }
    const int64_t rest = tile.cols - j;
    if (rest > 0) {
      finish(
          j, [rest](const auto* from) HWY_ATTR { return load_first(from, rest); },
          [rest](const Wide<float>& x, float* to) HWY_ATTR { store_first(x, to, rest); });
    }
  }
}

// The sums of the last chain, on top of those before it (`kept`, or null): accumulates into C, adds bias,
// activates.
template <class Sums>
void finish_tile(const TilePlace& tile, const Sums& sums, const float* kept, int64_t kept_stride,
                 const Product& p) {
  switch (p.epilogue.activation) {
    case Activation::none:
      return finish_tile_with<Activation::none>(tile, sums, kept, kept_stride, p);
    case Activation::relu:
      return finish_tile_with<Activation::relu>(tile, sums, kept, kept_stride, p);
    case Activation::swish:
      return finish_tile_with<Activation::swish>(tile, sums, kept, kept_stride, p);
    case Activation::gelu:
      return finish_tile_with<Activation::gelu>(tile, sums, kept, kept_stride, p);
    case Activation::tanh:
      return finish_tile_with<Activation::tanh>(tile, sums, kept, kept_stride, p);
  }
}

bool writes_plain_sums(const Product& p) {
  return p.accumulate == Accumulate::no && !p.epilogue.bias && !p.epilogue.pre_activation.data &&
         p.epilogue.activation == Activation::none;
}

// Adds the sums of all chains, computed apart (`parts` of [M, N] dense floats), for rows [row, row + rows).
void finish_parts(const Product& p, float* parts, int64_t count, int64_t row, int64_t rows) {
  const int64_t n = p.c.cols, part_size = p.c.rows * n;
  const TilePlace tile{row, rows, 0, n};
  float* const total = parts + row * n;
  for (int64_t part = 1; part + 1 < count; ++part) {
    keep_tile(tile, {parts + part * part_size + row * n, n}, total, n, false);
  }
  const FloatSums last{parts + (count - 1) * part_size + row * n, n};
  finish_tile(tile, last, count > 1 ? total : nullptr, n, p);
}

// Rows whose complete sums [rows, N] were computed elsewhere.
void finish_rows(const Product& p, const float* sums, int64_t row, int64_t rows) {
  finish_tile({row, rows, 0, p.c.cols}, FloatSums{sums, p.c.cols}, nullptr, 0, p);
}

}  // namespace
}  // namespace gloss::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
