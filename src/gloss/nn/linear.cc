#include "gloss/nn/linear.h"

#include <algorithm>
#include <type_traits>

#include "gloss/kernels/elementwise.h"
#include "gloss/kernels/scratch.h"

namespace gloss::nn {

using autograd::Slot;
using autograd::Tape;
using autograd::Var;
using kernels::Accumulate;
using kernels::Activation;
using kernels::matrix;
using kernels::Transpose;

template <class T>
void multiply(Tape<T>& tape, kernels::Matrix<const T> x, const Var<T>& weight, kernels::Matrix<T> y,
              const kernels::Epilogue<T>& epilogue) {
  if constexpr (std::is_same_v<T, float>) {
    if (weight.parameter() && weight.parameter()->packed) {
      kernels::gemm_packed(tape.pool(), x, weight.parameter()->packed, y, Accumulate::no, epilogue);
      return;
    }
  }
  kernels::gemm<T>(tape.pool(), x, Transpose::no, matrix(weight.value()), Transpose::yes, y, Accumulate::no,
                   epilogue, tape.precision());
}

namespace {

template <class T>
void check(const Var<T>& x, const Var<T>& weight, const Var<T>& bias) {
  require(x.cols() == weight.cols(), "a linear layer of {} inputs got rows of {} numbers", weight.cols(),
          x.cols());
  require(!bias || bias.value().size() == weight.rows(),
          "a linear layer of {} outputs has a bias of {} numbers", weight.rows(),
          bias ? bias.value().size() : 0);
}

}  // namespace

void multiply_parts(Tape<float>& tape, const Var<float>& x, const Var<float>& weight, const Var<float>& bias,
                    kernels::ColumnParts parts, const kernels::SeePart& see) {
  check(x, weight, bias);
  const float* b = bias ? bias.value().data() : nullptr;
  const kernels::Matrix<const float> rows = matrix(x.value());
  if (weight.parameter() && weight.parameter()->packed) {
    return kernels::gemm_packed_parts(tape.pool(), rows, weight.parameter()->packed, b, parts, see);
  }
  // While training: weights that change are not packed.
  const kernels::Matrix<const float> w = matrix(weight.value());
  tape.pool().parallel_ranges(w.rows, parts.run, [&](int64_t begin, int64_t end) {
    const kernels::Scratch<float> room(rows.rows * parts.part);
    for (int64_t col = begin; col < end; col += parts.part) {
      const int64_t cols = std::min(parts.part, end - col);
      const kernels::Matrix<float> y{room.data(), rows.rows, cols, cols};
      kernels::Epilogue<float> epilogue;
      if (b) epilogue.bias = b + col;
      kernels::gemm_serial<float>(rows, Transpose::no, kernels::rows(w, col, cols), Transpose::yes, y,
                                  Accumulate::no, epilogue, tape.precision());
      see(0, col, y);
    }
  });
}

template <class T>
Var<T> linear(Tape<T>& tape, const Var<T>& x, const Var<T>& weight, const Var<T>& bias,
              Activation activation) {
  check(x, weight, bias);
  const Tensor<T> y = tape.allocate({x.rows(), weight.rows()});
  const bool recorded = x.wants_gradient() || weight.wants_gradient() || (bias && bias.wants_gradient());
  const bool keep_sum = recorded && (activation == Activation::swish || activation == Activation::gelu);
  const Tensor<T> sum = keep_sum ? tape.allocate(y.shape()) : Tensor<T>();
  kernels::Epilogue<T> epilogue;
  epilogue.bias = bias ? bias.value().data() : nullptr;
  epilogue.activation = activation;
  if (keep_sum) epilogue.pre_activation = matrix(sum);

  multiply<T>(tape, matrix(x.value()), weight, matrix(y), epilogue);
  return tape.record(y, {&x, &weight, &bias}, [&] {
    const bool keep_result = activation == Activation::relu || activation == Activation::tanh;
    const Tensor<T> kept = keep_sum ? sum : keep_result ? y : Tensor<T>();
    return [x, weight, bias, activation, kept](Tape<T>& t, const Tensor<T>& dy) {
      // The upstream gradient is ours alone: it becomes dS in place.
      if (activation != Activation::none) {
        kernels::activation_backward<T>(t.pool(), activation, matrix(kept), matrix(dy), matrix(dy));
      }
      if (const Slot<T> dx = t.slot(x)) {
        kernels::gemm(t.pool(), matrix(dy), Transpose::no, matrix(weight.value()), Transpose::no, dx.matrix(),
                      dx.accumulate, {}, t.precision());
      }
      if (const Slot<T> dw = t.slot(weight)) {
        kernels::gemm(t.pool(), matrix(dy), Transpose::yes, matrix(x.value()), Transpose::no, dw.matrix(),
                      dw.accumulate, {}, t.precision());
      }
      if (const Slot<T> db = t.slot(bias)) {
        if (db.accumulate == Accumulate::no) db.tensor.fill(0);
        kernels::add_column_sums<T>(t.pool(), matrix(dy), db.tensor.data());
      }
    };
  });
}

template void multiply(Tape<float>&, kernels::Matrix<const float>, const Var<float>&, kernels::Matrix<float>,
                       const kernels::Epilogue<float>&);
template void multiply(Tape<double>&, kernels::Matrix<const double>, const Var<double>&,
                       kernels::Matrix<double>, const kernels::Epilogue<double>&);
template Var<float> linear(Tape<float>&, const Var<float>&, const Var<float>&, const Var<float>&, Activation);
template Var<double> linear(Tape<double>&, const Var<double>&, const Var<double>&, const Var<double>&,
                            Activation);

}  // namespace gloss::nn
