#include "gloss/attention/mask.h"

#include <algorithm>

namespace gloss::attention {
namespace {

// Whether every query sees every key of its sequence.
bool hides_nothing(const Mask& mask) {
  require(mask.causal == Causal::yes || !mask.query_offset.has_value(),
          "a query offset of {} hides nothing without Causal::yes: ask for that, or leave the offset out",
          mask.query_offset.value_or(0));
  return mask.causal == Causal::no;
}

// The position of query 0 among the keys.
int64_t offset_of(const Mask& mask, int64_t n_q, int64_t n_k) {
  require(mask.query_offset.has_value() || n_q == n_k,
          "causal attention of {} queries over {} keys needs a query offset: the position of the first query "
          "among the keys",
          n_q, n_k);
  const int64_t offset = mask.query_offset.value_or(0);
  require(offset >= 0, "a query offset is a position from 0 up, not {}", offset);
  return offset;
}

}  // namespace

std::vector<int64_t> visible_keys(const Mask& mask, const Offsets& queries, const Offsets& keys) {
  require(queries.count() == keys.count(), "{} sequences of queries look at {} sequences of keys",
          queries.count(), keys.count());
  if (hides_nothing(mask)) return {};
  std::vector<int64_t> visible;
  visible.reserve(static_cast<size_t>(queries.total()));
  for (int64_t s = 0; s < queries.count(); ++s) {
    const int64_t offset = std::min(offset_of(mask, queries.length(s), keys.length(s)), keys.length(s));
    for (int64_t i = 0; i < queries.length(s); ++i)
      visible.push_back(std::min(keys.length(s), offset + i + 1));
  }
  return visible;
}

Padding::Padding(std::span<const uint8_t> mask, int64_t batch, int64_t length, BooleanMask meaning)
    : batch_(batch), length_(length) {
  require(static_cast<int64_t>(mask.size()) == batch * length,
          "a boolean mask of {} values does not fit {} sequences of {} positions", mask.size(), batch,
          length);
  std::vector<int64_t> offsets{0};
  for (int64_t b = 0; b < batch; ++b) {
    for (int64_t i = 0; i < length; ++i) {
      const bool set = mask[static_cast<size_t>(b * length + i)] != 0;
      if (set == (meaning == BooleanMask::keep)) position_.push_back(b * length + i);
    }
    offsets.push_back(static_cast<int64_t>(position_.size()));
  }
  offsets_ = Offsets(std::move(offsets));
}

Padding::Padding(std::span<const int64_t> lengths, int64_t length)
    : batch_(static_cast<int64_t>(lengths.size())), length_(length), offsets_(Offsets::of_lengths(lengths)) {
  for (int64_t b = 0; b < batch_; ++b) {
    const int64_t n = lengths[static_cast<size_t>(b)];
    require(n >= 0 && n <= length, "a sequence of {} positions does not fit into {}", n, length);
    for (int64_t i = 0; i < n; ++i) position_.push_back(b * length + i);
  }
}

template <class T>
Tensor<T> Padding::compact(Arena& arena, const Tensor<T>& padded) const {
  require(padded.rows() == batch_ * length_, "a padded tensor of shape {} does not have {} x {} rows",
          padded.shape().text(), batch_, length_);
  const Tensor<T> rows(arena, {offsets_.total(), padded.cols()});
  for (size_t i = 0; i < position_.size(); ++i) {
    std::copy_n(padded.row(position_[i]), padded.cols(), rows.row(static_cast<int64_t>(i)));
  }
  return rows;
}

template <class T>
Tensor<T> Padding::expand(Arena& arena, const Tensor<T>& rows) const {
  require(rows.rows() == offsets_.total(), "{} rows for {} kept positions", rows.rows(), offsets_.total());
  const Tensor<T> padded = Tensor<T>::zeros(arena, {batch_, length_, rows.cols()});
  for (size_t i = 0; i < position_.size(); ++i) {
    std::copy_n(rows.row(static_cast<int64_t>(i)), rows.cols(), padded.row(position_[i]));
  }
  return padded;
}

std::vector<int64_t> Padding::visible_keys(const Mask& mask, const Padding& queries) const {
  require(queries.batch_ == batch_, "{} sequences of queries look at {} sequences of keys", queries.batch_,
          batch_);
  if (hides_nothing(mask)) return {};
  const int64_t offset = std::min(offset_of(mask, queries.length_, length_), length_);
  std::vector<int64_t> visible;
  visible.reserve(queries.position_.size());
  for (int64_t s = 0; s < batch_; ++s) {
    const auto first = position_.begin() + offsets_.begin(s), last = position_.begin() + offsets_.end(s);
    for (int64_t i = queries.offsets_.begin(s); i < queries.offsets_.end(s); ++i) {
      const int64_t place = queries.position_[static_cast<size_t>(i)] - s * queries.length_ + offset;
      visible.push_back(std::upper_bound(first, last, s * length_ + place) - first);
    }
  }
  return visible;
}

template Tensor<float> Padding::compact(Arena&, const Tensor<float>&) const;
template Tensor<double> Padding::compact(Arena&, const Tensor<double>&) const;
template Tensor<float> Padding::expand(Arena&, const Tensor<float>&) const;
template Tensor<double> Padding::expand(Arena&, const Tensor<double>&) const;

}  // namespace gloss::attention
