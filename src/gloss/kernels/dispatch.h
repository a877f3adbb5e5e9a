// A kernel is written once, as a template over float and double, and compiled for each instruction set.
//
// * GLOSS_KERNEL(f); behind the template f, in the target's namespace, names its two forms.
// * GLOSS_EXPORT(f); in the HWY_ONCE part makes tables of them, with an entry a target.
// * GLOSS_CALL(f, T)(...) in a template over T calls the form for T on this CPU.
//
// Macros, because Highway's own are: each takes the name of one function that is no template.
#pragma once

#include <hwy/highway.h>

#include <type_traits>

#define GLOSS_KERNEL(name)                    \
  constexpr auto& name##_float = name<float>; \
  constexpr auto& name##_double = name<double>
#define GLOSS_EXPORT(name)  \
  HWY_EXPORT(name##_float); \
  HWY_EXPORT(name##_double)
#define GLOSS_CALL(name, T) \
  form_for<T>(&HWY_DYNAMIC_DISPATCH(name##_float), &HWY_DYNAMIC_DISPATCH(name##_double))

namespace gloss::kernels {

// The form of a kernel for T.
template <class T, class Float, class Double>
constexpr auto form_for(Float* in_float, Double* in_double) {
  if constexpr (std::is_same_v<T, float>) {
    return in_float;
  } else {
    static_assert(std::is_same_v<T, double>);
    return in_double;
  }
}

}  // namespace gloss::kernels
