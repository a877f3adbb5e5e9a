#include "gloss/base/thread_pool.h"

#include <system_error>
#include <utility>

#include "gloss/base/error.h"

namespace gloss {
namespace {
thread_local const ThreadPool* inside = nullptr;  // the pool whose task this thread runs
}

bool ThreadPool::runs_here() const {
  return inside == this;
}

ThreadPool::ThreadPool(int threads) {
  require(threads >= 1 && threads <= 1024, "a thread pool needs 1 to 1024 threads, not {}", threads);
  workers_.reserve(static_cast<size_t>(threads) - 1);
  for (int i = 1; i < threads; ++i) {
    try {
      workers_.emplace_back([this] { work(); });
    } catch (const std::system_error& error) {
      stop();
      fail("the system starts no more than {} threads ({}): ask for fewer", i, error.what());
    }
  }
}

ThreadPool::~ThreadPool() {
  stop();
}

void ThreadPool::stop() {
  stop_.store(true, std::memory_order_relaxed);
  generation_.fetch_add(1, std::memory_order_release);
  generation_.notify_all();
  for (std::thread& worker : workers_) worker.join();
  workers_.clear();
}

void ThreadPool::dispatch(int64_t tasks, void* context, Function function) {
  // Nobody has joined since the last job was closed, so these are ours to change.
  tasks_ = tasks;
  context_ = context;
  function_ = function;
  error_ = nullptr;
  next_.store(0, std::memory_order_relaxed);
  state_.store(kOpen, std::memory_order_release);
  generation_.fetch_add(1, std::memory_order_release);
  generation_.notify_all();
  run_tasks();
  for (uint32_t joined = state_.fetch_and(~kOpen, std::memory_order_acq_rel) & ~kOpen; joined != 0;
       joined = state_.load(std::memory_order_acquire)) {
    state_.wait(joined, std::memory_order_acquire);
  }
  if (error_) std::rethrow_exception(error_);
}

void ThreadPool::run_tasks() {
  const ThreadPool* const outside = std::exchange(inside, this);
  for (int64_t task = next_.fetch_add(1, std::memory_order_relaxed); task < tasks_;
       task = next_.fetch_add(1, std::memory_order_relaxed)) {
    try {
      function_(context_, task);
    } catch (...) {
      const std::lock_guard lock(error_mutex_);
      if (!error_) error_ = std::current_exception();
    }
  }
  inside = outside;
}

void ThreadPool::work() {
  while (true) {
    const uint32_t seen = generation_.load(std::memory_order_acquire);
    if (stop_.load(std::memory_order_relaxed)) return;
    uint32_t state = state_.load(std::memory_order_relaxed);
    while ((state & kOpen) != 0) {
      if (!state_.compare_exchange_weak(state, state + 1, std::memory_order_acq_rel)) continue;
      run_tasks();
      // The last one out of a closed job wakes its caller.
      if (state_.fetch_sub(1, std::memory_order_acq_rel) == 1) state_.notify_one();
      break;
    }
    // After a job, and when none was open: until the next one.
    generation_.wait(seen, std::memory_order_acquire);
  }
}

}  // namespace gloss
