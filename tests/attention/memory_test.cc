// Training attention stores no n x n weights: what a step takes grows with n.
//
// The memory of a step is that of its tensors, its tape and the working memory of its kernels, so this
// program counts what operator new hands out, whoever asks.
#include <malloc.h>

#include <atomic>
#include <cstdlib>
#include <functional>
#include <new>
#include <thread>

#include "attention/support.h"
#include "gloss/attention/additive.h"

namespace {

std::atomic<int64_t> heap_now{0}, heap_peak{0};

void* counted(void* memory) {
  if (memory == nullptr) throw std::bad_alloc();
  const int64_t now = heap_now += static_cast<int64_t>(malloc_usable_size(memory));
  int64_t peak = heap_peak;
  while (now > peak && !heap_peak.compare_exchange_weak(peak, now)) {
  }
  return memory;
}

void give_back(void* memory) {
  heap_now -= static_cast<int64_t>(malloc_usable_size(memory));
  std::free(memory);
}

}  // namespace

// The forms for arrays call these.
[[gnu::noinline]] void* operator new(size_t bytes) {
  return counted(std::malloc(bytes > 0 ? bytes : 1));
}
[[gnu::noinline]] void* operator new(size_t bytes, std::align_val_t alignment) {
  void* memory = nullptr;
  if (::posix_memalign(&memory, static_cast<size_t>(alignment), bytes > 0 ? bytes : 1) != 0) memory = nullptr;
  return counted(memory);
}
[[gnu::noinline]] void* operator new(size_t bytes, const std::nothrow_t&) noexcept {
  try {
    return operator new(bytes);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
[[gnu::noinline]] void* operator new(size_t bytes, std::align_val_t alignment,
                                     const std::nothrow_t&) noexcept {
  try {
    return operator new(bytes, alignment);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
[[gnu::noinline]] void operator delete(void* memory) noexcept {
  if (memory) give_back(memory);
}
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept {
  if (memory) give_back(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::align_val_t) noexcept {
  if (memory) give_back(memory);
}
[[gnu::noinline]] void operator delete(void* memory, size_t, std::align_val_t) noexcept {
  if (memory) give_back(memory);
}

namespace gloss::attention {
namespace {

using tests::random_tensor;

// The peak of a training step.
int64_t peak_of(const std::function<void(Context& context)>& train) {
  int64_t peak = 0;
  std::thread step([&] {  // a thread of its own, for the working memory of kernels is the thread's and stays
    const int64_t before = heap_now;
    heap_peak = before;
    Context context;
    train(context);
    peak = heap_peak - before;
  });
  step.join();
  return peak;
}

// Of self-attention over n tokens, one head of 8 numbers, dropout on.
int64_t peak_of_a_step(int64_t n, const Mask& mask, Request request = {}) {
  return peak_of([&](Context& context) {
    Module<float> module(context, {.d_model = 8, .heads = 1}, Stacking::query_key_value, true);
    Tape<float> tape(context, Tape<float>::Mode::train, RandomKey(1));
    const Var<float> x = tape.leaf(random_tensor<float>(context.arena, {n, 8}, 1));
    const Attended<float> result = module.attention(tape, {x, lengths({n})}, mask, 0.1, request);
    tape.backward(result.output, random_tensor<float>(context.arena, {n, 8}, 2));
    EXPECT_NE(tape.gradient(x).row(n - 1)[7], 0.0F);
  });
}

TEST(AttentionMemory, OfTrainingGrowsWithTheLengthNotItsSquare) {
  const int64_t n = 2000;
  for (const Mask& mask : {Mask{}, Mask{Causal::yes, {}}}) {
    const int64_t once = peak_of_a_step(n, mask), twice = peak_of_a_step(2 * n, mask);
    EXPECT_GE(once, n * 8 * 4 * 5);  // it counts: x, queries, keys, values and their sum are there at least
    EXPECT_LE(twice, once * 21 / 10);
    EXPECT_LE(twice, 2 * n * 2 * n / 2) << "half a byte for each pair of tokens";
  }
}

// The same measure sees the n x n weights where they are asked for.
TEST(AttentionMemory, SeesWeightsThatAreStored) {
  const int64_t n = 1000;
  EXPECT_GE(peak_of_a_step(n, {}, {.weights = true}) - peak_of_a_step(n, {}), 4 * n * n);
}

// Additive attention keeps a weight for each pair of tokens, and no joint vector [n, n, d_a].
TEST(AttentionMemory, OfAdditiveAttentionHasNoJointVectors) {
  const int64_t n = 300, d_a = 64, d_h = 8;
  const int64_t peak = peak_of([&](Context& context) {
    const auto leaf = [&](Tape<float>& tape, Shape shape) {
      return tape.leaf(random_tensor<float>(context.arena, shape, 1));
    };
    Tape<float> tape(context, Tape<float>::Mode::train);
    const Var<float> query = leaf(tape, {n, d_a}), keys = leaf(tape, {n, d_a}), h = leaf(tape, {n, d_h});
    const auto result =
        additive_attention(tape, query, lengths({n}), keys, h, lengths({n}), leaf(tape, {d_a}));
    tape.backward(result.context, random_tensor<float>(context.arena, {n, d_h}, 2));
    EXPECT_NE(tape.gradient(keys).row(n - 1)[d_a - 1], 0.0F);
  });
  EXPECT_GE(peak, 4 * n * n);
  EXPECT_LE(peak, 4 * n * n * d_a / 8);
}

}  // namespace
}  // namespace gloss::attention
