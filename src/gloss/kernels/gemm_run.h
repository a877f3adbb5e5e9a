// How a product is shared out: cut into tasks for the pool, each a call of a kernel.
#pragma once

#include "gloss/base/error.h"
#include "gloss/base/thread_pool.h"
#include "gloss/kernels/gemm_onednn.h"
#include "gloss/kernels/gemm_task.h"
#include "gloss/kernels/packed_matrix.h"

namespace gloss::kernels {

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

// The product by our kernel, on the pool if there is one and it is worth waking.
void run_own(ThreadPool* pool, const Product& product);
// The same in parts, B being packed; C of the product names its shape only.
void run_parts(ThreadPool* pool, const Product& product, ColumnParts parts, const SeePart& see);
// The same by oneDNN, which must serve it; B comes from `weights` if not null.
void run_onednn(ThreadPool* pool, const Product& product, const OnednnWeights* weights);

}  // namespace gloss::kernels
