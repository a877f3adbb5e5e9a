// One head of scaled dot-product attention in tiles of scores: what its forward and backward pass share.
// Per-target include, as wide-inl.h.
#include <algorithm>
#include <limits>

#include "gloss/kernels/attention.h"
#include "gloss/kernels/tile-inl.h"

#if defined(GLOSS_KERNELS_ATTENTION_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef GLOSS_KERNELS_ATTENTION_INL_H_
#undef GLOSS_KERNELS_ATTENTION_INL_H_
#else
#define GLOSS_KERNELS_ATTENTION_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace gloss::kernels::HWY_NAMESPACE {

constexpr int64_t kQueries = 32, kKeys = 128;  // of a tile

// One head of one sequence.
template <class T>
struct Head {
  Head(const Attention<T>& attention, int64_t sequence, int64_t which)
      : in(attention),
        first_query(in.query_offsets.begin(sequence)),
        n_q(in.query_offsets.length(sequence)),
        first_key(in.key_offsets.begin(sequence)),
        n_k(in.key_offsets.length(sequence)),
        head(which) {}
  const Attention<T>& in;
  const int64_t first_query, n_q, first_key, n_k, head;

  const T* query(int64_t i) const { return in.query.row(first_query + i) + head * in.d_k; }
  const T* key(int64_t j) const { return in.key.row(first_key + j) + head * in.d_k; }
  const T* value(int64_t j) const { return in.value.row(first_key + j) + head * in.d_v; }
  // How many of the keys [0, n_k) query i may look at.
  int64_t visible(int64_t i) const {
    return in.visible ? std::clamp<int64_t>(in.visible[first_query + i], 0, n_k) : n_k;
  }
  // What is added to the scores of query i, key by key; null: nothing.
  const T* bias(int64_t i) const {
    const Matrix<const T>& m = in.bias.by_distance;
    return m.data ? m.row(head) + (in.bias.zero - in.first_query - i) : nullptr;
  }
  // The high half names the row of weights, well mixed; the low half the key.
  uint64_t dropout_index(int64_t i, int64_t j) const {
    auto row = static_cast<uint32_t>((first_query + i) * in.heads + head) * 0x9E3779B1u;
    row = (row ^ (row >> 15)) * 0x85EBCA77u;
    return static_cast<uint64_t>(row ^ (row >> 13)) << 32 | static_cast<uint64_t>(j);
  }
};

// s [m, stride] = scaled and biased scores of queries i.. against the transposed keys of a tile; hidden ones
// -infinity.
template <class T>
HWY_INLINE void score_tile(const Head<T>& h, int64_t i, int64_t m, const T* transposed, int64_t j, int64_t n,
                           T* s, int64_t stride) {
  small_product(Strided<T>{h.query(i), h.in.query.stride, 1}, transposed, stride, s, stride, m, h.in.d_k,
                stride, false);
  for (int64_t r = 0; r < m; ++r) {
    T* row = s + r * stride;
    const int64_t live = std::clamp<int64_t>(h.visible(i + r) - j, 0, n);
    const T* bias = h.bias(i + r);
    for (int64_t c = 0; c < stride; c += kWide) {
      Wide<T> x = load(row + c) * set(h.in.scale);
      if (bias) x = x + load_chunk(bias + j + c, n - c);
      store(live - c >= kWide
                ? x
                : keep_first(x, std::max<int64_t>(live - c, 0), -std::numeric_limits<T>::infinity()),
            row + c);
    }
  }
}

// out [m rows] += p [m, stride] v, where row r adds only its first live(r) keys: a hidden value is never
// read.
template <class T, class Live>
HWY_INLINE void add_weighted_rows(const T* p, int64_t stride, int64_t m, const T* rows, int64_t row_stride,
                                  T* out, int64_t out_stride, int64_t width, Live live) {
  for (int64_t r = 0; r < m;) {
    int64_t same = 1;
    while (r + same < m && live(r + same) == live(r)) ++same;
    small_product(Strided<T>{p + r * stride, stride, 1}, rows, row_stride, out + r * out_stride, out_stride,
                  same, live(r), width, true);
    r += same;
  }
}

}  // namespace gloss::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
