// The key/value cache of translation. Self-attention keys and values are stored once where they were made and
// found through a table of ancestors: reordering hypotheses moves integers. Those of cross-attention are made
// once a sentence and shared by its hypotheses.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "gloss/kernels/attention.h"
#include "gloss/tensor/tensor.h"

namespace gloss::attention {

template <class T>
class KvCache {
 public:
  // A row holds the keys of all heads, then their values.
  struct Widths {
    int64_t key = 0, value = 0;
    int64_t row() const { return key + value; }
  };
  KvCache(Arena& arena, int64_t layers, Widths self, Widths memory);

  // A sentence takes a slot (a small number); `close` frees its memory.
  void open(int slot);
  void close(int slot);
  // Cross-attention keys and values of a layer: [source tokens, memory row], copied.
  void set_memory(int slot, int64_t layer, const T* rows, int64_t count);

  // Which hypothesis (an index among the slot's rows of its last step) each row of the new step extends. The
  // rows of a slot stand together. A slot's first step has parents 0.
  struct Extension {
    int slot = 0, parent = 0;
  };
  void begin_step(std::span<const Extension> rows);
  // The number of tokens before each row of this step: its position.
  std::span<const int64_t> positions() const { return positions_; }
  // Stores this step's keys and values of a layer, row by row.
  void append(int64_t layer, kernels::Matrix<const T> rows);
  // What each row of this step looks at: its ancestors and itself, or its sentence's source.
  std::span<const kernels::CachedRows<T>> self_rows(int64_t layer);
  std::span<const kernels::CachedRows<T>> memory_rows(int64_t layer);
  const Widths& self_widths() const { return self_; }
  const Widths& memory_widths() const { return memory_; }

  struct Size {
    int64_t self_bytes = 0, memory_bytes = 0;  // payload: rows in use
    int64_t spare_bytes = 0;                   // room for rows to come
    int64_t table_bytes = 0;                   // ancestor indices
  };
  Size size() const;
  // How many rows a slot that has room for `capacity` has room for once it holds `rows`.
  static int64_t grown(int64_t capacity, int64_t rows);
  // Key/value rows made so far a layer, by projection of target tokens.
  int64_t rows_projected() const { return rows_projected_; }

 private:
  struct Slot {
    bool open = false;
    std::vector<Tensor<T>> self;    // a layer each: [capacity, self row]
    std::vector<Tensor<T>> memory;  // a layer each: [source tokens, memory row]
    int64_t used = 0, capacity = 0;
    std::vector<std::vector<int32_t>> ancestors, next;  // a hypothesis each: the rows of its tokens
    size_t live = 0;                                    // hypotheses in `ancestors`
    int64_t step = -1;                                  // the last one it took part in
  };
  Slot& at(int slot);
  void grow(Slot& slot, int64_t rows);

  Arena& arena_;
  int64_t layers_;
  Widths self_, memory_;
  std::vector<Slot> slots_;
  std::vector<Extension> step_;
  std::vector<int64_t> positions_;
  std::vector<kernels::CachedRows<T>> rows_;
  int64_t rows_projected_ = 0, steps_ = 0;
};

}  // namespace gloss::attention
