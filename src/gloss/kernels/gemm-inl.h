// The float product on one target's vectors: packing, the register tile, and the way out. Per-target
// include, as wide-inl.h.
#include <hwy/cache_control.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "gloss/kernels/activation-inl.h"
#include "gloss/kernels/gemm_task.h"
#include "gloss/kernels/wide-inl.h"

#if defined(GLOSS_KERNELS_GEMM_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef GLOSS_KERNELS_GEMM_INL_H_
#undef GLOSS_KERNELS_GEMM_INL_H_
#else
#define GLOSS_KERNELS_GEMM_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace gloss::kernels::HWY_NAMESPACE {

using FloatTag = hn::ScalableTag<float>;
using FloatVector = hn::Vec<FloatTag>;
inline constexpr int64_t kFloatLanes = static_cast<int64_t>(hn::MaxLanes(FloatTag()));
// 24 of 32 registers hold sums with AVX-512, 12 of 16 elsewhere.
inline constexpr int kPanelVectors = HWY_TARGET == HWY_AVX3 ? 4 : 2;
inline constexpr int64_t kPanelWidth = kPanelVectors * kFloatLanes;
// With one or two rows a narrow panel has too few chains to hide the latency of an addition.
inline constexpr int kPanelsTogether = HWY_TARGET == HWY_AVX3 ? 2 : 4;

HWY_INLINE int64_t round_up(int64_t n, int64_t step) {
  return (n + step - 1) / step * step;
}
// Floats from one k row of a panel to the next, for the panel that begins `cols` columns before the end.
HWY_INLINE int64_t width_of_panel(int64_t cols) {
  return std::min(kPanelWidth, round_up(cols, kFloatLanes));
}

// --- Packing -----------------------------------------------------------------------------------------------

#if HWY_TARGET != HWY_SCALAR
// out[k][j] = in[j][k] for 4 rows j of `in` and `count` k.
HWY_INLINE void transpose_four(const float* HWY_RESTRICT in, int64_t in_stride, int64_t count,
                               float* HWY_RESTRICT out, int64_t out_stride) {
  const hn::CappedTag<float, 4> d;
  const hn::RepartitionToWide<decltype(d)> wide;
  int64_t k = 0;
  for (; k + 4 <= count; k += 4) {
    const auto r0 = hn::LoadU(d, in + k), r1 = hn::LoadU(d, in + in_stride + k);
    const auto r2 = hn::LoadU(d, in + 2 * in_stride + k), r3 = hn::LoadU(d, in + 3 * in_stride + k);
    const auto a = hn::BitCast(wide, hn::InterleaveLower(d, r0, r1));  // 00 10 01 11
    const auto b = hn::BitCast(wide, hn::InterleaveLower(d, r2, r3));  // 20 30 21 31
    const auto e = hn::BitCast(wide, hn::InterleaveUpper(d, r0, r1));
    const auto f = hn::BitCast(wide, hn::InterleaveUpper(d, r2, r3));
    float* to = out + k * out_stride;
    hn::StoreU(hn::BitCast(d, hn::InterleaveLower(wide, a, b)), d, to);
    hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(wide, a, b)), d, to + out_stride);
    hn::StoreU(hn::BitCast(d, hn::InterleaveLower(wide, e, f)), d, to + 2 * out_stride);
    hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(wide, e, f)), d, to + 3 * out_stride);
  }
  for (; k < count; ++k) {
    for (int64_t j = 0; j < 4; ++j) out[k * out_stride + j] = in[j * in_stride + k];
  }
}
#else
// The baseline, which no machine we support runs.
HWY_INLINE void transpose_four(const float* in, int64_t in_stride, int64_t count, float* out,
                               int64_t out_stride) {
  for (int64_t k = 0; k < count; ++k) {
    for (int64_t j = 0; j < 4; ++j) out[k * out_stride + j] = in[j * in_stride + k];
  }
}
#endif

// out[k][j] = in[j][k] for `rows` rows of `in`, in pieces of 64 k: a piece of the output stays in the first
// cache while rows, which may lie a power of two apart, are read four at a time.
inline void transpose_into(const float* in, int64_t in_stride, int64_t rows, int64_t count, float* out,
                           int64_t out_stride) {
  for (int64_t k = 0; k < count; k += 64) {
    const int64_t piece = std::min<int64_t>(64, count - k);
    int64_t j = 0;
    for (; j + 4 <= rows; j += 4) {
      transpose_four(in + j * in_stride + k, in_stride, piece, out + k * out_stride + j, out_stride);
    }
    for (; j < rows; ++j) {
      for (int64_t p = k; p < k + piece; ++p) out[p * out_stride + j] = in[j * in_stride + p];
    }
  }
}

// Slices of rows are too short for the hardware to guess the next one, so we ask for it some rows ahead:
// dW of 256 x 256 over 8,192 tokens rose from 85 to 92 GFLOP/s on one core.
HWY_INLINE void prefetch_slice(const float* from, int64_t count) {
  for (int64_t i = 0; i < count; i += 16) hwy::Prefetch(from + i);
}

// Columns [col, col + cols) and k [k0, k0 + count) of op(B), one panel of `width` columns.
inline void pack_panel(Matrix<const float> b, Transpose tb, int64_t col, int64_t cols, int64_t k0,
                       int64_t count, int64_t width, float* HWY_RESTRICT out) {
  if (tb == Transpose::yes) {
    transpose_into(b.row(col) + k0, b.stride, cols, count, out, width);
  } else {
    const FloatTag d;
    for (int64_t k = 0; k < count; ++k) {
      const float* HWY_RESTRICT from = b.row(k0 + k) + col;
      if (k + 16 < count) prefetch_slice(from + 16 * b.stride, cols);
      int64_t j = 0;
      for (; j + kFloatLanes <= cols; j += kFloatLanes) {
        hn::Store(hn::LoadU(d, from + j), d, out + k * width + j);
      }
      for (; j < cols; ++j) out[k * width + j] = from[j];
    }
  }
  if (cols < width) {
    for (int64_t k = 0; k < count; ++k) std::fill(out + k * width + cols, out + (k + 1) * width, 0.0f);
  }
}

// All of op(B), panel after panel.
inline void pack_panels(Matrix<const float> b, Transpose tb, int64_t n, int64_t k, float* out) {
  for (int64_t col = 0; col < n; col += kPanelWidth) {
    const int64_t cols = std::min(kPanelWidth, n - col);
    pack_panel(b, tb, col, cols, 0, k, width_of_panel(cols), out + col * k);
  }
}

// Rows are dealt to register tiles evenly, 13 as 5 + 4 + 4: a tile of one row would wait for its additions.
struct RowTiles {
  explicit RowTiles(int64_t rows)
      : count((rows + kTileRows - 1) / kTileRows),
        base(count ? rows / count : 0),
        more(rows - base * count) {}
  int64_t count, base, more;
  int64_t begin(int64_t tile) const { return tile * base + std::min(tile, more); }
  // Where a tile of k floats a row begins in packed rows. The gap keeps tiles, which begin 24 KB apart, out
  // of each other's cache sets.
  static constexpr int64_t kGap = 16;
  int64_t packed(int64_t tile, int64_t k) const { return begin(tile) * k + tile * kGap; }
};

// Rows of a transposed A (stored [K, M]): out holds for each tile its k rows of as many floats as it has
// rows of C.
inline void pack_rows(Matrix<const float> a, int64_t row, const RowTiles& tiles, int64_t k0, int64_t count,
                      float* HWY_RESTRICT out) {
  const int64_t all = tiles.begin(tiles.count);
  for (int64_t k = 0; k < count; ++k) {
    const float* HWY_RESTRICT from = a.row(k0 + k) + row;
    if (k + 16 < count) prefetch_slice(from + 16 * a.stride, all);
    float* HWY_RESTRICT to = out;
    for (int64_t tile = 0; tile < tiles.count; ++tile) {
      const int64_t rows = tiles.base + (tile < tiles.more ? 1 : 0);
      if (rows == kTileRows) {
        std::memcpy(to + k * kTileRows, from, kTileRows * sizeof(float));
      } else {
        for (int64_t i = 0; i < rows; ++i) to[k * rows + i] = from[i];
      }
      from += rows;
      to += rows * count + RowTiles::kGap;
    }
  }
}

// --- The register tile -------------------------------------------------------------------------------------

struct TileInput {
  const float* a;
  int64_t a_stride;  // between rows of C; unused when A is packed
  const float* b;
  int64_t b_stride;      // between k rows
  int64_t panel_stride;  // between panels computed together
  int64_t k;
};

// out [rows, kPanels * kVectors vectors] = chains over k, each from zero.
template <int kRows, int kVectors, int kPanels, bool kPackedA>
HWY_NOINLINE void tile_sums(const TileInput& in, float* HWY_RESTRICT out, int64_t out_stride) {
  const FloatTag d;
  constexpr int kAll = kVectors * kPanels;
  const float* HWY_RESTRICT a = in.a;
  const float* HWY_RESTRICT b = in.b;
  const int64_t a_stride = in.a_stride, b_stride = in.b_stride, panel_stride = in.panel_stride;
  FloatVector s[kRows][kAll];
#pragma GCC unroll 8
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 8
    for (int j = 0; j < kAll; ++j) s[i][j] = hn::Zero(d);
  }
  for (int64_t k = in.k; k > 0; --k) {
    FloatVector bv[kAll];
#pragma GCC unroll 8
    for (int j = 0; j < kAll; ++j) {
      const float* from = b + (j / kVectors) * panel_stride + (j % kVectors) * kFloatLanes;
      bv[j] = hn::LoadU(d, from);
      // Few rows pass B faster than the hardware fetches it.
      if (kRows < kTileRows) hwy::Prefetch(from + 8 * b_stride);
    }
#pragma GCC unroll 8
    for (int i = 0; i < kRows; ++i) {
      const FloatVector av = hn::Set(d, kPackedA ? a[i] : a[i * a_stride]);
#pragma GCC unroll 8
      for (int j = 0; j < kAll; ++j) s[i][j] = hn::MulAdd(av, bv[j], s[i][j]);
    }
    a += kPackedA ? kRows : 1;
    b += b_stride;
  }
#pragma GCC unroll 8
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 8
    for (int j = 0; j < kAll; ++j) hn::StoreU(s[i][j], d, out + i * out_stride + j * kFloatLanes);
  }
}

using TileFunction = void (*)(const TileInput&, float*, int64_t);

template <bool kPackedA, size_t... kIndex>
constexpr std::array<TileFunction, sizeof...(kIndex)> tile_table(std::index_sequence<kIndex...>) {
  return {&tile_sums<static_cast<int>(kIndex) / kPanelVectors + 1,
                     static_cast<int>(kIndex) % kPanelVectors + 1, 1, kPackedA>...};
}
using TileIndices = std::make_index_sequence<kTileRows * kPanelVectors>;

HWY_INLINE TileFunction tile_function(bool packed_a, int64_t rows, int64_t width) {
  static constexpr auto kPlain = tile_table<false>(TileIndices());
  static constexpr auto kPacked = tile_table<true>(TileIndices());
  const auto index = static_cast<size_t>((rows - 1) * kPanelVectors + width / kFloatLanes - 1);
  return packed_a ? kPacked[index] : kPlain[index];
}

// --- The way out -------------------------------------------------------------------------------------------

// Sums of one chain for rows x cols of C at (row, col).
struct TileOutput {
  const float* sums;
  int64_t sums_stride;
  int64_t row, rows, col, cols;
};

// The sums of a chain that is not the last one: kept, or added to what the chains before it gave.
inline void keep_tile(const TileOutput& tile, float* kept, int64_t kept_stride, bool first) {
  for (int64_t i = 0; i < tile.rows; ++i) {
    const float* sums = tile.sums + i * tile.sums_stride;
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

template <Activation A>
HWY_NOINLINE void finish_tile_with(const TileOutput& tile, const float* kept, int64_t kept_stride,
                                   const FloatProduct& p) {
  const bool add_c = p.accumulate == Accumulate::yes;
  for (int64_t i = 0; i < tile.rows; ++i) {
    const float* sums = tile.sums + i * tile.sums_stride;
    const float* before = kept ? kept + i * kept_stride : nullptr;
    float* c = p.c.row(tile.row + i) + tile.col;
    const float* bias = p.epilogue.bias ? p.epilogue.bias + tile.col : nullptr;
    const Matrix<float>& pre = p.epilogue.pre_activation;
    float* keep = pre.data ? pre.row(tile.row + i) + tile.col : nullptr;
    const auto finish = [&](int64_t j, auto read, auto write) HWY_ATTR {
      Wide<float> x = read(sums + j);
      if (before) x = read(before + j) + x;
      if (add_c) x = read(c + j) + x;
      if (bias) x = x + read(bias + j);
      if (keep) write(x, keep + j);
      write(activate<A>(x), c + j);
    };
    int64_t j = 0;
    for (; j + kWide <= tile.cols; j += kWide) {
      finish(
          j, [](const float* from) HWY_ATTR { return load(from); },
          [](const Wide<float>& x, float* to) HWY_ATTR { store(x, to); });
    }
    const int64_t rest = tile.cols - j;
    if (rest > 0) {
      finish(
          j, [rest](const float* from) HWY_ATTR { return load_first(from, rest); },
          [rest](const Wide<float>& x, float* to) HWY_ATTR { store_first(x, to, rest); });
    }
  }
}

// The sums of the last chain, on top of those before it (`kept`, or null): accumulates into C, adds bias,
// activates.
inline void finish_tile(const TileOutput& tile, const float* kept, int64_t kept_stride,
                        const FloatProduct& p) {
  switch (p.epilogue.activation) {
    case Activation::none:
      return finish_tile_with<Activation::none>(tile, kept, kept_stride, p);
    case Activation::relu:
      return finish_tile_with<Activation::relu>(tile, kept, kept_stride, p);
    case Activation::swish:
      return finish_tile_with<Activation::swish>(tile, kept, kept_stride, p);
    case Activation::gelu:
      return finish_tile_with<Activation::gelu>(tile, kept, kept_stride, p);
  }
}

// --- One block of C ----------------------------------------------------------------------------------------

inline void compute_block(const FloatProduct& p, const Block& block, TaskScratch& scratch) {
  const bool packed_a = p.ta == Transpose::yes;
  const bool plain_out = p.accumulate == Accumulate::no && !p.epilogue.bias &&
                         !p.epilogue.pre_activation.data && p.epilogue.activation == Activation::none;
  // Packing B pays from a few dozen rows on; a transposed or ragged B cannot be read in place.
  const bool plain_b =
      !p.panels && p.tb == Transpose::no && block.rows <= 48 && block.cols % kFloatLanes == 0 && p.k > 0;
  // Chains before the last one wait in C, or apart while C still holds what is to be added to.
  const bool apart = p.k > kChain && p.accumulate == Accumulate::yes;
  float* const kept = apart          ? scratch.sums.floats(block.rows * block.cols)
                      : p.k > kChain ? p.c.row(block.row) + block.col
                                     : nullptr;
  const int64_t kept_stride = apart ? block.cols : p.c.stride;
  HWY_ALIGN float tile_buffer[kTileRows * kPanelWidth * kPanelsTogether];

  int64_t k0 = 0;
  do {  // once for K = 0, which gives sums of zero
    const int64_t count = std::min(kChain, p.k - k0);
    const bool first = k0 == 0, last = k0 + count >= p.k;
    float* packed_b = nullptr;
    if (!p.panels && !plain_b) {
      packed_b = scratch.b.floats(round_up(block.cols, kFloatLanes) * std::max<int64_t>(count, 1));
      for (int64_t col = 0; col < block.cols && count > 0; col += kPanelWidth) {
        const int64_t cols = std::min(kPanelWidth, block.cols - col);
        pack_panel(p.b, p.tb, block.col + col, cols, k0, count, width_of_panel(cols), packed_b + col * count);
      }
    }
    for (int64_t m = 0; m < block.rows; m += kBlockRows) {
      const int64_t row = block.row + m;
      const RowTiles tiles(std::min(kBlockRows, block.rows - m));
      const float* packed_rows = nullptr;
      if (packed_a) {
        float* rows = scratch.a.floats(RowTiles(kBlockRows).packed(kBlockRows / kTileRows, kChain));
        pack_rows(p.a, row, tiles, k0, count, rows);
        packed_rows = rows;
      }
      int64_t cols = 0;
      for (int64_t col = 0; col < block.cols; col += cols) {
        cols = std::min(kPanelWidth, block.cols - col);
        const int64_t width = width_of_panel(cols);
        const bool together = !packed_a && !plain_b && tiles.count == 1 && tiles.begin(1) <= 2 &&
                              block.cols - col >= kPanelsTogether * kPanelWidth;
        TileInput in;
        in.a_stride = p.a.stride;
        in.k = count;
        if (p.panels) {
          in.b = p.panels + (block.col + col) * p.k + k0 * width;
          in.panel_stride = p.k * kPanelWidth;
        } else {
          in.b = plain_b ? p.b.row(k0) + block.col + col : packed_b + col * count;
          in.panel_stride = count * kPanelWidth;
        }
        in.b_stride = plain_b ? p.b.stride : width;
        if (together) cols = kPanelsTogether * kPanelWidth;
        const int64_t out_width = together ? cols : width;
        for (int64_t tile = 0; tile < tiles.count; ++tile) {
          const int64_t begin = tiles.begin(tile), rows = tiles.begin(tile + 1) - begin;
          in.a = packed_a ? packed_rows + tiles.packed(tile, count) : p.a.row(row + begin) + k0;
          float* const kept_at = kept ? kept + (m + begin) * kept_stride + col : nullptr;
          float* out = tile_buffer;
          int64_t out_stride = out_width;
          const bool direct = first && cols == out_width && (last ? plain_out : true);
          if (direct) {
            out = last ? p.c.row(row + begin) + block.col + col : kept_at;
            out_stride = last ? p.c.stride : kept_stride;
          }
          if (together) {
            (rows == 1 ? tile_sums<1, kPanelVectors, kPanelsTogether, false>
                       : tile_sums<2, kPanelVectors, kPanelsTogether, false>)(in, out, out_stride);
          } else {
            tile_function(packed_a, rows, width)(in, out, out_stride);
          }
          if (direct) continue;
          const TileOutput result{tile_buffer, out_width, row + begin, rows, block.col + col, cols};
          if (last) {
            finish_tile(result, first ? nullptr : kept_at, kept_stride, p);
          } else {
            keep_tile(result, kept_at, kept_stride, first);
          }
        }
      }
    }
    k0 += count;
  } while (k0 < p.k);
}

// Adds the sums of all chains, computed apart (`parts` of [M, N] dense floats), for rows [row, row + rows).
inline void finish_parts(const FloatProduct& p, float* parts, int64_t count, int64_t row, int64_t rows) {
  const int64_t n = p.c.cols, part_size = p.c.rows * n;
  float* const total = parts + row * n;
  for (int64_t part = 1; part + 1 < count; ++part) {
    keep_tile({parts + part * part_size + row * n, n, row, rows, 0, n}, total, n, false);
  }
  finish_tile({parts + (count - 1) * part_size + row * n, n, row, rows, 0, n}, count > 1 ? total : nullptr, n,
              p);
}

// Rows whose complete sums [rows, N] were computed elsewhere.
inline void finish_rows(const FloatProduct& p, const float* sums, int64_t row, int64_t rows) {
  finish_tile({sums, p.c.cols, row, rows, 0, p.c.cols}, nullptr, 0, p);
}

inline int64_t panel_width() {
  return kPanelWidth;
}

}  // namespace gloss::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
