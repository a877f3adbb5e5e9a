// The float product on one target's vectors: the register tile and the way out. Per-target
// include, as wide-inl.h.
#include <hwy/cache_control.h>

#include <algorithm>
#include <array>
#include <utility>

#include "gloss/kernels/activation-inl.h"
#include "gloss/kernels/gemm_pack-inl.h"
#include "gloss/kernels/gemm_task.h"
#include "gloss/kernels/scratch.h"
#include "gloss/kernels/wide-inl.h"

#if defined(GLOSS_KERNELS_GEMM_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef GLOSS_KERNELS_GEMM_INL_H_
#undef GLOSS_KERNELS_GEMM_INL_H_
#else
#define GLOSS_KERNELS_GEMM_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace gloss::kernels::HWY_NAMESPACE {
namespace {

// --- The register tile ------------------------------------------------------------

// With one or two rows a narrow panel has too few chains to hide the latency of an addition.
constexpr int kPanelsTogether = HWY_TARGET == HWY_AVX3 ? 2 : 4;

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
void keep_tile(const TileOutput& tile, float* kept, int64_t kept_stride, bool first) {
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
void finish_tile(const TileOutput& tile, const float* kept, int64_t kept_stride, const FloatProduct& p) {
  switch (p.epilogue.activation) {
    case Activation::none:
      return finish_tile_with<Activation::none>(tile, kept, kept_stride, p);
    case Activation::relu:
      return finish_tile_with<Activation::relu>(tile, kept, kept_stride, p);
    case Activation::swish:
      return finish_tile_with<Activation::swish>(tile, kept, kept_stride, p);
    case Activation::gelu:
      return finish_tile_with<Activation::gelu>(tile, kept, kept_stride, p);
    case Activation::tanh:
      return finish_tile_with<Activation::tanh>(tile, kept, kept_stride, p);
  }
}

// --- One block of C ----------------------------------------------------------------------------------------

// op(B) for one chain, as the register tile reads it: packed before, packed just now, or in place. The panel
// that begins at column `col` of the block is at data + col * column + k * width.
struct RightSide {
  const float* data;
  int64_t column;  // floats a column of all panels before
  int64_t k;       // rows of the panel before the chain
  int64_t stride;  // between k rows; 0: the width of the panel
};

struct Chain {
  int64_t k0, count;
  bool first, last;
  RightSide b;
  float* kept;  // sums of the chains before the last one, for the block; null if there is one chain only
  int64_t kept_stride;
};

bool writes_plain_sums(const FloatProduct& p) {
  return p.accumulate == Accumulate::no && !p.epilogue.bias && !p.epilogue.pre_activation.data &&
         p.epilogue.activation == Activation::none;
}

// One panel (or kPanelsTogether of them: cols > kPanelWidth) for all tiles of a block of rows. `m` and `col`
// count from the block's corner; packed_rows is null unless A is transposed.
void panel_of_rows(const FloatProduct& p, const Block& block, const Chain& chain, int64_t m,
                   const RowTiles& tiles, const float* packed_rows, int64_t col, int64_t cols) {
  const bool together = cols > kPanelWidth;
  const int64_t width = together ? kPanelWidth : width_of_panel(cols), out_width = together ? cols : width;
  TileInput in;
  in.a_stride = p.a.stride;
  in.b = chain.b.data + col * chain.b.column + chain.b.k * width;
  in.b_stride = chain.b.stride ? chain.b.stride : width;
  in.panel_stride = kPanelWidth * chain.b.column;
  in.k = chain.count;
  // Where nothing else happens to whole vectors, the tile writes them where they belong.
  const bool direct = chain.first && cols == out_width && (!chain.last || writes_plain_sums(p));
  HWY_ALIGN float buffer[kTileRows * kPanelWidth * kPanelsTogether];
  for (int64_t tile = 0; tile < tiles.count; ++tile) {
    const int64_t begin = tiles.begin(tile), rows = tiles.begin(tile + 1) - begin;
    const int64_t row = block.row + m + begin;
    in.a = packed_rows ? packed_rows + tiles.packed(tile, chain.count) : p.a.row(row) + chain.k0;
    float* const kept = chain.kept ? chain.kept + (m + begin) * chain.kept_stride + col : nullptr;
    float* out = buffer;
    int64_t out_stride = out_width;
    if (direct) {
      out = chain.last ? p.c.row(row) + block.col + col : kept;
      out_stride = chain.last ? p.c.stride : chain.kept_stride;
    }
    TileFunction sums = tile_function(packed_rows != nullptr, rows, width);
    if (together) {
      sums = rows == 1 ? &tile_sums<1, kPanelVectors, kPanelsTogether, false>
                       : &tile_sums<2, kPanelVectors, kPanelsTogether, false>;
    }
    sums(in, out, out_stride);
    if (direct) continue;
    const TileOutput result{buffer, out_width, row, rows, block.col + col, cols};
    if (chain.last) {
      finish_tile(result, chain.first ? nullptr : kept, chain.kept_stride, p);
    } else {
      keep_tile(result, kept, chain.kept_stride, chain.first);
    }
  }
}

// One task: a block of C, chain after chain, in blocks of rows that stay in the second-level cache.
void compute_block(const FloatProduct& p, const Block& block) {
  const bool packed_a = p.ta == Transpose::yes;
  // Packing B pays from a few dozen rows on; a transposed or ragged B cannot be read in place.
  const bool in_place =
      !p.panels && p.tb == Transpose::no && block.rows <= 48 && block.cols % kFloatLanes == 0 && p.k > 0;
  // Chains before the last one wait in C, or apart while C still holds what is to be added to.
  const bool apart = p.k > kChain && p.accumulate == Accumulate::yes;
  const Scratch<float> kept_apart(apart ? block.rows * block.cols : 0);
  const Scratch<float> panels(
      p.panels || in_place ? 0 : round_up(block.cols, kFloatLanes) * std::min(p.k, kChain));
  const Scratch<float> packed_rows(packed_a ? RowTiles(kBlockRows).packed(kBlockRows / kTileRows, kChain)
                                            : 0);

  Chain chain;
  chain.kept = apart ? kept_apart.data() : p.k > kChain ? p.c.row(block.row) + block.col : nullptr;
  chain.kept_stride = apart ? block.cols : p.c.stride;
  chain.k0 = 0;
  do {  // once for K = 0, which gives sums of zero
    chain.count = std::min(kChain, p.k - chain.k0);
    chain.first = chain.k0 == 0;
    chain.last = chain.k0 + chain.count >= p.k;
    if (p.panels) {
      chain.b = {p.panels + block.col * p.k, p.k, chain.k0, 0};
    } else if (in_place) {
      chain.b = {p.b.row(chain.k0) + block.col, 1, 0, p.b.stride};
    } else {
      chain.b = {panels.data(), chain.count, 0, 0};
      for (int64_t col = 0; col < block.cols && chain.count > 0; col += kPanelWidth) {
        const int64_t cols = std::min(kPanelWidth, block.cols - col);
        pack_panel(p.b, p.tb, block.col + col, cols, chain.k0, chain.count, width_of_panel(cols),
                   panels.data() + col * chain.count);
      }
    }
    for (int64_t m = 0; m < block.rows; m += kBlockRows) {
      const RowTiles tiles(std::min(kBlockRows, block.rows - m));
      if (packed_a) pack_rows(p.a, block.row + m, tiles, chain.k0, chain.count, packed_rows.data());
      const bool few = !packed_a && !in_place && tiles.count == 1 && tiles.begin(1) <= 2;
      int64_t cols = 0;
      for (int64_t col = 0; col < block.cols; col += cols) {
        const int64_t left = block.cols - col, most = few ? kPanelsTogether * kPanelWidth : kPanelWidth;
        cols = left >= most ? most : std::min(left, kPanelWidth);
        panel_of_rows(p, block, chain, m, tiles, packed_a ? packed_rows.data() : nullptr, col, cols);
      }
    }
    chain.k0 += chain.count;
  } while (chain.k0 < p.k);
}

// Adds the sums of all chains, computed apart (`parts` of [M, N] dense floats), for rows [row, row + rows).
void finish_parts(const FloatProduct& p, float* parts, int64_t count, int64_t row, int64_t rows) {
  const int64_t n = p.c.cols, part_size = p.c.rows * n;
  float* const total = parts + row * n;
  for (int64_t part = 1; part + 1 < count; ++part) {
    keep_tile({parts + part * part_size + row * n, n, row, rows, 0, n}, total, n, false);
  }
  finish_tile({parts + (count - 1) * part_size + row * n, n, row, rows, 0, n}, count > 1 ? total : nullptr, n,
              p);
}

// Rows whose complete sums [rows, N] were computed elsewhere.
void finish_rows(const FloatProduct& p, const float* sums, int64_t row, int64_t rows) {
  finish_tile({sums, p.c.cols, row, rows, 0, p.c.cols}, nullptr, 0, p);
}

}  // namespace
}  // namespace gloss::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
