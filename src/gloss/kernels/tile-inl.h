// Small products inside a tile: every element is one chain of multiply-adds in the order of k, so its bits do
// not depend on the tile's other rows. Per-target include, as wide-inl.h.
#include "gloss/kernels/wide-inl.h"

#if defined(GLOSS_KERNELS_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef GLOSS_KERNELS_TILE_INL_H_
#undef GLOSS_KERNELS_TILE_INL_H_
#else
#define GLOSS_KERNELS_TILE_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace gloss::kernels::HWY_NAMESPACE {

// Columns of a tile that holds n: whole chunks.
constexpr int64_t round_up(int64_t n) {
  return (n + kWide - 1) / kWide * kWide;
}

// A strided operand: element (i, k) stands at data + i * row + k * col.
template <class T>
struct Strided {
  const T* data;
  int64_t row, col;
};

// R rows times C chunks of sixteen columns: c (+)= a b, with b's rows dense and `n` live columns.
template <int R, int C, class T>
HWY_INLINE void product_block(Strided<T> a, const T* b, int64_t b_stride, T* c, int64_t c_stride,
                              int64_t depth, int64_t n, bool add) {
  Wide<T> s[R][C];
  for (int r = 0; r < R; ++r) {
    for (int x = 0; x < C; ++x) s[r][x] = zero<T>();
  }
  const bool whole = n >= C * kWide;
  for (int64_t k = 0; k < depth; ++k) {
    Wide<T> row[C];
    for (int x = 0; x < C; ++x) {
      const T* p = b + k * b_stride + x * kWide;
      row[x] = whole ? load(p) : load_chunk(p, n - x * kWide);
    }
    for (int r = 0; r < R; ++r) {
      const Wide<T> factor = set(a.data[r * a.row + k * a.col]);
      for (int x = 0; x < C; ++x) s[r][x] = mul_add(factor, row[x], s[r][x]);
    }
  }
  for (int r = 0; r < R; ++r) {
    for (int x = 0; x < C; ++x) {
      T* p = c + r * c_stride + x * kWide;
      const int64_t rest = n - x * kWide;
      store_chunk(add ? load_chunk(p, rest) + s[r][x] : s[r][x], p, rest);
    }
  }
}

template <int C, class T>
HWY_INLINE void product_columns(Strided<T> a, const T* b, int64_t b_stride, T* c, int64_t c_stride, int64_t m,
                                int64_t depth, int64_t n, bool add) {
  constexpr int kRows = Wide<T>::kVectors == 1 ? 6 : 4;
  int64_t i = 0;
  for (; i + kRows <= m; i += kRows) {
    product_block<kRows, C>({a.data + i * a.row, a.row, a.col}, b, b_stride, c + i * c_stride, c_stride,
                            depth, n, add);
  }
  for (; i + 2 <= m; i += 2) {
    product_block<2, C>({a.data + i * a.row, a.row, a.col}, b, b_stride, c + i * c_stride, c_stride, depth, n,
                        add);
  }
  for (; i < m; ++i) {
    product_block<1, C>({a.data + i * a.row, a.row, a.col}, b, b_stride, c + i * c_stride, c_stride, depth, n,
                        add);
  }
}

// c [m, n] (+)= a [m, depth] b [depth, n]
template <class T>
HWY_INLINE void small_product(Strided<T> a, const T* b, int64_t b_stride, T* c, int64_t c_stride, int64_t m,
                              int64_t depth, int64_t n, bool add) {
  int64_t j = 0;
  if constexpr (Wide<T>::kVectors == 1) {
    for (; j + 2 * kWide <= n; j += 2 * kWide) {
      product_columns<2>(a, b + j, b_stride, c + j, c_stride, m, depth, 2 * kWide, add);
    }
  }
  for (; j < n; j += kWide) {
    product_columns<1>(a, b + j, b_stride, c + j, c_stride, m, depth, n - j < kWide ? n - j : kWide, add);
  }
}

// to [cols, stride] = the transpose of from [rows, cols]; columns rows .. stride of `to` become 0.
template <class T>
HWY_INLINE void transpose(const T* from, int64_t from_stride, int64_t rows, int64_t cols, T* to,
                          int64_t stride) {
  for (int64_t c = 0; c < cols; ++c) {
    for (int64_t r = 0; r < rows; ++r) to[c * stride + r] = from[r * from_stride + c];
    for (int64_t r = rows; r < stride; ++r) to[c * stride + r] = 0;
  }
}

}  // namespace gloss::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
