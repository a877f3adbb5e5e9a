// Batches without padding: rows of all sequences one after another, and where each sequence begins.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "gloss/base/error.h"

namespace gloss {

// Where the sequences of a batch begin: n + 1 ascending offsets, the first 0. Copies share the numbers.
class Offsets {
 public:
  Offsets() : Offsets(std::vector<int64_t>{0}) {}
  explicit Offsets(std::vector<int64_t> offsets)
      : offsets_(std::make_shared<const std::vector<int64_t>>(std::move(offsets))) {
    require(
        !offsets_->empty() && offsets_->front() == 0 && std::is_sorted(offsets_->begin(), offsets_->end()),
        "offsets of a ragged batch start at 0 and never fall");
  }
  static Offsets of_lengths(std::span<const int64_t> lengths) {
    std::vector<int64_t> offsets{0};
    offsets.reserve(lengths.size() + 1);
    for (const int64_t length : lengths) offsets.push_back(offsets.back() + length);
    return Offsets(std::move(offsets));
  }

  int64_t count() const { return static_cast<int64_t>(offsets_->size()) - 1; }  // sequences
  int64_t total() const { return offsets_->back(); }                            // rows
  int64_t begin(int64_t i) const { return (*offsets_)[static_cast<size_t>(i)]; }
  int64_t end(int64_t i) const { return (*offsets_)[static_cast<size_t>(i) + 1]; }
  int64_t length(int64_t i) const { return end(i) - begin(i); }
  int64_t longest() const {
    int64_t n = 0;
    for (int64_t i = 0; i < count(); ++i) n = std::max(n, length(i));
    return n;
  }
  std::span<const int64_t> values() const { return *offsets_; }
  bool operator==(const Offsets& other) const { return *offsets_ == *other.offsets_; }

 private:
  std::shared_ptr<const std::vector<int64_t>> offsets_;
};

// Rows of several sequences, [offsets.total(), ...], and their offsets.
template <class Rows>
struct Ragged {
  Rows rows;
  Offsets offsets;
};

// Token ids of several sequences.
using Tokens = Ragged<std::vector<int32_t>>;

// A row of a target and a row of its source that belong together; both count through all sequences.
struct RowLink {
  int64_t target = 0, source = 0;
  bool operator==(const RowLink&) const = default;
};

}  // namespace gloss
