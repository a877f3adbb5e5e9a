#include "gloss/base/thread_pool.h"

#include "gloss/base/error.h"

namespace gloss {

ThreadPool::ThreadPool(int threads) {
  require(threads >= 1 && threads <= 1024, "a thread pool needs 1 to 1024 threads, not {}", threads);
  workers_.reserve(static_cast<size_t>(threads) - 1);
  for (int i = 1; i < threads; ++i) workers_.emplace_back([this] { work(); });
}

ThreadPool::~ThreadPool() {
  stop_ = true;
  generation_.fetch_add(1, std::memory_order_release);
  generation_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::dispatch(int64_t tasks, void* context, Function function) {
  tasks_ = tasks;
  context_ = context;
  function_ = function;
  error_ = nullptr;
  next_.store(0, std::memory_order_relaxed);
  busy_.store(static_cast<uint32_t>(workers_.size()), std::memory_order_relaxed);
  generation_.fetch_add(1, std::memory_order_release);
  generation_.notify_all();
  run_tasks();
  for (uint32_t busy = busy_.load(std::memory_order_acquire); busy != 0;
       busy = busy_.load(std::memory_order_acquire)) {
    busy_.wait(busy, std::memory_order_acquire);
  }
  if (error_) std::rethrow_exception(error_);
}

void ThreadPool::run_tasks() {
  for (int64_t task = next_.fetch_add(1, std::memory_order_relaxed); task < tasks_;
       task = next_.fetch_add(1, std::memory_order_relaxed)) {
    try {
      function_(context_, task);
    } catch (...) {
      const std::lock_guard lock(error_mutex_);
      if (!error_) error_ = std::current_exception();
    }
  }
}

void ThreadPool::work() {
  uint32_t seen = 0;
  while (true) {
    generation_.wait(seen, std::memory_order_acquire);
    const uint32_t now = generation_.load(std::memory_order_acquire);
    if (now == seen) continue;  // woken for nothing
    seen = now;
    if (stop_) return;
    run_tasks();
    if (busy_.fetch_sub(1, std::memory_order_acq_rel) == 1) busy_.notify_one();
  }
}

}  // namespace gloss
