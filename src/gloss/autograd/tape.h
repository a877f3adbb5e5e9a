// Reverse-mode differentiation: operations note on a tape how to pass gradients back, or, when the tape does
// not record, leave no trace. Training, scoring and translating run the same forward code.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <utility>
#include <vector>

#include "gloss/autograd/parameter.h"
#include "gloss/base/random.h"
#include "gloss/kernels/dropout.h"
#include "gloss/kernels/matrix.h"
#include "gloss/tensor/context.h"
#include "gloss/tensor/tensor.h"

namespace gloss::autograd {

template <class T>
class Tape;

// A value and, if somebody wants its gradient, its place on the tape.
template <class T>
class Var {
 public:
  Var() = default;
  // A constant: no gradient.
  explicit Var(Tensor<T> value) : value_(std::move(value)) {}

  const Tensor<T>& value() const { return value_; }
  const Shape& shape() const { return value_.shape(); }
  int64_t rows() const { return value_.rows(); }
  int64_t cols() const { return value_.cols(); }
  bool wants_gradient() const { return node_ >= 0; }
  explicit operator bool() const { return !value_.empty(); }
  // The place on the tape without the value: what a backward function keeps of an input it does not read.
  Var place() const {
    Var var;
    var.node_ = node_;
    return var;
  }
  bool same_place(const Var& other) const { return node_ >= 0 && node_ == other.node_; }
  // The parameter this is the value of, or null.
  const Parameter<T>* parameter() const { return parameter_; }

 private:
  friend class Tape<T>;
  Tensor<T> value_;
  int32_t node_ = -1;
  const Parameter<T>* parameter_ = nullptr;
};

// Where an operation writes the gradient of one of its inputs: over what is there, or added to it.
template <class T>
struct Slot {
  Tensor<T> tensor;  // empty: nobody wants it
  kernels::Accumulate accumulate = kernels::Accumulate::no;
  explicit operator bool() const { return !tensor.empty(); }
  kernels::Matrix<T> matrix() const {
    return tensor.empty() ? kernels::Matrix<T>{} : kernels::matrix(tensor);
  }
};

template <class T>
class Tape {
 public:
  enum class Mode { translate, train };
  // In `train` mode operations are recorded and dropout is active, with masks keyed by `key`.
  // Products of plain weights, forward and backward, round their factors to `precision`; int8 serves packed
  // weights only.
  explicit Tape(Context& context, Mode mode = Mode::translate, RandomKey key = RandomKey(0),
                kernels::Precision precision = kernels::Precision::float32)
      : context_(context), mode_(mode), key_(key), precision_(precision) {}

  Context& context() const { return context_; }
  ThreadPool& pool() const { return context_.pool; }
  bool training() const { return mode_ == Mode::train; }
  kernels::Precision precision() const { return precision_; }
  Tensor<T> allocate(Shape shape) const { return Tensor<T>(context_.arena, shape); }

  // A leaf whose gradient is asked for with `gradient` after backward; a constant unless training.
  Var<T> leaf(Tensor<T> value);
  // A parameter; its gradient is added to parameter.gradient.
  Var<T> use(const Parameter<T>& parameter);
  // Rows [begin, begin + count) of a parameter: the part that stands there.
  Var<T> use_rows(const Parameter<T>& parameter, int64_t begin, int64_t count);
  // The next dropout of this pass. Inactive when p is 0 or the tape does not train.
  kernels::Dropout dropout(double p);

  // Wraps an operation's result. Unless some input wants a gradient it is a constant, and `backward` is
  // dropped. Otherwise backward(tape, upstream) runs once the result's gradient is complete; it captures what
  // it keeps.
  using Backward = std::function<void(Tape&, const Tensor<T>& upstream)>;
  template <class F>
  Var<T> record(Tensor<T> value, std::initializer_list<const Var<T>*> inputs, F&& make_backward) {
    if (!wanted(inputs)) return Var<T>(std::move(value));
    return push(std::move(value), make_backward());
  }
  // The same for an operation of two results; the gradient of one that was not used is an empty tensor.
  using Backward2 = std::function<void(Tape&, const Tensor<T>& first, const Tensor<T>& second)>;
  template <class F>
  std::pair<Var<T>, Var<T>> record2(Tensor<T> first, Tensor<T> second,
                                    std::initializer_list<const Var<T>*> inputs, F&& make_backward) {
    if (!wanted(inputs)) return {Var<T>(std::move(first)), Var<T>(std::move(second))};
    return push2(std::move(first), std::move(second), make_backward());
  }

  // Inside a backward function: where the gradient of an input goes.
  Slot<T> slot(const Var<T>& input);

  // Starts from d loss / d result = upstream and walks the tape once, from the end; what operations kept is
  // freed as it is used, so that a second walk throws Error. The loop is not recursive: depth costs no stack.
  void backward(const Var<T>& result, const Tensor<T>& upstream) { backward({{result, upstream}}); }
  void backward(std::vector<std::pair<Var<T>, Tensor<T>>> results);
  // After backward: the gradient of a leaf (zeros if nothing reached it).
  Tensor<T> gradient(const Var<T>& leaf) const;

 private:
  struct Node {
    Shape shape;
    Tensor<T> gradient;
    bool written = false;  // gradient holds numbers already
    bool is_leaf = false;
    int32_t companion = -1;  // the second result of the same operation
    Backward backward;
    Backward2 backward2;
  };
  int32_t parameter_node(const Tensor<T>& value, const Tensor<T>& gradient);
  bool wanted(std::initializer_list<const Var<T>*> inputs) const;
  Var<T> push(Tensor<T> value, Backward backward);
  std::pair<Var<T>, Var<T>> push2(Tensor<T> first, Tensor<T> second, Backward2 backward);

  Context& context_;
  Mode mode_;
  RandomKey key_;
  kernels::Precision precision_;
  uint64_t dropouts_ = 0;
  std::vector<Node> nodes_;
  bool walked_ = false;
};

}  // namespace gloss::autograd
