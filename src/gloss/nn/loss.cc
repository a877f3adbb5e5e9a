#include "gloss/nn/loss.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "gloss/kernels/elementwise.h"
#include "gloss/kernels/gemm.h"
#include "gloss/nn/linear.h"

namespace gloss::nn {

using autograd::Slot;
using autograd::Tape;
using autograd::Var;
using kernels::Accumulate;
using kernels::Matrix;
using kernels::matrix;
using kernels::Transpose;

namespace {

// Tokens a block. The block of logits stays in the last-level cache; sums over tokens are cut here, whatever
// the number of threads.
constexpr int64_t kBlock = 512;

// Calls run(begin, targets, logits) for blocks of tokens.
template <class T, class Run>
void each_block(Tape<T>& tape, const Var<T>& x, const Var<T>& weight, const Var<T>& bias,
                std::span<const int32_t> targets, Run run) {
  const int64_t n = x.rows(), symbols = weight.rows();
  require(x.cols() == weight.cols(), "an output layer of {} inputs got rows of {} numbers", weight.cols(),
          x.cols());
  require(!bias || bias.value().size() == symbols, "an output layer of {} pieces has a bias of {} numbers",
          symbols, bias ? bias.value().size() : 0);
  require(static_cast<int64_t>(targets.size()) == n, "{} targets for {} rows", targets.size(), n);
  for (const int32_t target : targets) {
    require(target >= 0 && target < symbols, "token id {} is outside the vocabulary of {} pieces", target,
            symbols);
  }
  const Tensor<T> room = tape.allocate({std::min(n, kBlock), symbols});
  kernels::Epilogue<T> epilogue;
  epilogue.bias = bias ? bias.value().data() : nullptr;
  for (int64_t begin = 0; begin < n; begin += kBlock) {
    const int64_t count = std::min(kBlock, n - begin);
    const Matrix<T> logits{room.data(), count, symbols, symbols};
    multiply<T>(tape, matrix(x.value().slice_rows(begin, count)), weight, logits, epilogue);
    run(begin, targets.subspan(static_cast<size_t>(begin), static_cast<size_t>(count)), logits);
  }
}

// to += factor * from
template <class T>
void add_scaled(ThreadPool& pool, T factor, const Tensor<T>& from, const Slot<T>& to) {
  if (factor != 1) {
    for (T& value : from.values()) value *= factor;
  }
  kernels::add<T>(pool, matrix(from), to.matrix(), to.accumulate);
}

}  // namespace

template <class T>
Loss<T> projection_cross_entropy(Tape<T>& tape, const Var<T>& x, const Var<T>& weight, const Var<T>& bias,
                                 std::span<const int32_t> targets, const kernels::CrossEntropy& options,
                                 double scale) {
  const bool recorded = x.wants_gradient() || weight.wants_gradient() || (bias && bias.wants_gradient());
  for (size_t i = 0; options.forbidden >= 0 && i < targets.size(); ++i) {
    require(targets[i] != options.forbidden,
            "target {} is token {}, which the model cannot produce: its loss is infinite", i, targets[i]);
  }
  const auto n = static_cast<size_t>(x.rows());
  std::vector<T> losses(n), plain(n);
  Tensor<T> dx, dweight, dbias;
  if (recorded) {
    dx = Tensor<T>::zeros(tape.context().arena, x.shape());
    dweight = Tensor<T>::zeros(tape.context().arena, weight.shape());
    if (bias) dbias = Tensor<T>::zeros(tape.context().arena, bias.shape());
  }
  each_block(tape, x, weight, bias, targets,
             [&](int64_t begin, std::span<const int32_t> block_targets, Matrix<T> logits) {
               kernels::cross_entropy<T>(tape.pool(), logits, block_targets, options,
                                         recorded ? static_cast<T>(scale) : T{0}, losses.data() + begin,
                                         plain.data() + begin);
               if (!recorded || scale == 0) return;  // the gradients are zeros
               const auto rows = matrix(x.value().slice_rows(begin, logits.rows));
               kernels::gemm(tape.pool(), logits, Transpose::no, matrix(weight.value()), Transpose::no,
                             matrix(dx.slice_rows(begin, logits.rows)), Accumulate::no, {}, tape.precision());
               kernels::gemm(tape.pool(), logits, Transpose::yes, rows, Transpose::no, matrix(dweight),
                             Accumulate::yes, {}, tape.precision());
               if (dbias) kernels::add_column_sums<T>(tape.pool(), logits, dbias.data());
             });
  Loss<T> loss;
  loss.smoothed = std::accumulate(losses.begin(), losses.end(), 0.0);
  loss.negative_log_likelihood = std::accumulate(plain.begin(), plain.end(), 0.0);
  const Tensor<T> sum = tape.allocate({1});
  sum.data()[0] = static_cast<T>(loss.smoothed * scale);
  loss.sum = tape.record(sum, {&x, &weight, &bias}, [&] {
    return [dx, dweight, dbias, x = x.place(), weight = weight.place(), bias = bias.place()](
               Tape<T>& t, const Tensor<T>& upstream) {
      const T factor = upstream.data()[0];
      if (const Slot<T> slot = t.slot(x)) add_scaled(t.pool(), factor, dx, slot);
      if (const Slot<T> slot = t.slot(weight)) add_scaled(t.pool(), factor, dweight, slot);
      if (const Slot<T> slot = t.slot(bias)) add_scaled(t.pool(), factor, dbias, slot);
    };
  });
  return loss;
}

template <class T>
std::vector<T> projection_log_probabilities(Tape<T>& tape, const Var<T>& x, const Var<T>& weight,
                                            const Var<T>& bias, std::span<const int32_t> targets) {
  const auto n = static_cast<size_t>(x.rows());
  std::vector<T> losses(n), plain(n);
  each_block(tape, x, weight, bias, targets,
             [&](int64_t begin, std::span<const int32_t> block_targets, Matrix<T> logits) {
               kernels::cross_entropy<T>(tape.pool(), logits, block_targets, {}, T{0}, losses.data() + begin,
                                         plain.data() + begin);
             });
  for (T& value : plain) value = -value;
  return plain;
}

template Loss<float> projection_cross_entropy(Tape<float>&, const Var<float>&, const Var<float>&,
                                              const Var<float>&, std::span<const int32_t>,
                                              const kernels::CrossEntropy&, double);
template Loss<double> projection_cross_entropy(Tape<double>&, const Var<double>&, const Var<double>&,
                                               const Var<double>&, std::span<const int32_t>,
                                               const kernels::CrossEntropy&, double);
template std::vector<float> projection_log_probabilities(Tape<float>&, const Var<float>&, const Var<float>&,
                                                         const Var<float>&, std::span<const int32_t>);
template std::vector<double> projection_log_probabilities(Tape<double>&, const Var<double>&,
                                                          const Var<double>&, const Var<double>&,
                                                          std::span<const int32_t>);

}  // namespace gloss::nn
