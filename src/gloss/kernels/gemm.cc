#include "gloss/kernels/gemm.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>

#include "gloss/base/error.h"
#include "gloss/kernels/gemm_onednn.h"
#include "gloss/kernels/gemm_run.h"
#include "gloss/kernels/scratch.h"

namespace gloss::kernels {
namespace {

constexpr std::array<std::pair<std::string_view, GemmBackend>, 3> kBackends{
    {{"automatic", GemmBackend::automatic}, {"own", GemmBackend::own}, {"onednn", GemmBackend::onednn}}};
std::atomic<GemmBackend> chosen_backend{GemmBackend::automatic};

// `automatic` is our kernel for every shape. Measured on two Zen 4 cores (AVX-512, peak 118 GFLOP/s a core,
// oneDNN 2.6.3), GFLOP/s a core, ours and oneDNN's:
//   forward  8,000 x 512 x 512: 106, 103     x 2,048: 104, 100     vocabulary 384 x 8,000 x 512: 101, 97
//   dX       8,000 x 512 x 512: 108, 103     dW 512 x 512 over 8,000: 96, 78       (A copied for oneDNN)
//   packed   64 x 512 x 512: 116, 115        5 x 512 x 512: 115, 105               1 x 128 x 128: 51, 16
// oneDNN won at one or two rows of 512 x 2,048 and 2,048 x 512 only (41 to 38, 78 to 72; weights then come
// from the third cache). Tried there without gain: fetching 4, 16 or 32 rows ahead instead of 8, and one
// panel at a time instead of two.
void run_float(ThreadPool* pool, Matrix<const float> a, Transpose ta, Matrix<const float> b, Transpose tb,
               Matrix<float> c, Accumulate accumulate, const Epilogue<float>& epilogue, Precision precision) {
  require_precision(precision);
  require(precision != Precision::int8,
          "a product in int8 needs packed weights: pack them, or choose another precision");
  check_shapes(a, ta, b, tb, c, epilogue);
  Product p;
  p.precision = precision;
  p.a = a;
  p.b = b;
  p.ta = ta;
  p.tb = tb;
  p.c = c;
  p.k = ta == Transpose::yes ? a.rows : a.cols;
  p.accumulate = accumulate;
  p.epilogue = epilogue;
  if (precision == Precision::float32 && gemm_backend() == GemmBackend::onednn && onednn_serves(p, nullptr)) {
    run_onednn(pool, p, nullptr);
  } else {
    run_own(pool, p);
  }
}

// Double precision serves gradient checks: clearness goes before speed.

double activated(Activation activation, double x) {
  switch (activation) {
    case Activation::none:
      return x;
    case Activation::relu:
      return x < 0 ? 0 : x;  // NaN passes
    case Activation::swish:
      return x / (1 + std::exp(-x));
    case Activation::gelu:
      return 0.5 * x * std::erfc(-x * std::sqrt(0.5));
    case Activation::tanh:
      return std::tanh(x);
  }
  return x;
}

void run_double(ThreadPool* pool, Matrix<const double> a, Transpose ta, Matrix<const double> b, Transpose tb,
                Matrix<double> c, Accumulate accumulate, const Epilogue<double>& epilogue,
                Precision precision) {
  require(precision == Precision::float32,
          "a product of double precision cannot be rounded to {}: choose float32", precision_name(precision));
  check_shapes(a, ta, b, tb, c, epilogue);
  const int64_t k = ta == Transpose::yes ? a.rows : a.cols;
  const auto a_at = [&](int64_t i, int64_t p) { return ta == Transpose::yes ? a.row(p)[i] : a.row(i)[p]; };
  const bool threads = pool && c.rows * c.cols * k > 20000;
  for_tasks(threads ? pool : nullptr, c.rows, [&](int64_t i) {
    const Scratch<double> sums(c.cols);
    std::fill_n(sums.data(), c.cols, 0.0);
    for (int64_t p = 0; p < k; ++p) {
      const double x = a_at(i, p);
      double* sum = sums.data();
      if (tb == Transpose::yes) {
        for (int64_t j = 0; j < c.cols; ++j) sum[j] += x * b.row(j)[p];
      } else {
        const double* from = b.row(p);
        for (int64_t j = 0; j < c.cols; ++j) sum[j] += x * from[j];
      }
    }
    for (int64_t j = 0; j < c.cols; ++j) {
      double x = sums[j];
      if (accumulate == Accumulate::yes) x += c.row(i)[j];
      if (epilogue.bias) x += epilogue.bias[j];
      if (epilogue.pre_activation.data) epilogue.pre_activation.row(i)[j] = x;
      c.row(i)[j] = activated(epilogue.activation, x);
    }
  });
}

}  // namespace

template <>
void gemm<float>(ThreadPool& pool, Matrix<const float> a, Transpose ta, Matrix<const float> b, Transpose tb,
                 Matrix<float> c, Accumulate accumulate, const Epilogue<float>& epilogue,
                 Precision precision) {
  run_float(&pool, a, ta, b, tb, c, accumulate, epilogue, precision);
}
template <>
void gemm<double>(ThreadPool& pool, Matrix<const double> a, Transpose ta, Matrix<const double> b,
                  Transpose tb, Matrix<double> c, Accumulate accumulate, const Epilogue<double>& epilogue,
                  Precision precision) {
  run_double(&pool, a, ta, b, tb, c, accumulate, epilogue, precision);
}
template <>
void gemm_serial<float>(Matrix<const float> a, Transpose ta, Matrix<const float> b, Transpose tb,
                        Matrix<float> c, Accumulate accumulate, const Epilogue<float>& epilogue,
                        Precision precision) {
  run_float(nullptr, a, ta, b, tb, c, accumulate, epilogue, precision);
}
template <>
void gemm_serial<double>(Matrix<const double> a, Transpose ta, Matrix<const double> b, Transpose tb,
                         Matrix<double> c, Accumulate accumulate, const Epilogue<double>& epilogue,
                         Precision precision) {
  run_double(nullptr, a, ta, b, tb, c, accumulate, epilogue, precision);
}

void set_gemm_backend(GemmBackend backend) {
  chosen_backend.store(backend, std::memory_order_relaxed);
}
GemmBackend gemm_backend() {
  return chosen_backend.load(std::memory_order_relaxed);
}
GemmBackend parse_gemm_backend(std::string_view name) {
  for (const auto& [known, backend] : kBackends) {
    if (known == name) return backend;
  }
  throw UsageError(
      fmt::format("unknown matrix product backend '{}': choose one of automatic, own, onednn", name));
}
std::string gemm_description(Precision precision) {
  if (precision == Precision::bfloat16)
    return precision_served(precision) ? "AVX512_BF16" : "not on this CPU";
  if (precision == Precision::int8) {
    return vnni_served() ? "AVX512_VNNI" : fmt::format("pairs of 16 bits ({})", isa_name(current_isa()));
  }
  const std::string own = fmt::format("own Highway kernel ({})", isa_name(current_isa()));
  const bool brgemm = current_isa() == Isa::avx512;
  if (gemm_backend() != GemmBackend::onednn) return own;
  return brgemm ? fmt::format("oneDNN {} brgemm; {} where that does not serve", onednn_version(), own)
                : fmt::format("{}; oneDNN {} has no kernel for it that serves", own, onednn_version());
}

}  // namespace gloss::kernels
