#include <fmt/ranges.h>

#include "gloss/tensor/tensor.h"

namespace gloss {

Shape::Shape(std::initializer_list<int64_t> dims)
    : Shape(std::span<const int64_t>(dims.begin(), dims.size())) {}

Shape::Shape(std::span<const int64_t> dims) : rank_(static_cast<int>(dims.size())) {
  require(!dims.empty() && dims.size() <= kMaxRank, "a tensor has 1 to {} dimensions, not {}", kMaxRank,
          dims.size());
  int64_t size = 1;
  for (size_t i = 0; i < dims.size(); ++i) {
    require(dims[i] >= 0 && (dims[i] == 0 || size <= (int64_t{1} << 44) / dims[i]),
            "a tensor of shape [{}] is beyond any machine: the sizes asked for are wrong",
            fmt::join(dims, ", "));
    dims_[i] = dims[i];
    size *= dims[i];
  }
}

int64_t Shape::size() const {
  return rank_ ? rows() * cols() : 0;
}

int64_t Shape::rows() const {
  int64_t n = rank_ ? 1 : 0;
  for (int i = 0; i + 1 < rank_; ++i) n *= (*this)[i];
  return n;
}

std::string Shape::text() const {
  return fmt::format("[{}]", fmt::join(dims_.begin(), dims_.begin() + rank_, ", "));
}

}  // namespace gloss
