#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "gloss/kernels/gru.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "gloss/kernels/dispatch.h"
#include "gloss/kernels/gru.h"
#include "gloss/kernels/layer_norm-inl.h"

HWY_BEFORE_NAMESPACE();
namespace gloss::kernels::HWY_NAMESPACE {
namespace {

template <class Step>
int64_t place_of(const Step& step, int64_t i) {
  return step.place ? step.place[i] : i;
}
// Kept for backward, where anybody wants it.
template <class T>
HWY_INLINE void keep(const Wide<T>& x, T* row, int64_t at, int64_t n) {
  if (row) store_chunk(x, row + at, n);
}
template <class T>
T* row_of(const Matrix<T>& m, int64_t i) {
  return m.data ? m.row(i) : nullptr;
}

// --- Layer normalisation of the sums of a row --------------------------------------------------------------

// Normalises sums [first, first + count) of a token in place.
template <class T>
void normalise_sums(const GruNorm<T>& norm, T* sums, int64_t first, int64_t count, int64_t token,
                    T* statistics) {
  if (!norm.gain) return;
  T* s = sums + first;
  if (norm.sums.data) std::copy_n(s, count, norm.sums.row(token) + first);
  const RowStatistics<T> row =
      normalise_row<T>(s, count, norm.gain + first, norm.bias + first, norm.epsilon, s);
  if (!statistics) return;
  statistics[2 * token] = row.mean;
  statistics[2 * token + 1] = row.inverse;
}
template <class T>
void normalise_sums_backward(const GruNorm<T>& norm, T* dsums, int64_t first, int64_t count, int64_t token,
                             const T* statistics) {
  if (!norm.gain) return;
  T* ds = dsums + first;
  normalise_row_backward<T>(
      ds, norm.sums.row(token) + first, {statistics[2 * token], statistics[2 * token + 1]}, count,
      norm.gain + first, [](int64_t, int64_t, const Wide<T>&, const Wide<T>&) {},
      [ds](int64_t c, int64_t n, const Wide<T>& dx) HWY_ATTR { store_chunk(dx, ds + c, n); });
}

// --- Forward
// -------------------------------------------------------------------------------------------------

// h' = (1 - z) n + z h
template <class T>
HWY_INLINE Wide<T> new_state(const Wide<T>& z, const Wide<T>& n, const Wide<T>& h) {
  return mul_add(z, h - n, n);
}

template <class T>
void forward_rows(const GruStep<T>& step, int64_t begin, int64_t end) {
  const int64_t d = step.d_h;
  for (int64_t i = begin; i < end; ++i) {
    const int64_t token = place_of(step, i);
    T* s = step.sums.row(i);
    normalise_sums(step.norm, s, 0, 2 * d, token, step.norm.gate_statistics);
    normalise_sums(step.norm, s, 2 * d, d, token, step.norm.candidate_statistics);
    const T *in = step.input.row(token), *h = step.previous.row(i);
    T *gates = row_of(step.gates, token), *product = row_of(step.product, token);
    T *state = row_of(step.state, i), *out = step.states.row(token);
    for (int64_t c = 0; c < d; c += kWide) {
      const int64_t left = d - c;
      const Wide<T> s_n = load_chunk(s + 2 * d + c, left);
      const Wide<T> r = sigmoid(load_chunk(in + c, left) + load_chunk(s + c, left));
      const Wide<T> z = sigmoid(load_chunk(in + d + c, left) + load_chunk(s + d + c, left));
      const Wide<T> n = hyperbolic_tangent(mul_add(r, s_n, load_chunk(in + 2 * d + c, left)));
      const Wide<T> next = new_state(z, n, load_chunk(h + c, left));
      keep(r, gates, c, left);
      keep(z, gates, d + c, left);
      keep(n, gates, 2 * d + c, left);
      keep(s_n, product, c, left);
      keep(next, state, c, left);
      store_chunk(next, out + c, left);
    }
  }
}

template <class T>
void reset_rows(const GruStep<T>& step, int64_t begin, int64_t end) {
  const int64_t d = step.d_h;
  for (int64_t i = begin; i < end; ++i) {
    const int64_t token = place_of(step, i);
    T* s = step.sums.row(i);
    normalise_sums(step.norm, s, 0, 2 * d, token, step.norm.gate_statistics);
    const T *in = step.input.row(token), *h = step.previous.row(i);
    T *gates = row_of(step.gates, token), *product = row_of(step.product, token);
    for (int64_t c = 0; c < d; c += kWide) {
      const int64_t left = d - c;
      const Wide<T> r = sigmoid(load_chunk(in + c, left) + load_chunk(s + c, left));
      const Wide<T> z = sigmoid(load_chunk(in + d + c, left) + load_chunk(s + d + c, left));
      const Wide<T> reset = r * load_chunk(h + c, left);
      store_chunk(z, s + d + c, left);
      store_chunk(reset, step.reset.row(i) + c, left);
      keep(r, gates, c, left);
      keep(z, gates, d + c, left);
      keep(reset, product, c, left);
    }
  }
}

template <class T>
void candidate_rows(const GruStep<T>& step, int64_t begin, int64_t end) {
  const int64_t d = step.d_h;
  for (int64_t i = begin; i < end; ++i) {
    const int64_t token = place_of(step, i);
    T* s = step.sums.row(i);
    normalise_sums(step.norm, s, 2 * d, d, token, step.norm.candidate_statistics);
    const T *in = step.input.row(token), *h = step.previous.row(i);
    T *gates = row_of(step.gates, token), *state = row_of(step.state, i), *out = step.states.row(token);
    for (int64_t c = 0; c < d; c += kWide) {
      const int64_t left = d - c;
      const Wide<T> n =
          hyperbolic_tangent(load_chunk(in + 2 * d + c, left) + load_chunk(s + 2 * d + c, left));
      const Wide<T> next = new_state(load_chunk(s + d + c, left), n, load_chunk(h + c, left));
      keep(n, gates, 2 * d + c, left);
      keep(next, state, c, left);
      store_chunk(next, out + c, left);
    }
  }
}

// --- Backward
// ------------------------------------------------------------------------------------------------

// A token's row of dinput, or nothing.
template <class T>
struct InputGradient {
  T* row;
  bool add;
  HWY_INLINE void write(const Wide<T>& x, int64_t at, int64_t n) const {
    if (row) store_chunk(add ? load_chunk(row + at, n) + x : x, row + at, n);
  }
};
template <class T>
InputGradient<T> input_gradient(const GruStepGradient<T>& step, int64_t token) {
  return {row_of(step.dinput, token), step.accumulate == Accumulate::yes};
}

// What reaches n's and z's sums from dh = what reaches h'; dstate becomes what reaches h directly.
template <class T>
struct Blend {
  Wide<T> dn, dz;
};
template <class T>
HWY_INLINE Blend<T> blend_backward(const T* dstates, T* dstate, const T* h, const Wide<T>& z,
                                   const Wide<T>& n, int64_t c, int64_t left) {
  Wide<T> dh = load_chunk(dstate + c, left);
  if (dstates) dh = load_chunk(dstates + c, left) + dh;
  const Wide<T> one = set(T{1});
  store_chunk(dh * z, dstate + c, left);
  return {dh * (one - z) * neg_mul_add(n, n, one), dh * (load_chunk(h + c, left) - n) * (z * (one - z))};
}

template <class T>
void backward_rows(const GruStepGradient<T>& step, int64_t begin, int64_t end) {
  const int64_t d = step.d_h;
  for (int64_t i = begin; i < end; ++i) {
    const int64_t token = place_of(step, i);
    T *gates = step.gates.row(token), *dsums = step.dsums.row(i), *dstate = step.dstate.row(i);
    const T *dstates = row_of(step.dstates, token), *h = step.previous.row(token),
            *product = step.product.row(token);
    const InputGradient<T> dinput = input_gradient(step, token);
    for (int64_t c = 0; c < d; c += kWide) {
      const int64_t left = d - c;
      const Wide<T> r = load_chunk(gates + c, left), z = load_chunk(gates + d + c, left),
                    n = load_chunk(gates + 2 * d + c, left);
      const auto [dn, dz] = blend_backward(dstates, dstate, h, z, n, c, left);
      const Wide<T> ds_n = dn * r;
      const Wide<T> dr = dn * load_chunk(product + c, left) * (r * (set(T{1}) - r));
      dinput.write(dr, c, left);
      dinput.write(dz, d + c, left);
      dinput.write(dn, 2 * d + c, left);
      for (T* to : {gates, dsums}) {
        store_chunk(dr, to + c, left);
        store_chunk(dz, to + d + c, left);
        store_chunk(ds_n, to + 2 * d + c, left);
      }
    }
    normalise_sums_backward(step.norm, dsums, 0, 2 * d, token, step.norm.gate_statistics);
    normalise_sums_backward(step.norm, dsums, 2 * d, d, token, step.norm.candidate_statistics);
  }
}

template <class T>
void candidate_backward_rows(const GruStepGradient<T>& step, int64_t begin, int64_t end) {
  const int64_t d = step.d_h;
  for (int64_t i = begin; i < end; ++i) {
    const int64_t token = place_of(step, i);
    T *gates = step.gates.row(token), *dsums = step.dsums.row(i), *dstate = step.dstate.row(i);
    const T *dstates = row_of(step.dstates, token), *h = step.previous.row(token);
    const InputGradient<T> dinput = input_gradient(step, token);
    for (int64_t c = 0; c < d; c += kWide) {
      const int64_t left = d - c;
      const Wide<T> z = load_chunk(gates + d + c, left), n = load_chunk(gates + 2 * d + c, left);
      const auto [dn, dz] = blend_backward(dstates, dstate, h, z, n, c, left);
      dinput.write(dz, d + c, left);
      dinput.write(dn, 2 * d + c, left);
      for (T* to : {gates, dsums}) {
        store_chunk(dz, to + d + c, left);
        store_chunk(dn, to + 2 * d + c, left);
      }
    }
    normalise_sums_backward(step.norm, dsums, 2 * d, d, token, step.norm.candidate_statistics);
  }
}

template <class T>
void reset_backward_rows(const GruStepGradient<T>& step, int64_t begin, int64_t end) {
  const int64_t d = step.d_h;
  for (int64_t i = begin; i < end; ++i) {
    const int64_t token = place_of(step, i);
    T *gates = step.gates.row(token), *dsums = step.dsums.row(i), *dstate = step.dstate.row(i);
    const T *h = step.previous.row(token), *dreset = step.dreset.row(i);
    const InputGradient<T> dinput = input_gradient(step, token);
    for (int64_t c = 0; c < d; c += kWide) {
      const int64_t left = d - c;
      const Wide<T> r = load_chunk(gates + c, left), up = load_chunk(dreset + c, left);
      const Wide<T> dr = up * load_chunk(h + c, left) * (r * (set(T{1}) - r));
      store_chunk(mul_add(up, r, load_chunk(dstate + c, left)), dstate + c, left);
      dinput.write(dr, c, left);
      for (T* to : {gates, dsums}) store_chunk(dr, to + c, left);
    }
    normalise_sums_backward(step.norm, dsums, 0, 2 * d, token, step.norm.gate_statistics);
  }
}

GLOSS_KERNEL(forward_rows);
GLOSS_KERNEL(reset_rows);
GLOSS_KERNEL(candidate_rows);
GLOSS_KERNEL(backward_rows);
GLOSS_KERNEL(candidate_backward_rows);
GLOSS_KERNEL(reset_backward_rows);

}  // namespace
}  // namespace gloss::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gloss::kernels {
namespace {
GLOSS_EXPORT(forward_rows);
GLOSS_EXPORT(reset_rows);
GLOSS_EXPORT(candidate_rows);
GLOSS_EXPORT(backward_rows);
GLOSS_EXPORT(candidate_backward_rows);
GLOSS_EXPORT(reset_backward_rows);

// A row of 256 units takes about half a microsecond.
constexpr int64_t kRows = 64;

}  // namespace

template <class T>
void gru_forward(ThreadPool& pool, const GruStep<T>& step) {
  pool.parallel_ranges(step.rows, kRows, [&](int64_t begin, int64_t end) {
    GLOSS_CALL(forward_rows, T)(step, begin, end);
  });
}
template <class T>
void gru_reset(ThreadPool& pool, const GruStep<T>& step) {
  pool.parallel_ranges(step.rows, kRows, [&](int64_t begin, int64_t end) {
    GLOSS_CALL(reset_rows, T)(step, begin, end);
  });
}
template <class T>
void gru_candidate(ThreadPool& pool, const GruStep<T>& step) {
  pool.parallel_ranges(step.rows, kRows, [&](int64_t begin, int64_t end) {
    GLOSS_CALL(candidate_rows, T)(step, begin, end);
  });
}
template <class T>
void gru_backward(ThreadPool& pool, const GruStepGradient<T>& step) {
  pool.parallel_ranges(step.rows, kRows, [&](int64_t begin, int64_t end) {
    GLOSS_CALL(backward_rows, T)(step, begin, end);
  });
}
template <class T>
void gru_candidate_backward(ThreadPool& pool, const GruStepGradient<T>& step) {
  pool.parallel_ranges(step.rows, kRows, [&](int64_t begin, int64_t end) {
    GLOSS_CALL(candidate_backward_rows, T)(step, begin, end);
  });
}
template <class T>
void gru_reset_backward(ThreadPool& pool, const GruStepGradient<T>& step) {
  pool.parallel_ranges(step.rows, kRows, [&](int64_t begin, int64_t end) {
    GLOSS_CALL(reset_backward_rows, T)(step, begin, end);
  });
}

template void gru_forward(ThreadPool&, const GruStep<float>&);
template void gru_forward(ThreadPool&, const GruStep<double>&);
template void gru_reset(ThreadPool&, const GruStep<float>&);
template void gru_reset(ThreadPool&, const GruStep<double>&);
template void gru_candidate(ThreadPool&, const GruStep<float>&);
template void gru_candidate(ThreadPool&, const GruStep<double>&);
template void gru_backward(ThreadPool&, const GruStepGradient<float>&);
template void gru_backward(ThreadPool&, const GruStepGradient<double>&);
template void gru_candidate_backward(ThreadPool&, const GruStepGradient<float>&);
template void gru_candidate_backward(ThreadPool&, const GruStepGradient<double>&);
template void gru_reset_backward(ThreadPool&, const GruStepGradient<float>&);
template void gru_reset_backward(ThreadPool&, const GruStepGradient<double>&);

}  // namespace gloss::kernels
#endif  // HWY_ONCE
