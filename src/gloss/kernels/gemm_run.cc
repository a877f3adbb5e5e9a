#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "gloss/kernels/gemm_run.cc"  // this file, compiled once a target
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "gloss/kernels/gemm-inl.h"
#include "gloss/kernels/gemm_run.h"

#if HWY_ONCE
#include <algorithm>
#include <optional>

#include "gloss/kernels/scratch.h"

namespace gloss::kernels {
namespace {
HWY_EXPORT(compute_block);
HWY_EXPORT(finish_parts);
HWY_EXPORT(finish_rows);
HWY_EXPORT(column_bytes);
HWY_EXPORT(k_per_word);
HWY_EXPORT(panel_width);
HWY_EXPORT(round_rows);

// Waking a thread costs about 10 us, so a product that one core finishes in less than 25 us stays on it: at
// the operations that a core does in a nanosecond at least, and 30 bytes of B, which come from outside its
// own caches.
bool worth_waking(const Product& p) {
  double operations_a_nanosecond = 100, number_bytes = 4;
  if (p.precision == Precision::bfloat16) {
    operations_a_nanosecond = 200;
    if (p.panels) number_bytes = 2;
  } else if (p.precision == Precision::int8) {
    operations_a_nanosecond = p.starts ? 400 : 100;
    number_bytes = 1;
  }
  const double numbers_of_b = static_cast<double>(p.c.cols) * static_cast<double>(p.k);
  const double operations = 2 * static_cast<double>(p.c.rows) * numbers_of_b;
  return operations / operations_a_nanosecond + number_bytes * numbers_of_b / 30 > 25000;
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

// Rows of a part: with 512 columns 200 KB, which the second-level cache holds beside a panel and the rows.
constexpr int64_t kPartRows = kBlockRows;

// At most 1,024 x 512, so that packing a panel of B serves many rows and a block of A many columns; smaller
// until every thread has four blocks (two where A is packed as well), so that a slow one holds nobody up.
Cut cut_product(const Product& p, int threads, int64_t panel) {
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

void run_block(const Product& p, const Cut& cut, int64_t task) {
  const int64_t row = task / cut.tasks_across * cut.rows, col = task % cut.tasks_across * cut.cols;
  const Block block{row, std::min(cut.rows, p.c.rows - row), col, std::min(cut.cols, p.c.cols - col)};
  HWY_DYNAMIC_DISPATCH(compute_block)(p, block);
}

// A small C with a long sum (dW, whose k are the tokens) would have to be cut into blocks so small that each
// pays much for packing: instead each chain is computed apart, and all are added in their order afterwards.
// At 16 MB at most. With two threads this raised dW of 512 x 512 over 8,000 tokens from 78 to 96 GFLOP/s a
// core, of 256 x 256 from 68 to 90.
bool chains_apart(const Product& p, int threads) {
  const int64_t size = p.c.rows * p.c.cols, chains = ceil_div(p.k, kChain);
  return threads > 1 && !p.panels && chains >= 4 && size <= 512 * 512 && chains * size <= 4 << 20;
}
void run_chains_apart(const Product& p, ThreadPool& pool, int64_t panel) {
  const int64_t m = p.c.rows, n = p.c.cols, chains = ceil_div(p.k, kChain);
  const Scratch<float> parts(chains * m * n);
  // Blocks that pack nothing may be small, so that the threads finish together.
  const bool packs = p.ta == Transpose::no || !read_in_place(p, p.a);
  const Cut cut = cut_evenly(m, n, packs ? 256 : kBlockRows, 512, panel);
  const int64_t blocks = cut.tasks_down * cut.tasks_across;
  pool.parallel_for(chains * blocks, [&](int64_t task) {
    const int64_t chain = task / blocks, k = chain * kChain;
    Product part;
    part.k = std::min(kChain, p.k - k);
    part.a = p.ta == Transpose::yes ? Matrix<const float>{p.a.row(k), part.k, m, p.a.stride}
                                    : Matrix<const float>{p.a.data + k, m, part.k, p.a.stride};
    part.b = p.tb == Transpose::yes ? Matrix<const float>{p.b.data + k, n, part.k, p.b.stride}
                                    : Matrix<const float>{p.b.row(k), part.k, n, p.b.stride};
    part.ta = p.ta;
    part.tb = p.tb;
    part.precision = p.precision;
    part.c = {parts.data() + chain * m * n, m, n, n};
    run_block(part, cut, task % blocks);
  });
  pool.parallel_ranges(m, 16, [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(finish_parts)(p, parts.data(), chains, begin, end - begin);
  });
}

void run_cut(ThreadPool* pool, const Product& p, const Cut& cut) {
  for_tasks(pool, cut.tasks_down * cut.tasks_across, [&](int64_t task) { run_block(p, cut, task); });
}

// All rows of A, rounded.
class RoundedRows {
 public:
  RoundedRows(ThreadPool* pool, const Product& p)
      : stride_(words_stride(ceil_div(p.k, HWY_DYNAMIC_DISPATCH(k_per_word)(p)))),
        words_(p.a.rows * stride_),
        scales_(p.a.rows) {
    // A thread rounds some numbers a nanosecond, so that fewer than 64 K wake nobody.
    const int64_t m = p.a.rows;
    const int64_t grain = m * p.k > 1 << 16 ? std::max<int64_t>(1, (1 << 14) / p.k) : m;
    for_tasks(pool, ceil_div(m, grain), [&](int64_t task) {
      const int64_t row = task * grain, rows = std::min(grain, m - row);
      HWY_DYNAMIC_DISPATCH(round_rows)(p, row, rows, words_.data(), stride_, scales_.data());
    });
  }
  void give_to(Product& p) const {
    p.words = words_.data();
    p.words_stride = stride_;
    p.row_scales = scales_.data();
  }

 private:
  int64_t stride_;
  Scratch<std::byte> words_;
  Scratch<float> scales_;
};

// Packed weights and rows that must be rounded, each once: a task rounds the rows that it computes for all
// columns, or, where there are too few of them for the threads, all are rounded before.
void run_rounded(ThreadPool* pool, Product p, int threads, int64_t panel) {
  const int64_t m = p.c.rows, n = p.c.cols;
  if (threads == 1 || m >= 2 * threads * kBlockRows) {
    const int64_t rows = std::clamp<int64_t>(ceil_div(m, 4 * threads), kBlockRows, 1024);
    return run_cut(pool, p, cut_evenly(m, n, std::min(rows, m), multiple(n, panel), panel));
  }
  const RoundedRows rounded(pool, p);
  rounded.give_to(p);
  run_cut(pool, p, cut_product(p, threads, panel));
}

}  // namespace

void run_own(ThreadPool* pool, const Product& p) {
  if (p.c.rows == 0 || p.c.cols == 0) return;
  const int threads = pool && worth_waking(p) ? pool->threads() : 1;
  const int64_t panel = HWY_DYNAMIC_DISPATCH(panel_width)();
  if (threads == 1) pool = nullptr;
  if (p.precision != Precision::float32 && p.panels) {
    run_rounded(pool, p, threads, panel);
  } else if (chains_apart(p, threads)) {
    run_chains_apart(p, *pool, panel);
  } else {
    run_cut(pool, p, cut_product(p, threads, panel));
  }
}

void run_parts(ThreadPool* pool, const Product& product, ColumnParts parts, const SeePart& see) {
  Product p = product;
  const int64_t part = parts.part, run = parts.run;
  const int64_t m = p.c.rows, n = p.c.cols;
  if (m == 0 || n == 0) return;
  if (!worth_waking(p)) pool = nullptr;
  std::optional<RoundedRows> rounded;
  if (p.precision != Precision::float32) {
    rounded.emplace(pool, p);
    rounded->give_to(p);
  }
  const int64_t column_bytes = HWY_DYNAMIC_DISPATCH(column_bytes)(p);
  const int64_t most_rows = multiple(ceil_div(m, ceil_div(m, kPartRows)), kTileRows);
  // A cache line more, so that rows stay out of each other's cache sets.
  const int64_t stride = std::min(n, part) + 16;
  for_tasks(pool, ceil_div(n, run), [&](int64_t task) {
    const Scratch<float> room(std::min(m, most_rows) * stride);
    const int64_t end = std::min(n, (task + 1) * run);
    for (int64_t col = task * run; col < end; col += part) {
      for (int64_t row = 0; row < m; row += most_rows) {
        const int64_t count = std::min(most_rows, m - row), cols = std::min(part, end - col);
        Product here = p;
        here.a = rows(p.a, row, count);
        if (here.words) {
          here.words += row * p.words_stride;
          here.row_scales += row;
        }
        here.panels += col * column_bytes;
        if (here.channel_scales) here.channel_scales += col;
        if (here.starts) here.starts += col;
        if (here.epilogue.bias) here.epilogue.bias += col;
        here.c = {room.data(), count, cols, stride};
        HWY_DYNAMIC_DISPATCH(compute_block)(here, {0, count, 0, cols});
        see(row, col, here.c);
      }
    }
  });
}

// oneDNN computes plain sums of up to 256 rows a task into scratch, and our way out does the rest.
void run_onednn(ThreadPool* pool, const Product& p, const OnednnWeights* weights) {
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

}  // namespace gloss::kernels
#endif  // HWY_ONCE
