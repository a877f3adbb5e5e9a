#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "gloss/kernels/gemm.cc"  // this file, compiled once a target
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "gloss/kernels/gemm-inl.h"
#include "gloss/kernels/gemm.h"

#if HWY_ONCE
#include <fmt/format.h>
#include <hwy/aligned_allocator.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>

#include "gloss/base/error.h"
#include "gloss/kernels/gemm_onednn.h"
#include "gloss/kernels/gemm_task.h"
#include "gloss/kernels/scratch.h"

namespace gloss::kernels {
HWY_EXPORT(compute_block);
HWY_EXPORT(finish_parts);
HWY_EXPORT(finish_rows);
HWY_EXPORT(pack_panels);
HWY_EXPORT(panel_width);

struct PackedMatrix::Body {
  Isa isa = Isa::ssse3;
  int64_t rows = 0, cols = 0;
  size_t bytes = 0;
  hwy::AlignedFreeUniquePtr<float[]> panels;  // of our kernel, or else
  OnednnWeightsPointer onednn;                // in oneDNN's layout
};

namespace {

constexpr std::array<std::pair<std::string_view, GemmBackend>, 3> kBackends{
    {{"automatic", GemmBackend::automatic}, {"own", GemmBackend::own}, {"onednn", GemmBackend::onednn}}};
std::atomic<GemmBackend> chosen_backend{GemmBackend::automatic};

int64_t ceil_div(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}
int64_t multiple(int64_t a, int64_t step) {
  return ceil_div(a, step) * step;
}

template <class T>
void check_shapes(const Matrix<const T>& a, Transpose ta, const Matrix<const T>& b, Transpose tb,
                  const Matrix<T>& c, const Epilogue<T>& epilogue) {
  const int64_t m = ta == Transpose::yes ? a.cols : a.rows, k = ta == Transpose::yes ? a.rows : a.cols;
  const int64_t k_of_b = tb == Transpose::yes ? b.cols : b.rows, n = tb == Transpose::yes ? b.rows : b.cols;
  require(k == k_of_b && m == c.rows && n == c.cols,
          "a matrix product [{}, {}] x [{}, {}] does not give [{}, {}]: make the shapes fit", m, k, k_of_b, n,
          c.rows, c.cols);
  const Matrix<T>& pre = epilogue.pre_activation;
  require(!pre.data || (pre.rows == c.rows && pre.cols == c.cols),
          "the matrix for pre-activations is [{}, {}], the product [{}, {}]: make them equal", pre.rows,
          pre.cols, c.rows, c.cols);
}

// Runs tasks on the pool, or here if there is none.
template <class Run>
void for_tasks(ThreadPool* pool, int64_t tasks, Run&& run) {
  if (pool) {
    pool->parallel_for(tasks, run);
  } else {
    for (int64_t task = 0; task < tasks; ++task) run(task);
  }
}

// Waking a thread costs about 10 us, so a product that one core finishes in less than 25 us stays on it:
// at 100 floating-point operations and 30 bytes of B a nanosecond.
bool worth_waking(const FloatProduct& p) {
  const double multiplications =
      static_cast<double>(p.c.rows) * static_cast<double>(p.c.cols) * static_cast<double>(p.k);
  const double bytes = 4.0 * static_cast<double>(p.c.cols) * static_cast<double>(p.k);
  return 2 * multiplications / 100 + bytes / 30 > 25000;
}

// How C is cut into blocks, one a task. The cut never changes a result: it may depend on threads.
struct Cut {
  int64_t rows, cols;  // of a block
  int64_t tasks_down, tasks_across;
};

Cut cut_evenly(int64_t m, int64_t n, int64_t rows, int64_t cols, int64_t panel) {
  Cut cut;
  cut.rows = multiple(ceil_div(m, ceil_div(m, rows)), kTileRows);
  cut.cols = multiple(ceil_div(n, ceil_div(n, cols)), panel);
  cut.tasks_down = ceil_div(m, cut.rows);
  cut.tasks_across = ceil_div(n, cut.cols);
  return cut;
}

// At most 1,024 x 512, so that packing a panel of B serves many rows and a block of A many columns; smaller
// until every thread has four blocks (two where A is packed as well), so that a slow one holds nobody up.
Cut cut_product(const FloatProduct& p, int threads, int64_t panel) {
  const int64_t m = p.c.rows, n = p.c.cols;
  int64_t rows = std::min<int64_t>(m, 1024), cols = std::min<int64_t>(multiple(n, panel), 512);
  const int64_t least_rows = p.panels ? 4 * kTileRows : kBlockRows;
  const int64_t wanted = threads > 1 ? (p.ta == Transpose::yes ? 2 : 4) * threads : 1;
  while (ceil_div(m, rows) * ceil_div(n, cols) < wanted) {
    if (rows >= 2 * least_rows && (rows >= cols || cols <= panel)) {
      rows = multiple(ceil_div(rows, 2), kTileRows);
    } else if (cols > panel) {
      cols = multiple(ceil_div(cols, 2), panel);
    } else {
      break;
    }
  }
  return cut_evenly(m, n, rows, cols, panel);
}

void run_block(const FloatProduct& p, const Cut& cut, int64_t task) {
  const int64_t row = task / cut.tasks_across * cut.rows, col = task % cut.tasks_across * cut.cols;
  const Block block{row, std::min(cut.rows, p.c.rows - row), col, std::min(cut.cols, p.c.cols - col)};
  HWY_DYNAMIC_DISPATCH(compute_block)(p, block);
}

// A small C with a long sum (dW, whose k are the tokens) would have to be cut into blocks so small that each
// pays much for packing: instead each chain is computed apart, and all are added in their order afterwards.
// At 16 MB at most. With two threads this raised dW of 512 x 512 over 8,000 tokens from 78 to 96 GFLOP/s a
// core, of 256 x 256 from 68 to 90.
bool chains_apart(const FloatProduct& p, int threads) {
  const int64_t size = p.c.rows * p.c.cols, chains = ceil_div(p.k, kChain);
  return threads > 1 && !p.panels && chains >= 4 && size <= 512 * 512 && chains * size <= 4 << 20;
}
void run_chains_apart(const FloatProduct& p, ThreadPool& pool, int64_t panel) {
  const int64_t m = p.c.rows, n = p.c.cols, chains = ceil_div(p.k, kChain);
  const Scratch<float> parts(chains * m * n);
  const Cut cut = cut_evenly(m, n, 256, 512, panel);
  const int64_t blocks = cut.tasks_down * cut.tasks_across;
  pool.parallel_for(chains * blocks, [&](int64_t task) {
    const int64_t chain = task / blocks, k = chain * kChain;
    FloatProduct part;
    part.k = std::min(kChain, p.k - k);
    part.a = p.ta == Transpose::yes ? Matrix<const float>{p.a.row(k), part.k, m, p.a.stride}
                                    : Matrix<const float>{p.a.data + k, m, part.k, p.a.stride};
    part.b = p.tb == Transpose::yes ? Matrix<const float>{p.b.data + k, n, part.k, p.b.stride}
                                    : Matrix<const float>{p.b.row(k), part.k, n, p.b.stride};
    part.ta = p.ta;
    part.tb = p.tb;
    part.c = {parts.data() + chain * m * n, m, n, n};
    run_block(part, cut, task % blocks);
  });
  pool.parallel_ranges(m, 16, [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(finish_parts)(p, parts.data(), chains, begin, end - begin);
  });
}

void run_own(ThreadPool* pool, const FloatProduct& p) {
  if (p.c.rows == 0 || p.c.cols == 0) return;
  const int threads = pool && worth_waking(p) ? pool->threads() : 1;
  const int64_t panel = HWY_DYNAMIC_DISPATCH(panel_width)();
  if (chains_apart(p, threads)) return run_chains_apart(p, *pool, panel);
  const Cut cut = cut_product(p, threads, panel);
  for_tasks(threads > 1 ? pool : nullptr, cut.tasks_down * cut.tasks_across,
            [&](int64_t task) { run_block(p, cut, task); });
}

// oneDNN computes plain sums of up to 256 rows a task into scratch, and our way out does the rest.
void run_onednn(ThreadPool* pool, const FloatProduct& p, const OnednnWeights* weights) {
  const int threads = pool && worth_waking(p) ? pool->threads() : 1;
  const int64_t share = multiple(ceil_div(p.c.rows, threads), 16);
  const int64_t step = std::min(kOnednnRows, share), tasks = ceil_div(p.c.rows, step);
  for_tasks(threads > 1 ? pool : nullptr, tasks, [&](int64_t task) {
    const int64_t row = task * step, rows = std::min(step, p.c.rows - row);
    const Scratch<float> sums(onednn_bucket(rows) * p.c.cols);
    onednn_rows(p, weights, row, rows, sums.data());
    HWY_DYNAMIC_DISPATCH(finish_rows)(p, sums.data(), row, rows);
  });
}

// `automatic` is our kernel for every shape. Measured on two Zen 4 cores (AVX-512, peak 118 GFLOP/s a core,
// oneDNN 2.6.3), GFLOP/s a core, ours and oneDNN's:
//   forward  8,000 x 512 x 512: 106, 103     x 2,048: 104, 100     vocabulary 384 x 8,000 x 512: 101, 97
//   dX       8,000 x 512 x 512: 108, 103     dW 512 x 512 over 8,000: 96, 78       (A copied for oneDNN)
//   packed   64 x 512 x 512: 116, 115        5 x 512 x 512: 115, 105               1 x 128 x 128: 51, 16
// oneDNN won at one or two rows of 512 x 2,048 and 2,048 x 512 only (41 to 38, 78 to 72; weights then come
// from the third cache). Tried there without gain: fetching 4, 16 or 32 rows ahead instead of 8, and one
// panel at a time instead of two.
void run_float(ThreadPool* pool, Matrix<const float> a, Transpose ta, Matrix<const float> b, Transpose tb,
               Matrix<float> c, Accumulate accumulate, const Epilogue<float>& epilogue) {
  check_shapes(a, ta, b, tb, c, epilogue);
  FloatProduct p;
  p.a = a;
  p.b = b;
  p.ta = ta;
  p.tb = tb;
  p.c = c;
  p.k = ta == Transpose::yes ? a.rows : a.cols;
  p.accumulate = accumulate;
  p.epilogue = epilogue;
  if (gemm_backend() == GemmBackend::onednn && onednn_serves(p, nullptr)) {
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
                Matrix<double> c, Accumulate accumulate, const Epilogue<double>& epilogue) {
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
                 Matrix<float> c, Accumulate accumulate, const Epilogue<float>& epilogue) {
  run_float(&pool, a, ta, b, tb, c, accumulate, epilogue);
}
template <>
void gemm<double>(ThreadPool& pool, Matrix<const double> a, Transpose ta, Matrix<const double> b,
                  Transpose tb, Matrix<double> c, Accumulate accumulate, const Epilogue<double>& epilogue) {
  run_double(&pool, a, ta, b, tb, c, accumulate, epilogue);
}
template <>
void gemm_serial<float>(Matrix<const float> a, Transpose ta, Matrix<const float> b, Transpose tb,
                        Matrix<float> c, Accumulate accumulate, const Epilogue<float>& epilogue) {
  run_float(nullptr, a, ta, b, tb, c, accumulate, epilogue);
}
template <>
void gemm_serial<double>(Matrix<const double> a, Transpose ta, Matrix<const double> b, Transpose tb,
                         Matrix<double> c, Accumulate accumulate, const Epilogue<double>& epilogue) {
  run_double(nullptr, a, ta, b, tb, c, accumulate, epilogue);
}

int64_t PackedMatrix::rows() const {
  return body_ ? body_->rows : 0;
}
int64_t PackedMatrix::cols() const {
  return body_ ? body_->cols : 0;
}
size_t PackedMatrix::bytes() const {
  return body_ ? body_->bytes : 0;
}
Isa PackedMatrix::isa() const {
  return body_ ? body_->isa : current_isa();
}

PackedMatrix pack(Matrix<const float> weights, Transpose stored) {
  auto body = std::make_shared<PackedMatrix::Body>();
  body->isa = current_isa();
  body->rows = stored == Transpose::yes ? weights.rows : weights.cols;
  body->cols = stored == Transpose::yes ? weights.cols : weights.rows;
  // Our own form is there in any case: whether oneDNN serves is asked again for each number of rows.
  const int64_t lanes = 16;  // of the widest vectors: at most 15 spare columns
  const auto floats = static_cast<size_t>(multiple(body->rows, lanes) * body->cols);
  body->bytes = floats * sizeof(float);
  body->panels = hwy::AllocateAligned<float>(std::max<size_t>(floats, 1));
  if (body->panels == nullptr) throw std::bad_alloc();
  HWY_DYNAMIC_DISPATCH(pack_panels)
  (weights, stored, body->rows, body->cols, body->panels.get());
  if (gemm_backend() == GemmBackend::onednn && stored == Transpose::yes)
    body->onednn = pack_for_onednn(weights);
  if (body->onednn) body->bytes += bytes_of(*body->onednn);
  return PackedMatrix(std::move(body));
}

void gemm_packed(ThreadPool& pool, Matrix<const float> x, const PackedMatrix& w, Matrix<float> y,
                 Accumulate accumulate, const Epilogue<float>& epilogue) {
  require(static_cast<bool>(w), "the weights of a product are empty: pack them first");
  const PackedMatrix::Body& body = *w.body();
  require(body.isa == current_isa(),
          "weights packed for {} cannot be used while kernels run on {}: pack them again", isa_name(body.isa),
          isa_name(current_isa()));
  check_shapes<float>(x, Transpose::no, {nullptr, body.rows, body.cols, body.cols}, Transpose::yes, y,
                      epilogue);
  FloatProduct p;
  p.a = x;
  p.panels = body.panels.get();
  p.c = y;
  p.k = body.cols;
  p.accumulate = accumulate;
  p.epilogue = epilogue;
  if (body.onednn && onednn_serves(p, body.onednn.get())) {
    run_onednn(&pool, p, body.onednn.get());
  } else {
    run_own(&pool, p);
  }
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
std::string gemm_description() {
  const std::string own = fmt::format("own Highway kernel ({})", isa_name(current_isa()));
  const bool brgemm = current_isa() == Isa::avx512;
  if (gemm_backend() != GemmBackend::onednn) return own;
  return brgemm ? fmt::format("oneDNN {} brgemm; {} where that does not serve", onednn_version(), own)
                : fmt::format("{}; oneDNN {} has no kernel for it that serves", own, onednn_version());
}

}  // namespace gloss::kernels
#endif  // HWY_ONCE
