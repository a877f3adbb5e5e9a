// The block loop of the matrix product: chains of k, blocks of rows, panels, register tiles. Per-target
// include, as wide-inl.h.
#include <algorithm>
#include <array>
#include <type_traits>

#include "gloss/base/error.h"
#include "gloss/kernels/gemm_float-inl.h"
#include "gloss/kernels/gemm_int8-inl.h"
#include "gloss/kernels/gemm_rounded-inl.h"
#include "gloss/kernels/scratch.h"

#if defined(GLOSS_KERNELS_GEMM_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef GLOSS_KERNELS_GEMM_INL_H_
#undef GLOSS_KERNELS_GEMM_INL_H_
#else
#define GLOSS_KERNELS_GEMM_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace gloss::kernels::HWY_NAMESPACE {
namespace {

// op(B) for one chain, as the register tile reads it: packed before, packed just now, or in place. The panel
// that begins at column `col` of the block is at data + col * column + step * (its bytes a step).
struct RightSide {
  const std::byte* data;
  int64_t column;  // bytes a column of all panels before
  int64_t step;    // steps of the panel before the chain
  int64_t stride;  // bytes between steps; 0: those of the panel
};

struct Chain {
  int64_t step, steps;  // where it begins, and how long it is
  bool first, last;
  RightSide b;
  float* kept;  // sums of the chains before the last one, for the block; null if there is one chain only
  int64_t kept_stride;
};

// One panel (or kPanelsTogether of them: cols > kPanelWidth) for all tiles of a block of rows. `m` and `col`
// count from the block's corner.
template <class Numbers>
void panel_of_rows(const Product& p, const Block& block, const Chain& chain, int64_t m, const RowTiles& tiles,
                   const LeftSide& left, int64_t col, int64_t cols) {
  using Sum = typename Numbers::Sum;
  const bool together = cols > kPanelWidth;
  const int64_t width = together ? kPanelWidth : width_of_panel(cols), out_width = together ? cols : width;
  const int64_t step_bytes = width * Numbers::kColumnBytes;
  TileInput in;
  in.a_stride = left.stride;
  in.b = chain.b.data + col * chain.b.column + chain.b.step * step_bytes;
  in.b_stride = chain.b.stride ? chain.b.stride : step_bytes;
  in.panel_stride = kPanelWidth * chain.b.column;
  in.steps = chain.steps;
  if (p.starts) in.start = p.starts + block.col + col;
  // Where nothing else happens to whole vectors, the tile writes them where they belong.
  const bool direct =
      std::is_same_v<Sum, float> && chain.first && cols == out_width && (!chain.last || writes_plain_sums(p));
  // C that the second-level cache cannot hold is fetched while the tile is computed.
  const bool far = chain.last && p.c.rows * p.c.stride > 1 << 17;
  HWY_ALIGN Sum buffer[kTileRows * kPanelWidth * kPanelsTogether];
  for (int64_t tile = 0; tile < tiles.count; ++tile) {
    const int64_t begin = tiles.begin(tile), rows = tiles.begin(tile + 1) - begin;
    const TilePlace place{block.row + m + begin, rows, block.col + col, cols};
    if (!left.across) {
      in.a = left.data + begin * left.stride;
    } else if (left.stride > 0) {
      in.a = left.data + begin * kWordBytes;
    } else {
      in.a = left.data + tiles.packed(tile, chain.steps) * kWordBytes;
      in.a_stride = rows * kWordBytes;
    }
    float* const kept = chain.kept ? chain.kept + (m + begin) * chain.kept_stride + col : nullptr;
    if (far) {
      for (int64_t i = 0; i < rows; ++i) {
        const float* c = p.c.row(place.row + i) + place.col;
        for (int64_t j = 0; j < cols; j += 16) hwy::Prefetch(c + j);
      }
    }
    const TileFunction<Sum> make_sums = Numbers::tile(left.across, rows, width, together);
    if constexpr (std::is_same_v<Sum, float>) {
      if (direct) {
        make_sums(in, chain.last ? p.c.row(place.row) + place.col : kept,
                  chain.last ? p.c.stride : chain.kept_stride);
        continue;
      }
    }
    make_sums(in, buffer, out_width);
    const auto sums = Numbers::sums(p, left, begin, buffer, out_width, place);
    if (chain.last) {
      finish_tile(place, sums, chain.first ? nullptr : kept, chain.kept_stride, p);
    } else if constexpr (std::is_same_v<Sum, float>) {
      keep_tile(place, sums, kept, chain.kept_stride, chain.first);
    }
  }
}

// op(B) for one chain; `panels` has room for it if it must be packed.
template <class Numbers>
RightSide right_side(const Product& p, const Block& block, const Chain& chain, bool in_place,
                     std::byte* panels) {
  constexpr int64_t kBytes = Numbers::kColumnBytes;
  if constexpr (Numbers::kPacks) {
    const int64_t k0 = chain.step * Numbers::kPerStep,
                  count = std::min(chain.steps * Numbers::kPerStep, p.k - k0);
    if (in_place) return {bytes(p.b.row(k0) + block.col), kBytes, 0, p.b.stride * kBytes};
    if (!p.panels) {
      for (int64_t col = 0; col < block.cols && count > 0; col += kPanelWidth) {
        Numbers::pack_b(p, block.col + col, std::min(kPanelWidth, block.cols - col), k0, count,
                        panels + col * chain.steps * kBytes);
      }
      return {panels, chain.steps * kBytes, 0, 0};
    }
  }
  const int64_t column = ceil_div(p.k, Numbers::kPerStep) * kBytes;
  return {p.panels + block.col * column, column, chain.step, 0};
}

// Rows `row` and following of op(A) for one chain; `words` and `scales` have room for them if they must be
// packed or rounded.
template <class Numbers>
LeftSide left_side(const Product& p, const Chain& chain, int64_t row, const RowTiles& tiles, std::byte* words,
                   float* scales) {
  const int64_t k0 = chain.step * Numbers::kPerStep,
                count = std::min(chain.steps * Numbers::kPerStep, p.k - k0);
  if constexpr (Numbers::kPacks) {
    if (p.ta == Transpose::yes) {
      if (Numbers::reads_a_in_place(p))
        return {bytes(p.a.row(k0) + row), p.a.stride * kWordBytes, true, nullptr};
      Numbers::pack_a(p, row, tiles, k0, count, words);
      return {words, 0, true, nullptr};
    }
  }
  if constexpr (Numbers::kRounds) {
    if (p.words) {
      const float* row_scales = p.row_scales ? p.row_scales + row : nullptr;
      return {p.words + row * p.words_stride + chain.step * kWordBytes, p.words_stride, false, row_scales};
    }
    const int64_t stride = words_stride(chain.steps);
    for (int64_t i = 0; i < tiles.begin(tiles.count); ++i) {
      scales[i] = Numbers::round_row(p.a.row(row + i) + k0, count, words + i * stride);
    }
    return {words, stride, false, scales};
  }
  return {bytes(p.a.row(row) + k0), p.a.stride * kWordBytes, false, nullptr};
}

// One task: a block of C, chain after chain, in blocks of rows that stay in the second-level cache.
template <class Numbers>
void compute_block_in(const Product& p, const Block& block) {
  const int64_t all_steps = ceil_div(p.k, Numbers::kPerStep),
                most_steps = std::min(all_steps, Numbers::kMostSteps);
  const bool across = Numbers::kPacks && p.ta == Transpose::yes;
  const bool in_place = Numbers::reads_b_in_place(p, block);
  const int64_t most_rows = Numbers::block_rows(most_steps);
  // Chains before the last one wait in C, or apart while C still holds what is to be added to.
  const bool chains = all_steps > most_steps, apart = chains && p.accumulate == Accumulate::yes;
  const Scratch<float> kept_apart(apart ? block.rows * block.cols : 0);
  const Scratch<std::byte> panels(
      p.panels || in_place ? 0 : round_up(block.cols, kFloatLanes) * most_steps * Numbers::kColumnBytes);
  int64_t words_bytes = 0;
  if (across && !Numbers::reads_a_in_place(p)) {
    words_bytes = kWordBytes * RowTiles(most_rows).packed(most_rows / kTileRows, most_steps);
  } else if (Numbers::kRounds && !p.words) {
    words_bytes = std::min(most_rows, block.rows) * words_stride(most_steps);
  }
  const Scratch<std::byte> words(words_bytes);
  std::array<float, kBlockRows> scales;

  Chain chain;
  chain.kept = apart ? kept_apart.data() : chains ? p.c.row(block.row) + block.col : nullptr;
  chain.kept_stride = apart ? block.cols : p.c.stride;
  chain.step = 0;
  do {  // once for K = 0, which gives sums of zero
    chain.steps = std::min(most_steps, all_steps - chain.step);
    chain.first = chain.step == 0;
    chain.last = chain.step + chain.steps >= all_steps;
    chain.b = right_side<Numbers>(p, block, chain, in_place, panels.data());
    for (int64_t m = 0; m < block.rows; m += most_rows) {
      const RowTiles tiles(std::min(most_rows, block.rows - m));
      const LeftSide left = left_side<Numbers>(p, chain, block.row + m, tiles, words.data(), scales.data());
      const bool few = !across && !in_place && tiles.count == 1 && tiles.begin(1) <= 2;
      int64_t cols = 0;
      for (int64_t col = 0; col < block.cols; col += cols) {
        const int64_t rest = block.cols - col, most = few ? kPanelsTogether * kPanelWidth : kPanelWidth;
        cols = rest >= most ? most : std::min(rest, kPanelWidth);
        panel_of_rows<Numbers>(p, block, chain, m, tiles, left, col, cols);
      }
    }
    chain.step += chain.steps;
  } while (chain.step < all_steps);
}

// Calls run with the Numbers of a product.
template <class Run>
void with_numbers(const Product& p, Run run) {
  switch (p.precision) {
    case Precision::float32:
      return run(FloatNumbers());
    case Precision::bfloat16:
#if HWY_TARGET == HWY_AVX3
      return run(Bf16Numbers());
#else
      break;
#endif
    case Precision::int8:
#if HWY_TARGET == HWY_AVX3
      if (p.starts) return run(VnniNumbers());
#endif
      return run(PairNumbers());
  }
  fail("{} has no kernel for products in {}", hwy::TargetName(HWY_TARGET), precision_name(p.precision));
}

void compute_block(const Product& p, const Block& block) {
  with_numbers(p, [&](auto numbers) { compute_block_in<decltype(numbers)>(p, block); });
}

// Rows [row, row + rows) of A, which is not transposed, as words of the precision and their scales.
void round_rows(const Product& p, int64_t row, int64_t rows, std::byte* words, int64_t stride,
                float* scales) {
  with_numbers(p, [&](auto numbers) {
    if constexpr (decltype(numbers)::kRounds) {
      for (int64_t i = row; i < row + rows; ++i) {
        scales[i] = numbers.round_row(p.a.row(i), p.k, words + i * stride);
      }
    }
  });
}
// Bytes of packed B a column.
int64_t column_bytes(const Product& p) {
  int64_t bytes = 0;
  with_numbers(p, [&](auto numbers) { bytes = ceil_div(p.k, numbers.kPerStep) * numbers.kColumnBytes; });
  return bytes;
}
// How many k are in a word.
int64_t k_per_word(const Product& p) {
  int64_t k = 1;
  with_numbers(p, [&](auto numbers) { k = numbers.kPerStep; });
  return k;
}

}  // namespace
}  // namespace gloss::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
