// Working memory of a kernel call, recycled by the calling thread: a warm call asks the system for nothing.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gloss::kernels {

namespace internal {
// The thread's stack of aligned buffers. Buffers grow and stay until the thread ends.
void* scratch_take(size_t bytes);
void scratch_give_back();
}  // namespace internal

// `count` uninitialised numbers, aligned to 64 bytes and followed by 128 bytes of slack. Scratches of one
// thread are given back in the reverse order of taking, which scopes see to.
template <class T>
class Scratch {
 public:
  explicit Scratch(int64_t count)
      : data_(static_cast<T*>(internal::scratch_take(static_cast<size_t>(count) * sizeof(T)))) {}
  ~Scratch() { internal::scratch_give_back(); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  T* data() const { return data_; }
  T& operator[](int64_t i) const { return data_[i]; }

 private:
  T* data_;
};

}  // namespace gloss::kernels
