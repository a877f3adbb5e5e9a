#include "gloss/nn/gru.h"

#include <type_traits>

#include "gloss/kernels/elementwise.h"
#include "gloss/kernels/gemm.h"
#include "gloss/kernels/layer_norm.h"
#include "gloss/kernels/scratch.h"
#include "gloss/nn/gru_transition.h"
#include "gloss/nn/linear.h"

namespace gloss::nn {

using autograd::Init;
using autograd::ParameterSet;
using autograd::Slot;
using autograd::Tape;
using autograd::Var;
using kernels::columns;
using kernels::matrix;
using kernels::Scratch;

namespace {

// Layer norm of columns [0, 2 d_h) and of the others, each with its part of gain and bias [3 d_h].
template <class T>
Var<T> normalise_gates(Tape<T>& tape, const Var<T>& x, const Var<T>& gain, const Var<T>& bias,
                       const GruShape& shape) {
  const Tensor<T> y = tape.allocate(x.shape());
  GateStatistics<T> statistics;
  for (size_t i = 0; i < 2; ++i) {
    const int64_t first = i == 0 ? 0 : 2 * shape.d_h, count = i == 0 ? 2 * shape.d_h : shape.d_h;
    kernels::AddNorm<T> in;
    in.x = columns(matrix(x.value()), first, count);
    in.gamma = gain.value().data() + first;
    in.beta = bias.value().data() + first;
    in.epsilon = static_cast<T>(shape.epsilon);
    statistics[i] = tape.allocate({x.rows(), 2});
    kernels::add_norm_forward(tape.pool(), in, {}, columns(matrix(y), first, count), statistics[i].data());
  }
  return tape.record(y, {&x, &gain, &bias}, [&] {
    return [x, gain, bias, statistics](Tape<T>& t, const Tensor<T>& dy) {
      const Slot<T> dx = t.slot(x);
      gate_norm_backward<T>(t, gain, bias, x.value(), statistics, matrix(dy), dx.matrix(), dx.accumulate);
    };
  });
}

template <class T>
Var<T> use(Tape<T>& tape, const autograd::Parameter<T>* parameter) {
  return parameter ? tape.use(*parameter) : Var<T>();
}

}  // namespace

template <class T>
typename Gru<T>::Sums Gru<T>::declare(ParameterSet<T>& parameters, const std::string& prefix,
                                      const char* name, const GruShape& shape, int64_t d, Init init,
                                      int64_t split) {
  const int64_t rows = 3 * shape.d_h;
  Sums sums;
  autograd::Parameter<T>& weight = parameters.matrix(prefix + "weight_" + name, rows, d, init);
  weight.split = split;
  sums.weight = &weight;
  sums.bias = &parameters.vector(prefix + "bias_" + name, rows, Init::zeros());
  if (shape.layer_norm) {
    const std::string norm = prefix + "norm_" + name;
    sums.norm_gain = &parameters.vector(norm + ".weight", rows, Init::ones());
    sums.norm_bias = &parameters.vector(norm + ".bias", rows, Init::zeros());
  }
  return sums;
}

template <class T>
Gru<T>::Gru(ParameterSet<T>& parameters, const std::string& prefix, const GruShape& shape) : shape_(shape) {
  require(shape.d_in > 0 && shape.d_h > 0, "a recurrent layer needs d_in and d_h above 0, not {} and {}",
          shape.d_in, shape.d_h);
  // Two products, where the reset gate stands between them.
  const int64_t split = shape.reset == ResetGate::before ? 2 * shape.d_h : 0;
  input_ = declare(parameters, prefix, "ih", shape, shape.d_in, Init::xavier(shape.d_h, shape.d_in), 0);
  recurrent_ = declare(parameters, prefix, "hh", shape, shape.d_h, Init::orthogonal(), split);
}

template <class T>
Var<T> Gru<T>::input_gates(Tape<T>& tape, const Var<T>& x) const {
  require(x.cols() == shape_.d_in, "a recurrent layer of {} inputs got rows of {} numbers", shape_.d_in,
          x.cols());
  const Var<T> sums = linear(tape, x, tape.use(*input_.weight), tape.use(*input_.bias));
  if (!shape_.layer_norm) return sums;
  return normalise_gates(tape, sums, tape.use(*input_.norm_gain), tape.use(*input_.norm_bias), shape_);
}

template <class T>
GruWeights<T> Gru<T>::use_weights(Tape<T>& tape) const {
  GruWeights<T> weights;
  weights.shape = shape_;
  weights.precision = tape.precision();
  weights.weight = tape.use(*recurrent_.weight);
  weights.bias = tape.use(*recurrent_.bias);
  weights.norm_gain = use(tape, recurrent_.norm_gain);
  weights.norm_bias = use(tape, recurrent_.norm_bias);
  if constexpr (std::is_same_v<T, float>) {
    weights.forward = {recurrent_.weight->packed, recurrent_.weight->packed_rest};
  }
  return weights;
}

template <class T>
GruWeights<T> Gru<T>::weights(Tape<T>& tape) const {
  GruWeights<T> weights = use_weights(tape);
  if constexpr (std::is_same_v<T, float>) {
    const int64_t rows = 3 * shape_.d_h,
                  split = recurrent_.weight->split > 0 ? recurrent_.weight->split : rows;
    for (size_t i = 0; i < 2; ++i) {
      const int64_t first = i == 0 ? 0 : split, count = i == 0 ? split : rows - split;
      if (count == 0) continue;
      const auto part = matrix(weights.weight.value().slice_rows(first, count));
      if (!weights.forward[i])
        weights.forward[i] = kernels::pack(part, kernels::Transpose::yes, weights.precision);
      if (tape.training())
        weights.backward[i] = kernels::pack(part, kernels::Transpose::no, weights.precision);
    }
  }
  return weights;
}

template <class T>
Var<T> Gru<T>::step(Tape<T>& tape, const Var<T>& gates, const Var<T>& h_prev) const {
  return step(tape, gates, h_prev, use_weights(tape));
}

template <class T>
Var<T> Gru<T>::step(Tape<T>& tape, const Var<T>& gates, const Var<T>& h_prev,
                    const GruWeights<T>& weights) const {
  const int64_t m = gates.rows(), d = shape_.d_h;
  require(gates.cols() == 3 * d && h_prev.shape() == Shape{m, d},
          "a step of a recurrent layer with {} units got gates of shape {} and states of shape {}: it takes "
          "[n, {}] and [n, {}]",
          d, gates.shape().text(), h_prev.shape().text(), 3 * d, d);
  const bool before = shape_.reset == ResetGate::before;
  const bool recorded = gates.wants_gradient() || h_prev.wants_gradient() || weights.wants_gradient();
  const Tensor<T> h = tape.allocate({m, d});
  const GruKept<T> kept = recorded ? GruKept<T>(tape, shape_, m) : GruKept<T>();
  {
    const Scratch<T> sums(3 * m * d), reset(before ? m * d : 0);
    kernels::GruStep<T> step = make_step(weights, kept, m);
    step.input = matrix(gates.value());
    step.sums = {sums.data(), m, 3 * d, 3 * d};
    step.previous = matrix(h_prev.value());
    step.reset = {reset.data(), m, d, d};
    step.states = matrix(h);
    transition(tape.pool(), weights, step, From::states);
  }
  return tape.record(
      h, {&gates, &h_prev, &weights.weight, &weights.bias, &weights.norm_gain, &weights.norm_bias}, [&] {
        return [weights, kept, gates = gates.place(), h_prev](Tape<T>& t, const Tensor<T>& dh) {
          const int64_t rows = dh.rows(), width = dh.cols();
          const bool is_before = weights.shape.reset == ResetGate::before;
          const Slot<T> dgates = t.slot(gates);
          kernels::GruStepGradient<T> step = make_step_gradient(weights, kept, rows);
          step.previous = matrix(h_prev.value());
          step.dinput = dgates.matrix();
          step.accumulate = dgates.accumulate;
          // The upstream gradient is ours alone: it becomes that of h_prev in place.
          step.dstate = matrix(dh);
          // The norm needs the gradient of its result once more, for its own gradients.
          const Scratch<T> dsums(weights.shape.layer_norm ? 3 * rows * width : 0),
              dreset(is_before ? rows * width : 0);
          step.dsums = matrix(kept.gates);
          if (weights.shape.layer_norm) step.dsums.data = dsums.data();
          step.dreset = {dreset.data(), rows, width, width};
          const bool on = h_prev.wants_gradient();
          transition_backward(t.pool(), weights, step, on ? From::states : From::constants);
          if (const Slot<T> dprevious = t.slot(h_prev)) {
            kernels::add<T>(t.pool(), matrix(dh), dprevious.matrix(), dprevious.accumulate);
          }
          weight_gradients<T>(t, weights, kept, matrix(h_prev.value()));
        };
      });
}

template class Gru<float>;
template class Gru<double>;

}  // namespace gloss::nn
