// Wide<T>: sixteen numbers, whatever the width of the machine's vectors. Because every reduction folds the
// same sixteen lanes in the same order, results are equal bit for bit on every instruction set with fused
// multiply-add (AVX2 and up). Included once for each target, between HWY_BEFORE_NAMESPACE and
// HWY_AFTER_NAMESPACE.
#include <hwy/highway.h>

#include <cmath>
#include <cstdint>
#include <cstring>

#if defined(GLOSS_KERNELS_WIDE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef GLOSS_KERNELS_WIDE_INL_H_
#undef GLOSS_KERNELS_WIDE_INL_H_
#else
#define GLOSS_KERNELS_WIDE_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace gloss::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

inline constexpr int64_t kWide = 16;

template <class T>
struct Wide {
  using D = hn::CappedTag<T, kWide>;
  static constexpr int kVectors = static_cast<int>(kWide / hn::MaxLanes(D()));
  static constexpr int kLanes = static_cast<int>(kWide) / kVectors;
  hn::Vec<D> v[kVectors];
};

// Applies f to each machine vector.
template <class T, class F>
HWY_INLINE Wide<T> each(F f) {
  Wide<T> r;
  for (int i = 0; i < Wide<T>::kVectors; ++i) r.v[i] = f(i);
  return r;
}

template <class T>
HWY_INLINE Wide<T> set(T x) {
  const typename Wide<T>::D d;
  return each<T>([&](int) { return hn::Set(d, x); });
}
template <class T>
HWY_INLINE Wide<T> zero() {
  return set(T{0});
}
template <class T>
HWY_INLINE Wide<T> load(const T* p) {
  const typename Wide<T>::D d;
  return each<T>([&](int i) { return hn::LoadU(d, p + i * Wide<T>::kLanes); });
}
template <class T>
HWY_INLINE void store(const Wide<T>& x, T* p) {
  const typename Wide<T>::D d;
  for (int i = 0; i < Wide<T>::kVectors; ++i) hn::StoreU(x.v[i], d, p + i * Wide<T>::kLanes);
}
// The first n of 16 numbers; the others are `rest`. Memory past n is not touched.
template <class T>
HWY_INLINE Wide<T> load_first(const T* p, int64_t n, T rest = T{0}) {
  HWY_ALIGN T lanes[kWide];
  for (int64_t i = 0; i < kWide; ++i) lanes[i] = rest;
  std::memcpy(lanes, p, static_cast<size_t>(n) * sizeof(T));
  return load(lanes);
}
template <class T>
HWY_INLINE void store_first(const Wide<T>& x, T* p, int64_t n) {
  HWY_ALIGN T lanes[kWide];
  store(x, lanes);
  std::memcpy(p, lanes, static_cast<size_t>(n) * sizeof(T));
}

// The first n of sixteen numbers at p: whole when n is 16, else padded with `rest`.
template <class T>
HWY_INLINE Wide<T> load_chunk(const T* p, int64_t n, T rest = T{0}) {
  return n >= kWide ? load(p) : load_first(p, n, rest);
}
template <class T>
HWY_INLINE void store_chunk(const Wide<T>& x, T* p, int64_t n) {
  if (n >= kWide) {
    store(x, p);
  } else {
    store_first(x, p, n);
  }
}

template <class T>
HWY_INLINE Wide<T> operator+(const Wide<T>& a, const Wide<T>& b) {
  return each<T>([&](int i) { return hn::Add(a.v[i], b.v[i]); });
}
template <class T>
HWY_INLINE Wide<T> operator-(const Wide<T>& a, const Wide<T>& b) {
  return each<T>([&](int i) { return hn::Sub(a.v[i], b.v[i]); });
}
template <class T>
HWY_INLINE Wide<T> operator*(const Wide<T>& a, const Wide<T>& b) {
  return each<T>([&](int i) { return hn::Mul(a.v[i], b.v[i]); });
}
template <class T>
HWY_INLINE Wide<T> operator/(const Wide<T>& a, const Wide<T>& b) {
  return each<T>([&](int i) { return hn::Div(a.v[i], b.v[i]); });
}
// a * b + c
template <class T>
HWY_INLINE Wide<T> mul_add(const Wide<T>& a, const Wide<T>& b, const Wide<T>& c) {
  return each<T>([&](int i) { return hn::MulAdd(a.v[i], b.v[i], c.v[i]); });
}
// c - a * b
template <class T>
HWY_INLINE Wide<T> neg_mul_add(const Wide<T>& a, const Wide<T>& b, const Wide<T>& c) {
  return each<T>([&](int i) { return hn::NegMulAdd(a.v[i], b.v[i], c.v[i]); });
}
// The larger; where b is not a number, b.
template <class T>
HWY_INLINE Wide<T> max(const Wide<T>& a, const Wide<T>& b) {
  return each<T>([&](int i) { return hn::Max(a.v[i], b.v[i]); });
}
template <class T>
HWY_INLINE Wide<T> min(const Wide<T>& a, const Wide<T>& b) {
  return each<T>([&](int i) { return hn::Min(a.v[i], b.v[i]); });
}
template <class T>
HWY_INLINE Wide<T> square_root(const Wide<T>& a) {
  return each<T>([&](int i) { return hn::Sqrt(a.v[i]); });
}
template <class T>
HWY_INLINE Wide<T> negate(const Wide<T>& a) {
  return each<T>([&](int i) { return hn::Neg(a.v[i]); });
}
template <class T>
HWY_INLINE Wide<T> absolute(const Wide<T>& a) {
  return each<T>([&](int i) { return hn::Abs(a.v[i]); });
}
// Where a > b: yes, elsewhere no.
template <class T>
HWY_INLINE Wide<T> where_greater(const Wide<T>& a, const Wide<T>& b, const Wide<T>& yes, const Wide<T>& no) {
  return each<T>([&](int i) { return hn::IfThenElse(hn::Gt(a.v[i], b.v[i]), yes.v[i], no.v[i]); });
}

// Lane i is first + i.
template <class T>
HWY_INLINE Wide<T> iota(T first) {
  const typename Wide<T>::D d;
  return each<T>([&](int i) { return hn::Iota(d, first + static_cast<T>(i * Wide<T>::kLanes)); });
}
// Lanes n and up become `rest`, whatever they held (NaN included).
template <class T>
HWY_INLINE Wide<T> keep_first(const Wide<T>& x, int64_t n, T rest = T{0}) {
  return where_greater(set(static_cast<T>(n)), iota(T{0}), x, set(rest));
}

// Folds sixteen lanes by halves: 8 + 8, 4 + 4, 2 + 2, 1 + 1, the same on every target.
#if HWY_TARGET == HWY_SCALAR
template <class D, class V, class F>
HWY_INLINE hn::TFromD<D> fold_vector(D, V v, F) {
  return hn::GetLane(v);
}
#else
template <class D, class V, class F>
HWY_INLINE hn::TFromD<D> fold_vector(D, V v, F f) {
  using T = hn::TFromD<D>;
  if constexpr (hn::MaxLanes(D()) * sizeof(T) > 16) {
    const hn::Half<D> half;
    return fold_vector(half, f(hn::LowerHalf(half, v), hn::UpperHalf(half, v)), f);
  } else if constexpr (sizeof(T) == 4) {
    v = f(v, hn::Shuffle1032(v));  // 0 + 2, 1 + 3
    return hn::GetLane(f(v, hn::Shuffle2301(v)));
  } else {
    return hn::GetLane(f(v, hn::Shuffle01(v)));
  }
}
#endif
template <class T, class F>
HWY_INLINE T fold(Wide<T> x, F f) {
  for (int n = Wide<T>::kVectors / 2; n > 0; n /= 2) {
    for (int i = 0; i < n; ++i) x.v[i] = f(x.v[i], x.v[i + n]);
  }
  return fold_vector(typename Wide<T>::D(), x.v[0], f);
}
template <class T>
HWY_INLINE T sum(const Wide<T>& x) {
  return fold(x, [](auto a, auto b) HWY_ATTR { return hn::Add(a, b); });
}
// Lane i is sum(x[i]), bit for bit: the same folds, done for sixteen at once by putting halves side by side.
template <class T>
HWY_INLINE Wide<T> sums(const Wide<T> (&x)[kWide]) {
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
  if constexpr (sizeof(T) == 4) {
    const typename Wide<T>::D d;
    const hn::RepartitionToWide<typename Wide<T>::D> pairs;
    // Eight lanes of a and of b -> four of each, in blocks: AVX2 [a b].
    const auto halves = [&](auto a, auto b) HWY_ATTR {
      return hn::Add(hn::ConcatLowerLower(d, b, a), hn::ConcatUpperUpper(d, b, a));
    };
    // Four lanes a block -> two, a block of x beside one of y.
    const auto twos = [&](auto a, auto b) HWY_ATTR {
      const auto p = hn::BitCast(pairs, a), q = hn::BitCast(pairs, b);
      return hn::Add(hn::BitCast(d, hn::InterleaveLower(pairs, p, q)),
                     hn::BitCast(d, hn::InterleaveUpper(pairs, p, q)));
    };
    const auto ones = [&](auto a, auto b)
                          HWY_ATTR { return hn::Add(hn::ConcatEven(d, b, a), hn::ConcatOdd(d, b, a)); };
#if HWY_TARGET == HWY_AVX3
    // [a a b b] and [c c d d], blocks of four lanes -> [a c b d].
    const auto quarters = [&](auto ab, auto cd) HWY_ATTR {
      return hn::Add(hn::OddEvenBlocks(hn::SwapAdjacentBlocks(cd), ab),
                     hn::OddEvenBlocks(cd, hn::SwapAdjacentBlocks(ab)));
    };
    const auto four = [&](int i) HWY_ATTR {  // x[i], x[i + 2], x[i + 4], x[i + 6]
      return quarters(halves(x[i].v[0], x[i + 4].v[0]), halves(x[i + 2].v[0], x[i + 6].v[0]));
    };
    Wide<T> all;
    all.v[0] = ones(twos(four(0), four(1)), twos(four(8), four(9)));
    return all;
#else
    return each<T>([&](int half) HWY_ATTR {
      const auto two = [&](int i) HWY_ATTR {  // x[i], x[i + 2]
        const Wide<T>&a = x[8 * half + i], &b = x[8 * half + i + 2];
        return halves(hn::Add(a.v[0], a.v[1]), hn::Add(b.v[0], b.v[1]));
      };
      return ones(twos(two(0), two(1)), twos(two(4), two(5)));
    });
#endif
  }
#endif
  HWY_ALIGN T lanes[kWide];
  for (int64_t i = 0; i < kWide; ++i) lanes[i] = sum(x[i]);
  return load(lanes);
}
template <class T>
HWY_INLINE T largest(const Wide<T>& x) {
  return fold(x, [](auto a, auto b) HWY_ATTR { return hn::Max(a, b); });
}

// Lane by lane with a scalar function: double precision serves gradient checks, not speed.
template <class T, class F>
HWY_INLINE Wide<T> by_lane(const Wide<T>& x, F f) {
  HWY_ALIGN T lanes[kWide];
  store(x, lanes);
  for (T& lane : lanes) lane = f(lane);
  return load(lanes);
}

// e^r for |r| <= ln 2 / 2 (Cephes expf).
template <class D, class V>
HWY_INLINE V exp_near_zero(D d, V r) {
  auto p = hn::Set(d, 1.9875691500e-4f);
  p = hn::MulAdd(p, r, hn::Set(d, 1.3981999507e-3f));
  p = hn::MulAdd(p, r, hn::Set(d, 8.3334519073e-3f));
  p = hn::MulAdd(p, r, hn::Set(d, 4.1665795894e-2f));
  p = hn::MulAdd(p, r, hn::Set(d, 1.6666665459e-1f));
  p = hn::MulAdd(p, r, hn::Set(d, 5.0000001201e-1f));
  return hn::Add(hn::MulAdd(hn::Mul(r, r), p, r), hn::Set(d, 1.0f));
}

// e^x; 0 below -87.3, infinity above 88.7 (float: relative error 1e-7). NaN stays NaN.
HWY_INLINE Wide<float> exp(const Wide<float>& x) {
  const Wide<float>::D d;
  const hn::RebindToSigned<Wide<float>::D> di;
  return each<float>([&](int i) HWY_ATTR {
    const auto lo = hn::Set(d, -87.33654f), hi = hn::Set(d, 88.72283f);
    const auto c = hn::Min(hi, hn::Max(lo, x.v[i]));  // in this order NaN passes
    const auto n = hn::Round(hn::Mul(c, hn::Set(d, 1.44269504f)));
    auto r = hn::NegMulAdd(n, hn::Set(d, 0.693359375f), c);  // ln 2 in two parts
    r = hn::NegMulAdd(n, hn::Set(d, -2.12194440e-4f), r);
    const auto p = exp_near_zero(d, r);
    // 2^n in two factors, since n may be 128.
    const auto ni = hn::ConvertTo(di, n);
    const auto half = hn::ShiftRight<1>(ni);
    const auto bias = hn::Set(di, 127);
    const auto a = hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(half, bias)));
    const auto b = hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(hn::Sub(ni, half), bias)));
    const auto y = hn::Mul(hn::Mul(p, a), b);
    const auto inf = hn::Set(d, HUGE_VALF);
    return hn::IfThenElse(hn::Gt(x.v[i], hi), inf, hn::IfThenZeroElse(hn::Lt(x.v[i], lo), y));
  });
}
// The same for x <= 0, where fewer steps do, but for x below -87.3: 1.2e-38 then instead of 0.
HWY_INLINE Wide<float> exp_not_above_zero(const Wide<float>& x) {
  const Wide<float>::D d;
  const hn::RebindToSigned<Wide<float>::D> di;
  return each<float>([&](int i) HWY_ATTR {
    const auto c = hn::Max(hn::Set(d, -87.33654f), x.v[i]);  // in this order NaN passes
    const auto n = hn::Round(hn::Mul(c, hn::Set(d, 1.44269504f)));
    auto r = hn::NegMulAdd(n, hn::Set(d, 0.693359375f), c);
    r = hn::NegMulAdd(n, hn::Set(d, -2.12194440e-4f), r);
    const auto power = hn::ShiftLeft<23>(hn::Add(hn::ConvertTo(di, n), hn::Set(di, 127)));  // n >= -126
    return hn::Mul(exp_near_zero(d, r), hn::BitCast(d, power));
  });
}
HWY_INLINE Wide<double> exp(const Wide<double>& x) {
  return by_lane(x, [](double v) { return std::exp(v); });
}

// 1 / (1 + e^-x)
template <class T>
HWY_INLINE Wide<T> sigmoid(const Wide<T>& x) {
  return set(T{1}) / (set(T{1}) + exp(negate(x)));
}
// tanh x = x P(x^2) / Q(x^2) on [-9, 9], +-1 outside. P and Q of degree 4 are the best such quotient in
// relative error (3e-8), found by Remez's exchange and then moved by single floats to where all roundings
// together do least harm: over every float the error is at most 5.2 units in the last place (3.1e-7), in the
// mean half a unit. Cheaper than going by e^2x: one division and no second branch near zero. NaN stays NaN,
// and -0 is -0.
HWY_INLINE Wide<float> hyperbolic_tangent(const Wide<float>& x) {
  const Wide<float> z = min(set(9.0f), max(set(-9.0f), x));  // in this order NaN passes
  const Wide<float> t = z * z;
  Wide<float> p = mul_add(set(1.33190765e-8f), t, set(2.05834694e-5f));
  p = mul_add(p, t, set(3.49403359e-3f));
  p = mul_add(p, t, set(0.133797169f));
  p = mul_add(p, t, set(1.0f));
  Wide<float> q = mul_add(set(7.76201773e-7f), t, set(3.28309136e-4f));
  q = mul_add(q, t, set(2.58710682e-2f));
  q = mul_add(q, t, set(0.467130333f));
  q = mul_add(q, t, set(1.0f));
  return min(set(1.0f), max(set(-1.0f), z * p / q));
}
HWY_INLINE Wide<double> hyperbolic_tangent(const Wide<double>& x) {
  return by_lane(x, [](double v) { return std::tanh(v); });
}
// The normal distribution function Phi(x) = (1 + erf(x / sqrt 2)) / 2 (Abramowitz and Stegun 7.1.26 for
// float, absolute error 1e-7).
HWY_INLINE Wide<float> normal_cdf(const Wide<float>& x) {
  const Wide<float> z = absolute(x) * set(0.70710678f);
  const Wide<float> t = set(1.0f) / mul_add(set(0.3275911f), z, set(1.0f));
  Wide<float> p = mul_add(set(1.061405429f), t, set(-1.453152027f));
  p = mul_add(p, t, set(1.421413741f));
  p = mul_add(p, t, set(-0.284496736f));
  p = mul_add(p, t, set(0.254829592f));
  const Wide<float> tail = set(0.5f) * p * t * exp(negate(z * z));  // 1 - Phi(|x|)
  return where_greater(x, zero<float>(), set(1.0f) - tail, tail);
}
HWY_INLINE Wide<double> normal_cdf(const Wide<double>& x) {
  return by_lane(x, [](double v) { return 0.5 * std::erfc(-v * 0.70710678118654752440); });
}

}  // namespace gloss::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
