#include "gloss/kernels/gemm_onednn.h"

#include <fmt/format.h>
#include <omp.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <deque>
#include <map>
#include <mutex>
#include <oneapi/dnnl/dnnl.hpp>
#include <string_view>
#include <tuple>

#include "gloss/base/error.h"
#include "gloss/kernels/isa.h"
#include "gloss/kernels/scratch.h"

// What oneDNN 2.6 needs to be right, as measured: brgemm only (its other f32 kernels round differently with
// the number of rows); one primitive for each number of rows, hence buckets; the user's scratchpad (its own
// races between threads); one thread for each call; dense rows; nothing empty.
namespace gloss::kernels {
namespace {

using dnnl::memory;

// oneDNN splits work by OpenMP. Our pool splits it, so the calling thread asks for one, and gives back what
// it had: the setting belongs to the thread, not to the process.
class OneThread {
 public:
  OneThread() : before_(omp_get_max_threads()) { omp_set_num_threads(1); }
  ~OneThread() { omp_set_num_threads(before_); }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  int before_;
};

const dnnl::engine& cpu() {
  static const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

enum class Layout : uint8_t { rows, columns, packed };  // of B: [K, N], stored [N, K], oneDNN's choice

struct Primitive {
  dnnl::matmul primitive;
  memory::desc a, b, c, scratch;
  bool brgemm = false;
};

memory::desc plain(int64_t rows, int64_t cols, Layout layout = Layout::rows) {
  const auto tag = layout == Layout::rows      ? memory::format_tag::ab
                   : layout == Layout::columns ? memory::format_tag::ba
                                               : memory::format_tag::any;
  return {{rows, cols}, memory::data_type::f32, tag};
}

std::shared_ptr<const Primitive> make_primitive(int64_t m, int64_t n, int64_t k, Layout layout,
                                                const memory::desc* packed) {
  const OneThread one_thread;
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  const memory::desc b = packed ? *packed : plain(k, n, layout);
  const dnnl::matmul::desc desc(plain(m, k), b, plain(m, n));
  const dnnl::matmul::primitive_desc chosen(desc, attributes, cpu());
  auto made = std::make_shared<Primitive>();
  made->brgemm = std::string_view(chosen.impl_info_str()).starts_with("brg");
  made->a = chosen.src_desc();
  made->b = chosen.weights_desc();
  made->c = chosen.dst_desc();
  made->scratch = chosen.scratchpad_desc();
  if (made->brgemm) made->primitive = dnnl::matmul(chosen);
  return made;
}

// Making a primitive takes 120 to 370 us and 50 to 78 KB, so the last 256 are kept (about 16 MB); oldest out
// first. A primitive in use outlives its place here.
class PrimitiveCache {
 public:
  std::shared_ptr<const Primitive> get(int64_t m, int64_t n, int64_t k, Layout layout,
                                       const memory::desc* packed) {
    const Key key{m, n, k, layout};
    const std::lock_guard lock(mutex_);
    const auto found = primitives_.find(key);
    if (found != primitives_.end()) return found->second;
    if (order_.size() == kMost) {
      primitives_.erase(order_.front());
      order_.pop_front();
    }
    auto primitive = make_primitive(m, n, k, layout, packed);
    primitives_.emplace(key, primitive);
    order_.push_back(key);
    return primitive;
  }

 private:
  using Key = std::tuple<int64_t, int64_t, int64_t, Layout>;
  static constexpr size_t kMost = 256;
  std::mutex mutex_;
  std::map<Key, std::shared_ptr<const Primitive>> primitives_;
  std::deque<Key> order_;
};

// oneDNN's primitives depend on the process's CPU and nothing else, so one cache serves all.
PrimitiveCache& cache() {
  static PrimitiveCache primitives;
  return primitives;
}

Layout layout_of(const Product& p, const OnednnWeights* weights) {
  if (weights) return Layout::packed;
  return p.tb == Transpose::yes ? Layout::columns : Layout::rows;
}

// dense [bucket, k] = rows of op(A), the spare rows zero.
void copy_rows(const Product& p, int64_t row, int64_t rows, int64_t bucket, float* dense) {
  if (p.ta == Transpose::yes) {
    // 16 x 16 pieces, so that both sides move by whole cache lines.
    for (int64_t k = 0; k < p.k; k += 16) {
      const int64_t k_end = std::min(p.k, k + 16);
      for (int64_t i = 0; i < rows; i += 16) {
        const int64_t i_end = std::min(rows, i + 16);
        for (int64_t kk = k; kk < k_end; ++kk) {
          const float* from = p.a.row(kk) + row;
          for (int64_t ii = i; ii < i_end; ++ii) dense[ii * p.k + kk] = from[ii];
        }
      }
    }
  } else {
    for (int64_t i = 0; i < rows; ++i) std::copy_n(p.a.row(row + i), p.k, dense + i * p.k);
  }
  std::fill(dense + rows * p.k, dense + bucket * p.k, 0.0f);
}

}  // namespace

struct OnednnWeights {
  memory::desc desc;
  memory data;
};
void OnednnWeightsDelete::operator()(const OnednnWeights* weights) const {
  delete weights;
}

OnednnWeightsPointer pack_for_onednn(Matrix<const float> weights) {
  const int64_t n = weights.rows, k = weights.cols;
  if (current_isa() != Isa::avx512 || n == 0 || k == 0) return nullptr;
  try {
    // Asked for one number of rows and one thread: the preferred layout varies with both, but any serves all.
    const auto product = cache().get(kOnednnRows, n, k, Layout::packed, nullptr);
    if (!product->brgemm) return nullptr;
    const OneThread one_thread;
    OnednnWeightsPointer packed(new OnednnWeights{product->b, memory(product->b, cpu())});
    const memory::desc stored({k, n}, memory::data_type::f32, memory::dims{1, weights.stride});
    memory from(stored, cpu(), const_cast<float*>(weights.data));
    memory to = packed->data;
    dnnl::stream stream(cpu());
    dnnl::reorder(from, to).execute(stream, from, to);
    stream.wait();
    return packed;
  } catch (const dnnl::error& error) {
    fail("oneDNN could not pack weights of [{}, {}]: {}", n, k, error.what());
  }
}

size_t bytes_of(const OnednnWeights& weights) {
  return weights.desc.get_size();
}

int64_t onednn_bucket(int64_t rows) {
  const int64_t step = rows <= 8 ? 1 : rows <= 32 ? 4 : 16;
  return (rows + step - 1) / step * step;
}

bool onednn_serves(const Product& p, const OnednnWeights* weights) {
  if (current_isa() != Isa::avx512 || p.c.rows == 0 || p.c.cols == 0 || p.k == 0) return false;
  if (!weights && (p.panels || p.b.stride != p.b.cols)) return false;
  const int64_t rows = onednn_bucket(std::min(p.c.rows, kOnednnRows));
  return cache().get(rows, p.c.cols, p.k, layout_of(p, weights), weights ? &weights->desc : nullptr)->brgemm;
}

void onednn_rows(const Product& p, const OnednnWeights* weights, int64_t row, int64_t rows, float* sums) {
  const int64_t bucket = onednn_bucket(rows);
  try {
    const auto product =
        cache().get(bucket, p.c.cols, p.k, layout_of(p, weights), weights ? &weights->desc : nullptr);
    const bool in_place = p.ta == Transpose::no && p.a.stride == p.k && bucket == rows;
    const Scratch<float> dense(in_place ? 0 : bucket * p.k);
    if (!in_place) copy_rows(p, row, rows, bucket, dense.data());
    const float* a = in_place ? p.a.row(row) : dense.data();
    const Scratch<std::byte> workspace(static_cast<int64_t>(product->scratch.get_size()));
    const OneThread one_thread;
    dnnl::stream stream(cpu());
    memory source(product->a, cpu(), const_cast<float*>(a));
    memory right = weights ? weights->data : memory(product->b, cpu(), const_cast<float*>(p.b.data));
    memory target(product->c, cpu(), sums);
    memory scratch(product->scratch, cpu(), workspace.data());
    const std::array<dnnl_exec_arg_t, 4> arguments{{{DNNL_ARG_SRC, source.get()},
                                                    {DNNL_ARG_WEIGHTS, right.get()},
                                                    {DNNL_ARG_DST, target.get()},
                                                    {DNNL_ARG_SCRATCHPAD, scratch.get()}}};
    const dnnl_status_t status = dnnl_primitive_execute(product->primitive.get(), stream.get(),
                                                        static_cast<int>(arguments.size()), arguments.data());
    require(status == dnnl_success, "oneDNN failed with status {} in a product of {} rows, [{}, {}]",
            static_cast<int>(status), bucket, p.k, p.c.cols);
    stream.wait();
  } catch (const dnnl::error& error) {
    fail("oneDNN failed in a product of {} rows, [{}, {}]: {}", bucket, p.k, p.c.cols, error.what());
  }
}

std::string onednn_version() {
  const dnnl::version_t* version = dnnl::version();
  return fmt::format("{}.{}.{}", version->major, version->minor, version->patch);
}

}  // namespace gloss::kernels
