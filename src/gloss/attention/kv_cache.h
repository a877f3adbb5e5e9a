// The key/value cache of translation. Self-attention keys and values are stored once where they were made and
// found through a table of ancestors: reordering hypotheses moves integers. They stand in pages, so that a
// growing sentence copies nothing, and when a page is full, rows that no live hypothesis descends from give
// way. Those of cross-attention are made once a sentence and shared by its hypotheses.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "gloss/kernels/attention.h"
#include "gloss/tensor/tensor.h"

namespace gloss::attention {

// Keys and values of a token: a row holds the keys of all heads, then their values.
struct KvWidths {
  int64_t key = 0, value = 0;
  int64_t row() const { return key + value; }
};
// Which hypothesis (an index among the slot's rows of its last step) a row of a new step extends.
struct KvExtension {
  int slot = 0, parent = 0;
};
struct KvCacheSize {
  int64_t self_bytes = 0, memory_bytes = 0;  // payload: rows that are there
  int64_t spare_bytes = 0;                   // room for rows to come, in the last page
  int64_t table_bytes = 0;                   // ancestor indices
};

// Keys and values are kept as `Stored`: as they are computed (float, double), or rounded to
// kernels::Bfloat16.
template <class Stored>
class KvCache {
 public:
  using T = kernels::Widened<Stored>;
  using Widths = KvWidths;
  using Extension = KvExtension;
  using Size = KvCacheSize;
  KvCache(Arena& arena, int64_t layers, Widths self, Widths memory);

  // A sentence takes a slot (a small number); `close` frees its memory.
  void open(int slot);
  void close(int slot);
  // Cross-attention keys and values of a layer: [source tokens, memory row], copied or rounded.
  void set_memory(int slot, int64_t layer, const T* rows, int64_t count);

  // The rows of a slot stand together. A slot's first step has parents 0.
  void begin_step(std::span<const Extension> rows);
  // The number of tokens before each row of this step: its position.
  std::span<const int64_t> positions() const { return positions_; }
  // Stores this step's keys and values of a layer, row by row.
  void append(int64_t layer, kernels::Matrix<const T> rows);
  // What each row of this step looks at: its ancestors and itself, or its sentence's source.
  std::span<const kernels::CachedRows<Stored>> self_rows(int64_t layer);
  std::span<const kernels::CachedRows<Stored>> memory_rows(int64_t layer);
  const Widths& self_widths() const { return self_; }
  const Widths& memory_widths() const { return memory_; }

  Size size() const;
  // Key/value rows made so far a layer, by projection of target tokens.
  int64_t rows_projected() const { return rows_projected_; }

 private:
  struct Pages {
    std::vector<Tensor<Stored>> held;  // [kCachePage, self row]
    std::vector<const Stored*> first;  // of each
    Stored* row(int64_t r) const {
      return held[static_cast<size_t>(r / kernels::kCachePage)].row(r % kernels::kCachePage);
    }
  };
  struct Slot {
    bool open = false;
    std::vector<Pages> self;                            // a layer each
    std::vector<Tensor<Stored>> memory;                 // a layer each: [source tokens, memory row]
    int64_t used = 0;                                   // rows
    std::vector<std::vector<int32_t>> ancestors, next;  // a hypothesis each: the rows of its tokens
    size_t live = 0;                                    // hypotheses in `ancestors`
    int64_t step = -1;                                  // the last one it took part in
  };
  Slot& at(int slot);
  void make_room(Slot& slot, int64_t rows);
  void forget_dead_rows(Slot& slot);

  Arena& arena_;
  int64_t layers_;
  Widths self_, memory_;
  std::vector<Slot> slots_;
  std::vector<Extension> step_;
  std::vector<int64_t> positions_;
  std::vector<kernels::CachedRows<Stored>> rows_;
  std::vector<int32_t> place_;  // of a row once the dead ones are gone; kept for its memory
  int64_t rows_projected_ = 0, steps_ = 0;
};

}  // namespace gloss::attention
