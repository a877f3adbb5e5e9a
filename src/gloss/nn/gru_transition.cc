#include "gloss/nn/gru_transition.h"

#include <algorithm>
#include <type_traits>

#include "gloss/kernels/elementwise.h"
#include "gloss/kernels/gemm.h"
#include "gloss/kernels/layer_norm.h"

namespace gloss::nn {

using autograd::Slot;
using autograd::Tape;
using autograd::Var;
using kernels::Accumulate;
using kernels::columns;
using kernels::GruStep;
using kernels::GruStepGradient;
using kernels::Matrix;
using kernels::matrix;
using kernels::Transpose;

namespace {

// Rows of W_hh that are one product: all of them, or with reset before those of r and z, and those of n.
struct Part {
  size_t index;  // in the laid out weights
  int64_t first, count;
};
Part all_rows(const GruShape& shape) {
  return {0, 0, 3 * shape.d_h};
}
Part gate_rows(const GruShape& shape) {
  return {0, 0, 2 * shape.d_h};
}
Part candidate_rows(const GruShape& shape) {
  return {1, 2 * shape.d_h, shape.d_h};
}

template <class T>
Matrix<const T> rows_of(const GruWeights<T>& weights, const Part& part) {
  return matrix(weights.weight.value().slice_rows(part.first, part.count));
}

// The part's columns of sums = h W^T + b
template <class T>
void multiply(ThreadPool& pool, const GruWeights<T>& weights, const Part& part, Matrix<const T> h,
              Matrix<T> sums, From from) {
  const Matrix<T> to = columns(sums, part.first, part.count);
  kernels::Epilogue<T> epilogue;
  epilogue.bias = weights.bias.value().data() + part.first;
  if (from == From::zeros) {
    // 0 + b, as the product has it: b may be a negative zero.
    for (int64_t i = 0; i < to.rows; ++i) {
      std::transform(epilogue.bias, epilogue.bias + part.count, to.row(i), [](T b) { return T{0} + b; });
    }
    return;
  }
  if constexpr (std::is_same_v<T, float>) {
    if (const kernels::PackedMatrix& packed = weights.forward[part.index]) {
      return kernels::gemm_packed(pool, h, packed, to, Accumulate::no, epilogue);
    }
  }
  kernels::gemm(pool, h, Transpose::no, rows_of(weights, part), Transpose::yes, to, Accumulate::no, epilogue,
                weights.precision);
}

// dh (+)= the part's columns of dsums, times W
template <class T>
void multiply_backward(ThreadPool& pool, const GruWeights<T>& weights, const Part& part,
                       Matrix<const T> dsums, Matrix<T> dh, Accumulate accumulate) {
  const Matrix<const T> from = columns(dsums, part.first, part.count);
  if constexpr (std::is_same_v<T, float>) {
    if (const kernels::PackedMatrix& packed = weights.backward[part.index]) {
      return kernels::gemm_packed(pool, from, packed, dh, accumulate);
    }
  }
  kernels::gemm(pool, from, Transpose::no, rows_of(weights, part), Transpose::no, dh, accumulate, {},
                weights.precision);
}

template <class T>
kernels::GruNorm<T> norm_of(const GruWeights<T>& weights, const GruKept<T>& kept) {
  kernels::GruNorm<T> norm;
  if (!weights.shape.layer_norm) return norm;
  norm.gain = weights.norm_gain.value().data();
  norm.bias = weights.norm_bias.value().data();
  norm.epsilon = static_cast<T>(weights.shape.epsilon);
  if (kept.sums) {
    norm.sums = matrix(kept.sums);
    norm.gate_statistics = kept.statistics[0].data();
    norm.candidate_statistics = kept.statistics[1].data();
  }
  return norm;
}

template <class T>
T* zeroed_data(const Slot<T>& slot) {
  if (slot && slot.accumulate == Accumulate::no) slot.tensor.fill(0);
  return slot ? slot.tensor.data() : nullptr;
}

}  // namespace

template <class T>
void gate_norm_backward(Tape<T>& tape, const Var<T>& gain, const Var<T>& bias, const Tensor<T>& sums,
                        const GateStatistics<T>& statistics, Matrix<const T> dy, Matrix<T> dx,
                        Accumulate accumulate) {
  T *dgain = zeroed_data(tape.slot(gain)), *dbias = zeroed_data(tape.slot(bias));
  const int64_t d = sums.cols() / 3;
  for (size_t i = 0; i < 2; ++i) {
    const int64_t first = i == 0 ? 0 : 2 * d, count = i == 0 ? 2 * d : d;
    kernels::AddNorm<T> in;
    in.x = columns(matrix(sums), first, count);
    in.gamma = gain.value().data() + first;
    kernels::AddNormGradient<T> gradient;
    gradient.dy = columns(dy, first, count);
    gradient.sum = in.x;
    gradient.statistics = statistics[i].data();
    if (dx.data) gradient.dx = columns(dx, first, count);
    gradient.accumulate_x = accumulate;
    gradient.dgamma = dgain ? dgain + first : nullptr;
    gradient.dbeta = dbias ? dbias + first : nullptr;
    kernels::add_norm_backward(tape.pool(), in, gradient);
  }
}

template <class T>
GruKept<T>::GruKept(const Tape<T>& tape, const GruShape& shape, int64_t tokens, Tensor<T> free_gates)
    : gates(free_gates ? std::move(free_gates) : tape.allocate({tokens, 3 * shape.d_h})),
      product(tape.allocate({tokens, shape.d_h})) {
  if (!shape.layer_norm) return;
  sums = tape.allocate({tokens, 3 * shape.d_h});
  for (Tensor<T>& of_part : statistics) of_part = tape.allocate({tokens, 2});
}

template <class T>
GruStep<T> make_step(const GruWeights<T>& weights, const GruKept<T>& kept, int64_t rows) {
  GruStep<T> step;
  step.rows = rows;
  step.d_h = weights.shape.d_h;
  if (kept.gates) {
    step.gates = matrix(kept.gates);
    step.product = matrix(kept.product);
  }
  step.norm = norm_of(weights, kept);
  return step;
}

template <class T>
GruStepGradient<T> make_step_gradient(const GruWeights<T>& weights, const GruKept<T>& kept, int64_t rows) {
  GruStepGradient<T> step;
  step.rows = rows;
  step.d_h = weights.shape.d_h;
  step.gates = matrix(kept.gates);
  step.product = matrix(kept.product);
  step.norm = norm_of(weights, kept);
  return step;
}

template <class T>
void transition(ThreadPool& pool, const GruWeights<T>& weights, const GruStep<T>& step, From from) {
  const GruShape& shape = weights.shape;
  if (shape.reset == ResetGate::after) {
    multiply(pool, weights, all_rows(shape), step.previous, step.sums, from);
    kernels::gru_forward(pool, step);
    return;
  }
  multiply(pool, weights, gate_rows(shape), step.previous, step.sums, from);
  kernels::gru_reset(pool, step);
  multiply<T>(pool, weights, candidate_rows(shape), step.reset, step.sums, from);
  kernels::gru_candidate(pool, step);
}

template <class T>
void transition_backward(ThreadPool& pool, const GruWeights<T>& weights, const GruStepGradient<T>& step,
                         From from) {
  const GruShape& shape = weights.shape;
  const Matrix<const T> dsums = step.dsums;
  if (shape.reset == ResetGate::after) {
    kernels::gru_backward(pool, step);
    if (from != From::states) return;
    multiply_backward(pool, weights, all_rows(shape), dsums, step.dstate, Accumulate::yes);
    return;
  }
  kernels::gru_candidate_backward(pool, step);
  if (from == From::zeros) {
    // r h was zero, whatever r was.
    for (int64_t i = 0; i < step.rows; ++i) std::fill_n(step.dreset.row(i), shape.d_h, T{0});
  } else {
    multiply_backward(pool, weights, candidate_rows(shape), dsums, step.dreset, Accumulate::no);
  }
  kernels::gru_reset_backward(pool, step);
  if (from != From::states) return;
  multiply_backward(pool, weights, gate_rows(shape), dsums, step.dstate, Accumulate::yes);
}

template <class T>
void weight_gradients(Tape<T>& tape, const GruWeights<T>& weights, const GruKept<T>& kept,
                      Matrix<const T> previous) {
  const GruShape& shape = weights.shape;
  ThreadPool& pool = tape.pool();
  if (shape.layer_norm) {
    // The steps differentiated the norm of their rows already, from the same mean and deviation, to pass ds
    // on to h. Gain and bias need dy of all tokens as well, summed in an order that threads do not change: so
    // dy is what kept.gates holds, and ds is made once more. To keep both would take [tokens, 3 d_h] more and
    // save one of two passes over the row, for the price of storing it.
    const Matrix<T> gradient = matrix(kept.gates);
    gate_norm_backward<T>(tape, weights.norm_gain, weights.norm_bias, kept.sums, kept.statistics, gradient,
                          gradient, Accumulate::no);
  }
  const Matrix<T> dsums = matrix(kept.gates);
  if (T* dbias = zeroed_data(tape.slot(weights.bias))) kernels::add_column_sums<T>(pool, dsums, dbias);
  const Slot<T> dweight = tape.slot(weights.weight);
  if (!dweight) return;
  // dW = ds^T h for the rows of a part; those of n saw r h where the reset came before.
  const auto multiply_rows = [&](const Part& part, Matrix<const T> h) {
    kernels::gemm(pool, columns(dsums, part.first, part.count), Transpose::yes, h, Transpose::no,
                  matrix(dweight.tensor.slice_rows(part.first, part.count)), dweight.accumulate, {},
                  weights.precision);
  };
  if (shape.reset == ResetGate::after) {
    multiply_rows(all_rows(shape), previous);
  } else {
    multiply_rows(gate_rows(shape), previous);
    multiply_rows(candidate_rows(shape), matrix(kept.product));
  }
}

template void gate_norm_backward(Tape<float>&, const Var<float>&, const Var<float>&, const Tensor<float>&,
                                 const GateStatistics<float>&, Matrix<const float>, Matrix<float>,
                                 Accumulate);
template void gate_norm_backward(Tape<double>&, const Var<double>&, const Var<double>&, const Tensor<double>&,
                                 const GateStatistics<double>&, Matrix<const double>, Matrix<double>,
                                 Accumulate);
template struct GruKept<float>;
template struct GruKept<double>;
template GruStep<float> make_step(const GruWeights<float>&, const GruKept<float>&, int64_t);
template GruStep<double> make_step(const GruWeights<double>&, const GruKept<double>&, int64_t);
template GruStepGradient<float> make_step_gradient(const GruWeights<float>&, const GruKept<float>&, int64_t);
template GruStepGradient<double> make_step_gradient(const GruWeights<double>&, const GruKept<double>&,
                                                    int64_t);
template void transition(ThreadPool&, const GruWeights<float>&, const GruStep<float>&, From);
template void transition(ThreadPool&, const GruWeights<double>&, const GruStep<double>&, From);
template void transition_backward(ThreadPool&, const GruWeights<float>&, const GruStepGradient<float>&, From);
template void transition_backward(ThreadPool&, const GruWeights<double>&, const GruStepGradient<double>&,
                                  From);
template void weight_gradients(Tape<float>&, const GruWeights<float>&, const GruKept<float>&,
                               Matrix<const float>);
template void weight_gradients(Tape<double>&, const GruWeights<double>&, const GruKept<double>&,
                               Matrix<const double>);

}  // namespace gloss::nn
