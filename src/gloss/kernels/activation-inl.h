// Activation functions and their derivatives on sixteen numbers. Per-target include, as wide-inl.h.
#include "gloss/kernels/matrix.h"
#include "gloss/kernels/wide-inl.h"

#if defined(GLOSS_KERNELS_ACTIVATION_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef GLOSS_KERNELS_ACTIVATION_INL_H_
#undef GLOSS_KERNELS_ACTIVATION_INL_H_
#else
#define GLOSS_KERNELS_ACTIVATION_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace gloss::kernels::HWY_NAMESPACE {

template <Activation A, class T>
HWY_INLINE Wide<T> activate(const Wide<T>& x) {
  if constexpr (A == Activation::relu) return max(zero<T>(), x);  // in this order NaN passes
  if constexpr (A == Activation::swish) return x * sigmoid(x);
  if constexpr (A == Activation::gelu) return x * normal_cdf(x);
  if constexpr (A == Activation::tanh) return hyperbolic_tangent(x);
  return x;
}

// The derivative at the input x; for ReLU the output serves as well, and tanh takes its output.
template <Activation A, class T>
HWY_INLINE Wide<T> activation_slope(const Wide<T>& x) {
  if constexpr (A == Activation::relu) return where_greater(x, zero<T>(), set(T{1}), zero<T>());
  if constexpr (A == Activation::swish) {
    const Wide<T> s = sigmoid(x);
    return s * mul_add(x, set(T{1}) - s, set(T{1}));
  }
  if constexpr (A == Activation::gelu) {
    const T inverse_root_two_pi = static_cast<T>(0.39894228040143267794);
    return mul_add(x, set(inverse_root_two_pi) * exp(set(T{-0.5}) * x * x), normal_cdf(x));
  }
  if constexpr (A == Activation::tanh) return neg_mul_add(x, x, set(T{1}));
  return set(T{1});
}

}  // namespace gloss::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
