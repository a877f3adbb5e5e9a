// The one thread pool. It is a good neighbour: idle threads sleep in the kernel, nothing spins.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <type_traits>
#include <vector>

namespace gloss {

class ThreadPool {
 public:
  // `threads` counts the calling thread: ThreadPool(1) starts none. Throws where the system refuses one.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return static_cast<int>(workers_.size()) + 1; }

  // Calls run(task) for every task in [0, tasks), on any thread and in any order, and returns when all are
  // done. A result must therefore not depend on which thread ran what. The first exception is thrown again
  // here. One caller at a time; a call from inside a task runs where it is, one task after another.
  template <class Run>
  void parallel_for(int64_t tasks, Run&& run) {
    if (tasks <= 0) return;
    if (workers_.empty() || tasks == 1 || runs_here()) {
      for (int64_t task = 0; task < tasks; ++task) run(task);
      return;
    }
    dispatch(tasks, const_cast<void*>(static_cast<const void*>(&run)), [](void* context, int64_t task) {
      (*static_cast<std::remove_reference_t<Run>*>(context))(task);
    });
  }

  // Splits [0, count) into ranges of `grain` (the last one shorter) and calls run(begin, end) for each.
  // The ranges depend on `grain` alone, never on the number of threads.
  template <class Run>
  void parallel_ranges(int64_t count, int64_t grain, Run&& run) {
    if (count <= 0) return;
    const int64_t step = grain > 0 ? grain : 1;
    parallel_for((count + step - 1) / step, [&](int64_t task) {
      const int64_t begin = task * step;
      run(begin, begin + step < count ? begin + step : count);
    });
  }

 private:
  using Function = void (*)(void* context, int64_t task);
  void dispatch(int64_t tasks, void* context, Function function);
  void work();
  void run_tasks();
  void stop();
  bool runs_here() const;

  // A job is open while its caller takes tasks; workers may join it only then. A worker that the system wakes
  // late finds it closed and is not waited for: on a busy machine a small job costs no more than its own
  // work.
  static constexpr uint32_t kOpen = uint32_t{1} << 31;

  std::vector<std::thread> workers_;
  std::atomic<uint32_t> generation_{0};  // counts jobs; idle workers wait for it to change
  std::atomic<uint32_t> state_{0};       // kOpen, and how many workers have joined
  std::atomic<int64_t> next_{0};
  std::atomic<bool> stop_{false};
  int64_t tasks_ = 0;
  void* context_ = nullptr;
  Function function_ = nullptr;
  std::mutex error_mutex_;
  std::exception_ptr error_;
};

}  // namespace gloss
