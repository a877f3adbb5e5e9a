#include "gloss/autograd/parameter.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <type_traits>

#include "gloss/kernels/scratch.h"

namespace gloss::autograd {

using kernels::Precision;

namespace {
// Parameters begin on cache lines, for aligned products.
constexpr int64_t round_up(int64_t n) {
  return (n + 15) / 16 * 16;
}

// The matrix in one piece, or in the two that its split asks for: pack(first row, rows).
template <class Pack>
void pack_parts(Parameter<float>& parameter, Pack pack) {
  const int64_t rows = parameter.value.rows(), split = parameter.split > 0 ? parameter.split : rows;
  parameter.packed = pack(0, split);
  if (parameter.split > 0) parameter.packed_rest = pack(split, rows - split);
}
void pack_one(Parameter<float>& parameter, const Tensor<float>& value, Precision precision) {
  pack_parts(parameter, [&](int64_t first, int64_t count) {
    return kernels::pack(kernels::matrix(value.slice_rows(first, count)), kernels::Transpose::yes, precision);
  });
}
void pack_one(Parameter<double>&, const Tensor<double>&, Precision) {
}  // gradient checks multiply plain numbers

// Calls read(Rows of a part, its first row among those that are asked for, how many) for rows [begin, begin +
// count) of a matrix.
template <class T, class Read>
void each_part_between(const Parameter<T>& parameter, int64_t begin, int64_t count, Read read) {
  int64_t row = 0;  // where the part begins
  for (const Part& part : parameter.parts) {
    const int64_t first = std::max(begin, row), end = std::min(begin + count, row + part.rows);
    if (first < end) {
      const Shape whole{part.rows, parameter.value.cols()};
      read(typename PartSource<T>::Rows{part.name, whole, first - row}, first - begin, end - first);
    }
    row += part.rows;
  }
}

void load_packed(Parameter<float>& parameter, PartSource<float>& source, Precision precision) {
  constexpr int64_t kNumbersAtATime = 1 << 18;
  const bool as_int8 =
      precision == Precision::int8 &&
      std::ranges::all_of(parameter.parts, [&](const Part& part) { return source.is_int8(part.name); });
  const int64_t cols = parameter.value.cols(), panel = kernels::Packer::kStep;
  const int64_t step = std::max<int64_t>(1, kNumbersAtATime / (cols * panel)) * panel;
  const kernels::Scratch<float> numbers(as_int8 ? 0 : step * cols), scales(step);
  const kernels::Scratch<int8_t> whole_numbers(as_int8 ? step * cols : 0);
  pack_parts(parameter, [&](int64_t begin, int64_t count) {
    kernels::Packer packer(count, cols, precision);
    for (int64_t first = 0; first < count; first += step) {
      const int64_t here = std::min(step, count - first);
      const kernels::Matrix<float> plain{numbers.data(), here, cols, cols};
      const kernels::Matrix<int8_t> rounded{whole_numbers.data(), here, cols, cols};
      const std::span<float> worth(scales.data(), static_cast<size_t>(here));
      each_part_between(parameter, begin + first, here, [&](const auto& rows, int64_t at, int64_t n) {
        if (as_int8) {
          source.read_int8(rows, kernels::rows(rounded, at, n),
                           worth.subspan(static_cast<size_t>(at), static_cast<size_t>(n)));
        } else {
          source.read(rows, kernels::rows(plain, at, n));
        }
      });
      if (as_int8) {
        packer.add_int8(first, rounded, worth);
      } else {
        packer.add(first, plain);
      }
    }
    return std::move(packer).finish();
  });
}
void load_packed(Parameter<double>&, PartSource<double>&, Precision) {
}  // gradient checks multiply plain numbers

double dot(const double* a, const double* b, int64_t n) {
  std::array<double, 8> sums{};  // apart, so that additions need not wait for each other
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    for (size_t j = 0; j < 8; ++j) sums[j] += a[i + static_cast<int64_t>(j)] * b[i + static_cast<int64_t>(j)];
  }
  for (; i < n; ++i) sums[0] += a[i] * b[i];
  return std::accumulate(sums.begin(), sums.end(), 0.0);
}

// [rows, n]: each n rows are orthonormal, and uniformly distributed among all such. They are normal numbers
// made so by Gram and Schmidt.
std::vector<double> orthonormal_rows(const RandomKey& key, int64_t rows, int64_t n) {
  std::vector<double> q(static_cast<size_t>(rows * n));
  for (size_t i = 0; i < q.size(); ++i) q[i] = key.normal(i);
  for (int64_t i = 0; i < rows; ++i) {
    double* row = q.data() + i * n;
    for (int64_t j = i / n * n; j < i; ++j) {
      const double* before = q.data() + j * n;
      const double share = dot(row, before, n);
      for (int64_t c = 0; c < n; ++c) row[c] -= share * before[c];
    }
    const double length = std::sqrt(dot(row, row, n));
    for (int64_t c = 0; c < n; ++c) row[c] /= length;
  }
  return q;
}
}  // namespace

Init Init::xavier(int64_t out, int64_t in, double gain) {
  return {Kind::uniform, gain * std::sqrt(6.0 / static_cast<double>(out + in))};
}

template <class T>
void Parameter<T>::copy_rows(int64_t begin, const Tensor<T>& out) const {
  if (value.has_numbers()) {
    std::ranges::copy(value.slice_rows(begin, out.rows()).values(), out.data());
    return;
  }
  if constexpr (std::is_same_v<T, float>) {
    for (int64_t i = 0; i < out.rows(); ++i) {
      const int64_t row = begin + i;
      const bool rest = split > 0 && row >= split;
      kernels::unpack_row(rest ? packed_rest : packed, rest ? row - split : row, out.row(i));
    }
  }
}

template <class T>
Parameter<T>& ParameterSet<T>::declare(std::vector<Part> parts, int64_t cols) {
  require(values_.empty(), "parameters are declared before they are allocated");
  int64_t rows = 0;
  for (const Part& part : parts) rows += part.rows;
  shapes_.push_back(cols > 0 ? Shape{rows, cols} : Shape{rows});
  parameters_.emplace_back();
  parameters_.back().parts = std::move(parts);
  return parameters_.back();
}

template <class T>
void ParameterSet<T>::allocate(Arena& arena, Holding holding) {
  require(holding == Holding::numbers || std::is_same_v<T, float>, "only float weights can be packed");
  const auto in_block = [&](size_t i) {
    return holding == Holding::numbers || shapes_[i].rank() == 1 || !parameters_[i].multiplies;
  };
  int64_t size = 0;
  for (size_t i = 0; i < parameters_.size(); ++i) size += in_block(i) ? round_up(shapes_[i].size()) : 0;
  values_ = Tensor<T>::zeros(arena, {size});
  const Tensor<T> column = values_.reshaped({size, 1});
  int64_t at = 0;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    if (!in_block(i)) {
      parameters_[i].value = Tensor<T>::shape_only(shapes_[i]);
      continue;
    }
    parameters_[i].value = column.slice_rows(at, shapes_[i].size()).reshaped(shapes_[i]);
    at += round_up(shapes_[i].size());
  }
}

template <class T>
void ParameterSet<T>::allocate_gradients(Arena& arena) {
  gradients_ = Tensor<T>::zeros(arena, {values_.size()});
  const Tensor<T> column = gradients_.reshaped({gradients_.size(), 1});
  for (Parameter<T>& parameter : parameters_) {
    require(parameter.value.has_numbers(), "packed weights cannot be trained: load them as numbers");
    const int64_t at = parameter.value.data() - values_.data();
    parameter.gradient = column.slice_rows(at, parameter.value.size()).reshaped(parameter.value.shape());
  }
}

template <class T>
void ParameterSet<T>::each_part_of(const Parameter<T>& parameter, const Tensor<T>& value,
                                   const std::function<void(const std::string&, const Tensor<T>&)>& visit) {
  const bool vector = value.shape().rank() == 1;
  const Tensor<T> rows = vector ? value.reshaped({value.size(), 1}) : value;
  int64_t begin = 0;
  for (const Part& part : parameter.parts) {
    const Tensor<T> slice = rows.slice_rows(begin, part.rows);
    visit(part.name, vector ? slice.reshaped({part.rows}) : slice);
    begin += part.rows;
  }
}

template <class T>
void ParameterSet<T>::each_part(
    const std::function<void(const std::string& name, const Tensor<T>& value)>& visit) const {
  for (const Parameter<T>& parameter : parameters_) each_part_of(parameter, parameter.value, visit);
}

template <class T>
void ParameterSet<T>::load(ThreadPool& pool, PartSource<T>& source, Precision precision) {
  const auto read = [&](const std::string& name, const Tensor<T>& into) {
    source.read({name, into.shape(), 0}, kernels::matrix(into));
  };
  pool.parallel_for(static_cast<int64_t>(parameters_.size()), [&](int64_t i) {
    Parameter<T>& parameter = parameters_[static_cast<size_t>(i)];
    if (parameter.value.has_numbers()) return each_part_of(parameter, parameter.value, read);
    load_packed(parameter, source, precision);
  });
}

template <class T>
void ParameterSet<T>::initialise(uint64_t seed) {
  for (const Parameter<T>& parameter : parameters_) {
    int64_t begin = 0;
    const int64_t cols = parameter.value.shape().rank() == 1 ? 1 : parameter.value.cols();
    for (const Part& part : parameter.parts) {
      const RandomKey key = RandomKey(seed).with(part.name);
      T* x = parameter.value.data() + begin * cols;
      const std::vector<double> q = part.init.kind == Init::Kind::orthogonal
                                        ? orthonormal_rows(key, part.rows, cols)
                                        : std::vector<double>();
      for (int64_t i = 0; i < part.rows * cols; ++i) {
        const auto index = static_cast<uint64_t>(i);
        switch (part.init.kind) {
          case Init::Kind::zeros:
            x[i] = 0;
            break;
          case Init::Kind::ones:
            x[i] = 1;
            break;
          case Init::Kind::normal:
            x[i] = static_cast<T>(part.init.scale * key.normal(index));
            break;
          case Init::Kind::uniform:
            x[i] = static_cast<T>(part.init.scale * (2 * key.uniform(index) - 1));
            break;
          case Init::Kind::orthogonal:
            x[i] = static_cast<T>(part.init.scale * q[index]);
            break;
        }
      }
      begin += part.rows;
    }
    if (parameter.frozen_row >= 0) {
      std::fill_n(parameter.value.row(parameter.frozen_row), parameter.value.cols(), T{0});
    }
  }
}

template <class T>
void ParameterSet<T>::pack() {
  for (Parameter<T>& parameter : parameters_) {
    const bool matrix = parameter.value.shape().rank() == 2 && parameter.multiplies;
    if (matrix && parameter.value.has_numbers()) pack_one(parameter, parameter.value, Precision::float32);
  }
}

template <class T>
int64_t ParameterSet<T>::count() const {
  int64_t n = 0;
  for (const Shape& shape : shapes_) n += shape.size();
  return n;
}

template struct Parameter<float>;
template struct Parameter<double>;
template class ParameterSet<float>;
template class ParameterSet<double>;

}  // namespace gloss::autograd
