// Parameters live in one flat block: the optimiser, averaging and checkpoints are then single passes.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gloss/base/random.h"
#include "gloss/kernels/gemm.h"
#include "gloss/tensor/tensor.h"

namespace gloss::autograd {

// How a parameter starts. The numbers are keyed by (seed, tensor name, index).
struct Init {
  enum class Kind { zeros, ones, normal, uniform, orthogonal };
  Kind kind = Kind::zeros;
  double scale = 0;  // standard deviation, half width, or length of a row
  static Init zeros() { return {}; }
  static Init ones() { return {Kind::ones, 0}; }
  static Init normal(double deviation) { return {Kind::normal, deviation}; }
  // Glorot and Bengio 2010, eq. 16: uniform in +- gain sqrt(6 / (fan in + fan out)) for a matrix [out, in].
  static Init xavier(int64_t out, int64_t in, double gain = 1);
  // Saxe et al. 2014: each square block of a matrix [k d, d] is a random rotation or reflection, times
  // `gain`. A recurrent state passes through without growing or fading.
  static Init orthogonal(double gain = 1) { return {Kind::orthogonal, gain}; }
};

// A tensor by name inside a parameter: rows [begin, begin + rows) of the matrix, or elements of a vector.
struct Part {
  std::string name;
  int64_t rows = 0;  // for a vector: elements
  Init init;
};

// A matrix [rows, cols] or a vector [n]. Parts that are multiplied with the same input (the queries, keys and
// values of self-attention) stand under each other in one parameter, so that one product makes them all.
template <class T>
struct Parameter {
  std::vector<Part> parts;
  Tensor<T> value;               // a shape without numbers where only `packed` holds them
  Tensor<T> gradient;            // empty unless training
  kernels::PackedMatrix packed;  // of `value`, when it only translates; float only
  // Where above 0, the rows from here on are a product of their own: `packed` holds those before, packed_rest
  // them.
  int64_t split = 0;
  kernels::PackedMatrix packed_rest;
  int64_t frozen_row = -1;  // a row that stays zero and gets no gradient: the start symbol's embedding
  bool multiplies =
      true;  // whether a matrix is the right side of products or a table of rows, and can be packed

  // Rows [begin, begin + out.rows()) of the matrix, from wherever they are held.
  void copy_rows(int64_t begin, const Tensor<T>& out) const;
};

// How a model's weights are held: as numbers to train, read and save, or laid out for products only, which is
// all that translating needs.
enum class Holding : uint8_t { numbers, packed };

// Where the numbers of named parts come from. Any number of threads may read at the same time.
template <class T>
class PartSource {
 public:
  virtual ~PartSource() = default;
  // Rows (of a vector: elements) of a named part, from `first` on; the whole part has the shape `whole`.
  struct Rows {
    const std::string& name;
    Shape whole;
    int64_t first;
  };
  virtual void read(const Rows& rows, kernels::Matrix<T> into) = 0;
  // Whether a matrix is stored as whole numbers of -127 to 127 and a scale for each row. Then it can be read
  // so, and read() gives the products.
  virtual bool is_int8(const std::string& /*name*/) const { return false; }
  virtual void read_int8(const Rows& /*rows*/, kernels::Matrix<int8_t> /*into*/,
                         std::span<float> /*scales*/) {}
};

// All parameters of a model in the order of their declaration.
template <class T>
class ParameterSet {
 public:
  // Declares a matrix (cols > 0) or a vector (cols == 0). The reference stays valid.
  Parameter<T>& declare(std::vector<Part> parts, int64_t cols);
  Parameter<T>& matrix(std::string name, int64_t rows, int64_t cols, Init init) {
    return declare({{std::move(name), rows, init}}, cols);
  }
  Parameter<T>& vector(std::string name, int64_t size, Init init) {
    return declare({{std::move(name), size, init}}, 0);
  }

  // Gives every parameter its place in one block of zeros. Declarations end here. With Holding::packed,
  // matrices that multiply get none: they wait for load().
  void allocate(Arena& arena, Holding holding = Holding::numbers);
  // Fills every named part from the source. With Holding::packed a matrix is packed while it is read, a
  // megabyte at a time, in the precision that is given.
  void load(ThreadPool& pool, PartSource<T>& source,
            kernels::Precision precision = kernels::Precision::float32);
  // Sets the initial values.
  void initialise(uint64_t seed);
  // Room for gradients (zeros), needed before training.
  void allocate_gradients(Arena& arena);
  // Packs every matrix that has its numbers for products, once, in float32. Values must not change
  // afterwards.
  void pack();

  std::span<T> values() const { return values_.values(); }
  std::span<T> gradients() const { return gradients_.values(); }
  int64_t count() const;  // numbers, without the padding between parameters

  // Calls visit(name, tensor) for every named part, in order of declaration; tensors share the block, or are
  // shapes without numbers.
  void each_part(const std::function<void(const std::string& name, const Tensor<T>& value)>& visit) const;
  // The same for the parts of one, and numbers of its shape.
  static void each_part_of(const Parameter<T>& parameter, const Tensor<T>& value,
                           const std::function<void(const std::string& name, const Tensor<T>& value)>& visit);
  std::deque<Parameter<T>>& all() { return parameters_; }
  const std::deque<Parameter<T>>& all() const { return parameters_; }

 private:
  std::deque<Parameter<T>> parameters_;  // a deque, because modules keep references
  std::deque<Shape> shapes_;
  Tensor<T> values_, gradients_;
};

}  // namespace gloss::autograd
