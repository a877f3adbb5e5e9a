// GFLOP/s of the matrix product and its share of the measured peak, for the shapes of training and decoding,
// by our kernel in every precision that serves and by oneDNN in float32. Choose with --benchmark_filter, e.g.
// 'dW.*own.*threads:2' or 'decode.*int8'. GFLOP/s is by the clock on the wall, GFLOP/core_s by the processor
// time used, which other programs disturb less, best_core by the best of all runs; weights_GB/s is how fast
// packed weights pass at that speed. An int8 operation counts as a FLOP.
#include <benchmark/benchmark.h>

#include <time.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "gloss/base/random.h"
#include "gloss/kernels/gemm.h"
#include "peak.h"

namespace gloss::bench {
namespace {

using kernels::Accumulate;
using kernels::GemmBackend;
using kernels::Matrix;
using kernels::Precision;
using kernels::Transpose;

enum class Kind { forward, d_input, d_weights, packed };

struct Shape {
  const char* name;
  Kind kind;
  int64_t m, n, k;
};
// Tokens x widths of the presets tiny (128), small (256) and base (512), the vocabulary in blocks of 384
// tokens, and decoding steps with packed weights.
constexpr std::array kShapes{
    // of `tiny` (128), `small` (256), `base` (512)
    Shape{"forward", Kind::forward, 4000, 128, 128},
    Shape{"forward", Kind::forward, 4000, 256, 256},
    Shape{"forward", Kind::forward, 8000, 512, 512},
    Shape{"forward", Kind::forward, 8000, 2048, 512},
    Shape{"forward", Kind::forward, 8000, 512, 2048},
    Shape{"vocabulary", Kind::forward, 512, 8000, 128},
    Shape{"vocabulary", Kind::forward, 384, 8000, 512},
    Shape{"dX", Kind::d_input, 4000, 128, 512},
    Shape{"dX", Kind::d_input, 8000, 512, 512},
    Shape{"vocabulary_dX", Kind::d_input, 512, 128, 8000},
    Shape{"vocabulary_dX", Kind::d_input, 384, 512, 8000},
    Shape{"dW", Kind::d_weights, 128, 128, 4000},
    Shape{"dW", Kind::d_weights, 384, 128, 4000},
    Shape{"dW", Kind::d_weights, 512, 128, 4000},
    Shape{"dW", Kind::d_weights, 128, 512, 4000},
    Shape{"dW", Kind::d_weights, 256, 256, 8000},
    Shape{"dW", Kind::d_weights, 512, 512, 8000},
    Shape{"dW", Kind::d_weights, 2048, 512, 8000},
    Shape{"dW", Kind::d_weights, 512, 2048, 8000},
    Shape{"vocabulary_dW", Kind::d_weights, 8000, 128, 512},
    Shape{"vocabulary_dW", Kind::d_weights, 8000, 512, 384},
    Shape{"decode", Kind::packed, 1, 512, 512},
    Shape{"decode", Kind::packed, 5, 512, 512},
    Shape{"decode", Kind::packed, 64, 512, 512},
    Shape{"decode", Kind::packed, 1, 2048, 512},
    Shape{"decode", Kind::packed, 5, 2048, 512},
    Shape{"decode", Kind::packed, 1, 512, 2048},
    Shape{"decode", Kind::packed, 5, 512, 2048},
    Shape{"decode", Kind::packed, 64, 512, 2048},
    Shape{"decode", Kind::packed, 64, 2048, 512},
    Shape{"decode", Kind::packed, 320, 2048, 512},
    Shape{"decode", Kind::packed, 1, 8000, 512},
    Shape{"decode", Kind::packed, 5, 8000, 512},
    Shape{"decode", Kind::packed, 64, 8000, 512},
    Shape{"encode", Kind::packed, 4000, 512, 512},
    Shape{"encode", Kind::packed, 4000, 2048, 512},
};

// Who computes, and in which numbers.
struct Maker {
  const char* name;
  GemmBackend backend;
  Precision precision;
};
constexpr std::array kMakers{
    Maker{"own", GemmBackend::own, Precision::float32},
    Maker{"onednn", GemmBackend::onednn, Precision::float32},
    Maker{"bfloat16", GemmBackend::own, Precision::bfloat16},
    Maker{"int8", GemmBackend::own, Precision::int8},
};

std::vector<float> numbers(int64_t count, uint64_t seed) {
  const RandomKey key(seed);
  std::vector<float> values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(2 * key.uniform(i) - 1);
  return values;
}

ThreadPool& pool_of(int threads) {
  static std::map<int, std::unique_ptr<ThreadPool>> pools;
  auto& pool = pools[threads];
  if (!pool) pool = std::make_unique<ThreadPool>(threads);
  return *pool;
}

double peak_of_core(Precision precision) {
  static std::map<Precision, double> peaks;
  const auto [peak, is_new] = peaks.try_emplace(precision);
  if (is_new) peak->second = peak_operations(precision);
  return peak->second;
}

double seconds(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

void run(benchmark::State& state, const Shape& s, const Maker& maker, int threads) {
  set_gemm_backend(maker.backend);
  ThreadPool& pool = pool_of(threads);
  const std::vector<float> a = numbers(s.m * s.k, 1), b = numbers(s.k * s.n, 2);
  std::vector<float> c(static_cast<size_t>(s.m * s.n));
  const bool ta = s.kind == Kind::d_weights, tb = s.kind == Kind::forward || s.kind == Kind::packed;
  const Matrix<const float> left =
      ta ? Matrix<const float>{a.data(), s.k, s.m, s.m} : Matrix<const float>{a.data(), s.m, s.k, s.k};
  const Matrix<const float> right =
      tb ? Matrix<const float>{b.data(), s.n, s.k, s.k} : Matrix<const float>{b.data(), s.k, s.n, s.n};
  const Matrix<float> out{c.data(), s.m, s.n, s.n};
  const kernels::PackedMatrix packed = s.kind == Kind::packed
                                           ? kernels::pack(right, Transpose::yes, maker.precision)
                                           : kernels::PackedMatrix();
  const double gflop = 2e-9 * static_cast<double>(s.m) * static_cast<double>(s.n) * static_cast<double>(s.k);
  const int repeats = std::max(1, static_cast<int>(0.02 / gflop));  // reading the clocks takes its time
  double wall = 0, busy = 0, best = 1e9;
  for (auto _ : state) {
    const double busy_before = seconds(CLOCK_PROCESS_CPUTIME_ID), wall_before = seconds(CLOCK_MONOTONIC);
    for (int i = 0; i < repeats; ++i) {
      if (packed) {
        gemm_packed(pool, left, packed, out);
      } else {
        kernels::gemm<float>(pool, left, Transpose(ta), right, Transpose(tb), out, Accumulate(ta), {},
                             maker.precision);
      }
    }
    const double took = (seconds(CLOCK_MONOTONIC) - wall_before) / repeats;
    const double used = (seconds(CLOCK_PROCESS_CPUTIME_ID) - busy_before) / repeats;
    wall += took;
    busy += used;
    best = std::min(best, used);
    state.SetIterationTime(took);
  }
  const double peak = 1e-9 * peak_of_core(maker.precision), runs = static_cast<double>(state.iterations());
  state.counters["GFLOP/s"] = gflop * runs / wall;
  state.counters["of_peak"] = gflop * runs / wall / (peak * threads);
  state.counters["GFLOP/core_s"] = gflop * runs / busy;
  state.counters["of_core_peak"] = gflop * runs / busy / peak;
  state.counters["best_core"] = gflop / best;
  state.counters["best_of_peak"] = gflop / best / peak;
  const double number_bytes = maker.precision == Precision::float32 ? 4
                              : maker.precision == Precision::int8  ? 1
                                                                    : 2;
  if (packed) state.counters["weights_GB/s"] = 1e-9 * number_bytes * static_cast<double>(s.n * s.k) / best;
}

void register_all() {
  for (const Shape& shape : kShapes) {
    for (const Maker& maker : kMakers) {
      if (!precision_served(maker.precision)) continue;
      if (maker.precision == Precision::int8 && shape.kind != Kind::packed) continue;
      for (const int threads : {1, 2}) {
        const std::string name = std::string(shape.name) + "/M:" + std::to_string(shape.m) +
                                 "/N:" + std::to_string(shape.n) + "/K:" + std::to_string(shape.k) + "/" +
                                 maker.name + "/threads:" + std::to_string(threads);
        auto* registered = benchmark::RegisterBenchmark(
            name.c_str(),
            [&shape, &maker, threads](benchmark::State& state) { run(state, shape, maker, threads); });
        registered->Unit(benchmark::kMicrosecond)->UseManualTime();
      }
    }
  }
}

}  // namespace
}  // namespace gloss::bench

int main(int argc, char** argv) {
  gloss::kernels::limit_isa_from_environment();
  gloss::bench::register_all();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  using gloss::kernels::Precision;
  benchmark::AddCustomContext("gemm", gloss::kernels::gemm_description());
  benchmark::AddCustomContext("bfloat16", gloss::kernels::gemm_description(Precision::bfloat16));
  benchmark::AddCustomContext("int8", gloss::kernels::gemm_description(Precision::int8));
  for (const Precision precision : {Precision::float32, Precision::bfloat16, Precision::int8}) {
    benchmark::AddCustomContext(
        "peak " + std::string(precision_name(precision)),
        std::to_string(gloss::bench::peak_operations(precision) / 1e9) + " GFLOP/s a core");
  }
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
}
