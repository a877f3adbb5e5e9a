#include "gloss/nn/maxout.h"

#include "gloss/kernels/elementwise.h"

namespace gloss::nn {

using autograd::Slot;
using autograd::Tape;
using autograd::Var;
using kernels::matrix;

template <class T>
Var<T> maxout(Tape<T>& tape, const Var<T>& x) {
  require(x.cols() % 2 == 0, "maxout takes pairs of neighbours: rows need an even number of columns, not {}",
          x.cols());
  const Tensor<T> y = tape.allocate({x.rows(), x.cols() / 2});
  kernels::maxout<T>(tape.pool(), matrix(x.value()), matrix(y));
  return tape.record(y, {&x}, [&] {
    return [x](Tape<T>& t, const Tensor<T>& dy) {
      const Slot<T> dx = t.slot(x);
      kernels::maxout_backward<T>(t.pool(), matrix(x.value()), matrix(dy), dx.matrix(), dx.accumulate);
    };
  });
}

template Var<float> maxout(Tape<float>&, const Var<float>&);
template Var<double> maxout(Tape<double>&, const Var<double>&);

}  // namespace gloss::nn
