#include "gloss/autograd/tape.h"

#include <utility>

#include "gloss/kernels/elementwise.h"

namespace gloss::autograd {

template <class T>
Var<T> Tape<T>::leaf(Tensor<T> value) {
  if (!training()) return Var<T>(std::move(value));
  Var<T> var = push(std::move(value), nullptr);
  nodes_.back().is_leaf = true;
  return var;
}

template <class T>
int32_t Tape<T>::parameter_node(const Tensor<T>& value, const Tensor<T>& gradient) {
  if (!training() || !gradient) return -1;
  Node node;
  node.shape = value.shape();
  node.gradient = gradient;
  node.written = true;
  node.is_leaf = true;
  nodes_.push_back(std::move(node));
  return static_cast<int32_t>(nodes_.size()) - 1;
}

template <class T>
Var<T> Tape<T>::use(const Parameter<T>& parameter) {
  Var<T> var(parameter.value);
  var.parameter_ = &parameter;
  var.node_ = parameter_node(parameter.value, parameter.gradient);
  return var;
}

template <class T>
Var<T> Tape<T>::use_rows(const Parameter<T>& parameter, int64_t begin, int64_t count) {
  const bool vector = parameter.value.shape().rank() == 1;
  const auto part = [&](const Tensor<T>& whole) {
    if (vector) return whole.reshaped({whole.size(), 1}).slice_rows(begin, count).reshaped({count});
    return whole.slice_rows(begin, count);
  };
  if (!parameter.value.has_numbers()) {  // rows of a packed matrix, which cannot be multiplied by themselves
    const Tensor<T> rows = allocate({count, parameter.value.cols()});
    parameter.copy_rows(begin, rows);
    return Var<T>(rows);
  }
  Var<T> var(part(parameter.value));
  if (parameter.gradient) var.node_ = parameter_node(var.value_, part(parameter.gradient));
  return var;
}

template <class T>
kernels::Dropout Tape<T>::dropout(double p) {
  if (!training() || p == 0) return {};
  return kernels::Dropout(p, key_.with(dropouts_++));
}

template <class T>
bool Tape<T>::wanted(std::initializer_list<const Var<T>*> inputs) const {
  for (const Var<T>* input : inputs) {
    if (input->wants_gradient()) return true;
  }
  return false;
}

template <class T>
Var<T> Tape<T>::push(Tensor<T> value, Backward backward) {
  Node node;
  node.shape = value.shape();
  node.backward = std::move(backward);
  Var<T> var(std::move(value));
  var.node_ = static_cast<int32_t>(nodes_.size());
  nodes_.push_back(std::move(node));
  return var;
}

template <class T>
std::pair<Var<T>, Var<T>> Tape<T>::push2(Tensor<T> first, Tensor<T> second, Backward2 backward) {
  // The walk meets the first result last, when the gradients of both are complete.
  Var<T> a = push(std::move(first), nullptr);
  nodes_.back().backward2 = std::move(backward);
  nodes_.back().companion = static_cast<int32_t>(nodes_.size());
  Var<T> b = push(std::move(second), nullptr);
  return {a, b};
}

template <class T>
Slot<T> Tape<T>::slot(const Var<T>& input) {
  if (!input.wants_gradient()) return {};
  Node& node = nodes_[static_cast<size_t>(input.node_)];
  if (node.gradient.empty()) node.gradient = allocate(node.shape);
  return {node.gradient,
          std::exchange(node.written, true) ? kernels::Accumulate::yes : kernels::Accumulate::no};
}

template <class T>
void Tape<T>::backward(std::vector<std::pair<Var<T>, Tensor<T>>> results) {
  require(
      !std::exchange(walked_, true),
      "this tape was walked back already and its operations have let go of what they kept: give all results "
      "to one call, or record the pass again on a new tape");
  for (auto& [result, upstream] : results) {
    require(result.shape() == upstream.shape(), "the upstream gradient has shape {}, the result {}",
            upstream.shape().text(), result.shape().text());
    const Slot<T> slot = this->slot(result);
    if (slot) kernels::add<T>(pool(), kernels::matrix(upstream), slot.matrix(), slot.accumulate);
  }
  results.clear();
  for (size_t i = nodes_.size(); i-- > 0;) {
    Node& node = nodes_[i];
    if (node.is_leaf) continue;
    if (node.backward2) {
      Node& second = nodes_[static_cast<size_t>(node.companion)];
      const Tensor<T> first_up = std::exchange(node.gradient, {}),
                      second_up = std::exchange(second.gradient, {});
      const Backward2 run = std::exchange(node.backward2, nullptr);
      if (first_up || second_up) run(*this, first_up, second_up);
    } else if (node.backward) {
      const Tensor<T> up = std::exchange(node.gradient, {});
      const Backward run = std::exchange(node.backward, nullptr);
      if (up) run(*this, up);
    }
  }
}

template <class T>
Tensor<T> Tape<T>::gradient(const Var<T>& leaf) const {
  require(leaf.wants_gradient(), "the gradient of a constant was asked for");
  const Node& node = nodes_[static_cast<size_t>(leaf.node_)];
  return node.written ? node.gradient : Tensor<T>::zeros(context_.arena, node.shape);
}

template class Tape<float>;
template class Tape<double>;

}  // namespace gloss::autograd
