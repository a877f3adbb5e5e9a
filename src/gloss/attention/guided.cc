#include "gloss/attention/guided.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "gloss/kernels/elementwise.h"

namespace gloss::attention {

using autograd::Slot;
using autograd::Tape;
using autograd::Var;
using kernels::Accumulate;

namespace {

// The derivative of the softmax multiplies by the weight again, so the gradient of a score stays finite.
template <class T>
T above_zero(T weight) {
  return std::max(weight, std::numeric_limits<T>::min());
}

}  // namespace

template <class T>
Guided<T> guided_cross_entropy(Tape<T>& tape, const Var<T>& loss, const Var<T>& weights,
                               std::vector<GuidedWeight> wanted, double scale) {
  require(loss.value().size() == 1, "a loss is one number, not {}", loss.value().size());
  const int64_t size = weights.value().size();
  Guided<T> result;
  for (const GuidedWeight& each : wanted) {
    require(each.element >= 0 && each.element < size, "weight {} of {} shall be guided", each.element, size);
    result.cross_entropy -=
        each.share * std::log(static_cast<double>(above_zero(weights.value().data()[each.element])));
  }
  const Tensor<T> sum = tape.allocate({1});
  sum.data()[0] = static_cast<T>(static_cast<double>(loss.value().data()[0]) + scale * result.cross_entropy);
  result.loss = tape.record(sum, {&loss, &weights}, [&] {
    return
        [loss = loss.place(), weights, wanted = std::move(wanted), scale](Tape<T>& t, const Tensor<T>& up) {
          if (const Slot<T> dloss = t.slot(loss))
            kernels::add<T>(t.pool(), kernels::matrix(up), dloss.matrix(), dloss.accumulate);
          const Slot<T> dweights = t.slot(weights);
          if (!dweights) return;
          if (dweights.accumulate == Accumulate::no) dweights.tensor.fill(0);
          const double factor = scale * static_cast<double>(up.data()[0]);
          for (const GuidedWeight& each : wanted) {
            const T weight = above_zero(weights.value().data()[each.element]);
            dweights.tensor.data()[each.element] -=
                static_cast<T>(factor * each.share / static_cast<double>(weight));
          }
        };
  });
  return result;
}

template Guided<float> guided_cross_entropy(Tape<float>&, const Var<float>&, const Var<float>&,
                                            std::vector<GuidedWeight>, double);
template Guided<double> guided_cross_entropy(Tape<double>&, const Var<double>&, const Var<double>&,
                                             std::vector<GuidedWeight>, double);

}  // namespace gloss::attention
