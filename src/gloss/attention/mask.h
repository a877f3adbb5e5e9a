// Masks by name. Which keys a query may look at is always a number of leading keys: a length, a causal
// border, or both. A boolean mask exists only at the border of the library and names its meaning.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "gloss/tensor/ragged.h"
#include "gloss/tensor/tensor.h"

namespace gloss::attention {

enum class Causal : bool { no, yes };

// What a query may look at within its own sequence; past the sequence's length there is nothing.
struct Mask {
  Causal causal = Causal::no;
  // Query i stands at position query_offset + i of the keys: a cached step of one query behind n keys has
  // offset n - 1. For causal attention alone, which needs it when a sequence has not as many queries as keys.
  std::optional<int64_t> query_offset;
};

// How many leading keys each query sees (causal: query_offset + i + 1, at most all of them); empty when every
// query sees every key of its sequence. Causal without an offset where numbers of queries and keys differ is
// an error, and so is an offset without Causal::yes.
std::vector<int64_t> visible_keys(const Mask& mask, const Offsets& queries, const Offsets& keys);

// The meaning of `true` in a boolean mask: look at it, or do not.
enum class BooleanMask : bool { hide, keep };

// Padded sequences [batch, length] made ragged: hidden positions are taken out, wherever they stand (padding
// on the right, on the left, holes), so that nothing behind the border ever reads them.
class Padding {
 public:
  // `mask` has batch * length values and the named meaning.
  Padding(std::span<const uint8_t> mask, int64_t batch, int64_t length, BooleanMask meaning);
  // Right padding by lengths.
  Padding(std::span<const int64_t> lengths, int64_t length);

  const Offsets& offsets() const { return offsets_; }
  // Kept rows of padded [batch, length, d] or [batch * length, d]: [offsets().total(), d].
  template <class T>
  Tensor<T> compact(Arena& arena, const Tensor<T>& padded) const;
  // The inverse; what was hidden becomes zeros. [batch, length, d]
  template <class T>
  Tensor<T> expand(Arena& arena, const Tensor<T>& rows) const;
  // As gloss::attention::visible_keys, but positions count as they stood before hidden keys were taken out: a
  // query at padded position p sees the kept keys among the first p + 1. `queries`: the padding of the
  // queries, whose padded length plus the offset places them.
  std::vector<int64_t> visible_keys(const Mask& mask, const Padding& queries) const;

 private:
  int64_t batch_ = 0, length_ = 0;
  std::vector<int64_t> position_;  // of each kept row: its place in [batch * length]
  Offsets offsets_;
};

}  // namespace gloss::attention
