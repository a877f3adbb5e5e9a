#include "gloss/nn/add_norm.h"

#include "gloss/kernels/elementwise.h"
#include "gloss/kernels/layer_norm.h"

namespace gloss::nn {

using autograd::Slot;
using autograd::Tape;
using autograd::Var;
using kernels::Accumulate;
using kernels::matrix;

namespace {

// branch may be empty: plain layer norm.
template <class T>
Var<T> norm(Tape<T>& tape, const Var<T>& x, const Var<T>& branch, double p, const Var<T>& gamma,
            const Var<T>& beta, double epsilon) {
  const int64_t d = x.cols();
  require(gamma.value().size() == d && beta.value().size() == d, "a layer norm of {} numbers got rows of {}",
          gamma.value().size(), d);
  require(!branch || branch.shape() == x.shape(), "a residual connection of shapes {} and {}",
          x.shape().text(), branch ? branch.shape().text() : "");
  kernels::AddNorm<T> in;
  in.x = matrix(x.value());
  if (branch) in.branch = matrix(branch.value());
  in.dropout = tape.dropout(p);
  in.gamma = gamma.value().data();
  in.beta = beta.value().data();
  in.epsilon = static_cast<T>(epsilon);

  const Tensor<T> y = tape.allocate(x.shape());
  const bool recorded = x.wants_gradient() || (branch && branch.wants_gradient()) || gamma.wants_gradient() ||
                        beta.wants_gradient();
  const Tensor<T> sum = branch ? tape.allocate(x.shape()) : x.value();
  const Tensor<T> statistics = recorded ? tape.allocate({x.rows(), 2}) : Tensor<T>();
  kernels::add_norm_forward(tape.pool(), in, matrix(sum), matrix(y), recorded ? statistics.data() : nullptr);
  return tape.record(y, {&x, &branch, &gamma, &beta}, [&] {
    // Of x and branch only the sum is needed; the views in `in` are not read again but for their sizes.
    return [in, sum, statistics, gamma, beta, x = x.place(), branch = branch.place()](Tape<T>& t,
                                                                                      const Tensor<T>& dy) {
      kernels::AddNormGradient<T> gradient;
      gradient.dy = matrix(dy);
      gradient.sum = matrix(sum);
      gradient.statistics = statistics.data();
      const Slot<T> dx = t.slot(x), dbranch = t.slot(branch), dgamma = t.slot(gamma), dbeta = t.slot(beta);
      gradient.dx = dx.matrix();
      gradient.accumulate_x = dx.accumulate;
      gradient.dbranch = dbranch.matrix();
      gradient.accumulate_branch = dbranch.accumulate;
      for (const Slot<T>& slot : {dgamma, dbeta}) {
        if (slot && slot.accumulate == Accumulate::no) slot.tensor.fill(0);
      }
      gradient.dgamma = dgamma ? dgamma.tensor.data() : nullptr;
      gradient.dbeta = dbeta ? dbeta.tensor.data() : nullptr;
      kernels::add_norm_backward(t.pool(), in, gradient);
    };
  });
}

}  // namespace

template <class T>
Var<T> add_norm(Tape<T>& tape, const Var<T>& x, const Var<T>& branch, double dropout, const Var<T>& gamma,
                const Var<T>& beta, double epsilon) {
  return norm(tape, x, branch, dropout, gamma, beta, epsilon);
}

template <class T>
Var<T> layer_norm(Tape<T>& tape, const Var<T>& x, const Var<T>& gamma, const Var<T>& beta, double epsilon) {
  return norm(tape, x, Var<T>(), 0, gamma, beta, epsilon);
}

template <class T>
Var<T> add_dropout(Tape<T>& tape, const Var<T>& x, const Var<T>& branch, double p) {
  require(branch.shape() == x.shape(), "a residual connection of shapes {} and {}", x.shape().text(),
          branch.shape().text());
  const kernels::Dropout dropout = tape.dropout(p);
  const Tensor<T> y = tape.allocate(x.shape());
  kernels::add_dropout<T>(tape.pool(), matrix(x.value()), matrix(branch.value()), dropout, matrix(y));
  return tape.record(y, {&x, &branch}, [&] {
    return [dropout, x = x.place(), branch = branch.place()](Tape<T>& t, const Tensor<T>& dy) {
      if (const Slot<T> dx = t.slot(x)) kernels::add<T>(t.pool(), matrix(dy), dx.matrix(), dx.accumulate);
      if (const Slot<T> db = t.slot(branch)) {
        kernels::dropout<T>(t.pool(), matrix(dy), dropout, db.matrix(), db.accumulate);
      }
    };
  });
}

template <class T>
Var<T> dropout(Tape<T>& tape, const Var<T>& x, double p) {
  const kernels::Dropout dropout = tape.dropout(p);
  if (!dropout.active()) return x;
  const Tensor<T> y = tape.allocate(x.shape());
  kernels::dropout<T>(tape.pool(), matrix(x.value()), dropout, matrix(y), Accumulate::no);
  return tape.record(y, {&x}, [&] {
    return [dropout, x = x.place()](Tape<T>& t, const Tensor<T>& dy) {
      const Slot<T> dx = t.slot(x);
      kernels::dropout<T>(t.pool(), matrix(dy), dropout, dx.matrix(), dx.accumulate);
    };
  });
}

template Var<float> add_norm(Tape<float>&, const Var<float>&, const Var<float>&, double, const Var<float>&,
                             const Var<float>&, double);
template Var<double> add_norm(Tape<double>&, const Var<double>&, const Var<double>&, double,
                              const Var<double>&, const Var<double>&, double);
template Var<float> layer_norm(Tape<float>&, const Var<float>&, const Var<float>&, const Var<float>&, double);
template Var<double> layer_norm(Tape<double>&, const Var<double>&, const Var<double>&, const Var<double>&,
                                double);
template Var<float> add_dropout(Tape<float>&, const Var<float>&, const Var<float>&, double);
template Var<double> add_dropout(Tape<double>&, const Var<double>&, const Var<double>&, double);
template Var<float> dropout(Tape<float>&, const Var<float>&, double);
template Var<double> dropout(Tape<double>&, const Var<double>&, double);

}  // namespace gloss::nn
