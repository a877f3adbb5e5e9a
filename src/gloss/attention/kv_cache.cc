#include "gloss/attention/kv_cache.h"

#include <algorithm>
#include <utility>

#include "gloss/base/error.h"

namespace gloss::attention {

template <class Stored>
KvCache<Stored>::KvCache(Arena& arena, int64_t layers, Widths self, Widths memory)
    : arena_(arena), layers_(layers), self_(self), memory_(memory) {}

template <class Stored>
typename KvCache<Stored>::Slot& KvCache<Stored>::at(int slot) {
  require(slot >= 0 && static_cast<size_t>(slot) < slots_.size() && slots_[static_cast<size_t>(slot)].open,
          "slot {} of the key/value cache is not open", slot);
  return slots_[static_cast<size_t>(slot)];
}

template <class Stored>
void KvCache<Stored>::open(int slot) {
  require(slot >= 0, "slot {} of the key/value cache: a slot is a number from 0 up", slot);
  if (static_cast<size_t>(slot) >= slots_.size()) slots_.resize(static_cast<size_t>(slot) + 1);
  Slot& s = slots_[static_cast<size_t>(slot)];
  require(!s.open, "slot {} of the key/value cache is taken", slot);
  s.open = true;
  s.self.assign(static_cast<size_t>(layers_), {});
  s.memory.assign(static_cast<size_t>(layers_), {});
  s.used = 0;
  // Before the first step there is one hypothesis, the empty one.
  s.live = 1;
  if (s.ancestors.empty()) s.ancestors.emplace_back();
  s.ancestors[0].clear();
}

template <class Stored>
void KvCache<Stored>::close(int slot) {
  Slot& s = at(slot);
  s.open = false;
  s.self.clear();
  s.memory.clear();
}

template <class Stored>
void KvCache<Stored>::set_memory(int slot, int64_t layer, const T* rows, int64_t count) {
  const Tensor<Stored> kept(arena_, {count, memory_.row()});
  kernels::store_numbers(rows, kept.size(), kept.data());
  at(slot).memory[static_cast<size_t>(layer)] = kept;
}

// Where a third is dead: then the rows that move are at most three times as many as those that were added
// since the last time. Live rows move to the front in their order, so a hypothesis finds the same rows in the
// same order as before.
template <class Stored>
void KvCache<Stored>::forget_dead_rows(Slot& slot) {
  constexpr int32_t kDead = -1;
  place_.assign(static_cast<size_t>(slot.used), kDead);
  int32_t live = 0;
  for (size_t r = 0; r < slot.live; ++r) {
    for (const int32_t row : slot.ancestors[r]) {
      if (std::exchange(place_[static_cast<size_t>(row)], 0) == kDead) ++live;
    }
  }
  if (3 * (slot.used - live) < slot.used) return;
  int32_t next = 0;
  for (int64_t row = 0; row < slot.used; ++row) {
    int32_t& place = place_[static_cast<size_t>(row)];
    if (place == kDead) continue;
    place = next++;
    if (place == row) continue;
    for (const Pages& pages : slot.self) std::copy_n(pages.row(row), self_.row(), pages.row(place));
  }
  for (size_t r = 0; r < slot.live; ++r) {
    for (int32_t& row : slot.ancestors[r]) row = place_[static_cast<size_t>(row)];
  }
  slot.used = live;
}

// For `rows` more.
template <class Stored>
void KvCache<Stored>::make_room(Slot& slot, int64_t rows) {
  using kernels::kCachePage;
  const auto room = [&] {
    return slot.self.empty() ? 0 : static_cast<int64_t>(slot.self.front().held.size()) * kCachePage;
  };
  if (slot.used + rows <= room()) return;
  forget_dead_rows(slot);
  const auto wanted = static_cast<size_t>((slot.used + rows + kCachePage - 1) / kCachePage);
  for (Pages& pages : slot.self) {
    while (pages.held.size() < wanted) pages.held.emplace_back(arena_, Shape{kCachePage, self_.row()});
    pages.held.resize(wanted);  // what is not needed goes to other sentences
    pages.first.clear();
    for (const Tensor<Stored>& page : pages.held) pages.first.push_back(page.data());
  }
}

template <class Stored>
void KvCache<Stored>::begin_step(std::span<const Extension> rows) {
  step_.assign(rows.begin(), rows.end());
  ++steps_;
  positions_.clear();
  for (size_t i = 0; i < rows.size();) {
    Slot& slot = at(rows[i].slot);
    require(std::exchange(slot.step, steps_) != steps_,
            "the rows of slot {} do not stand together in a step of the key/value cache", rows[i].slot);
    size_t n = 0;
    while (i + n < rows.size() && rows[i + n].slot == rows[i].slot) ++n;
    make_room(slot, static_cast<int64_t>(n));
    if (slot.next.size() < n) slot.next.resize(n);
    for (size_t r = 0; r < n; ++r) {
      const auto parent = static_cast<size_t>(rows[i + r].parent);
      require(parent < slot.live, "hypothesis {} of slot {} does not exist: there are {}", parent,
              rows[i].slot, slot.live);
      slot.next[r] = slot.ancestors[parent];
      positions_.push_back(static_cast<int64_t>(slot.next[r].size()));
      slot.next[r].push_back(static_cast<int32_t>(slot.used + static_cast<int64_t>(r)));
    }
    std::swap(slot.ancestors, slot.next);
    slot.live = n;
    slot.used += static_cast<int64_t>(n);
    i += n;
  }
  rows_projected_ += static_cast<int64_t>(rows.size());
}

template <class Stored>
void KvCache<Stored>::append(int64_t layer, kernels::Matrix<const T> rows) {
  require(rows.rows == static_cast<int64_t>(step_.size()) && rows.cols == self_.row(),
          "the key/value cache got {} rows of {} numbers for a step of {} rows of {}", rows.rows, rows.cols,
          step_.size(), self_.row());
  for (size_t i = 0; i < step_.size();) {
    Slot& slot = at(step_[i].slot);
    for (size_t r = 0; r < slot.live; ++r, ++i) {
      const int64_t row = slot.used - static_cast<int64_t>(slot.live) + static_cast<int64_t>(r);
      kernels::store_numbers(rows.row(static_cast<int64_t>(i)), self_.row(),
                             slot.self[static_cast<size_t>(layer)].row(row));
    }
  }
}

template <class Stored>
std::span<const kernels::CachedRows<Stored>> KvCache<Stored>::self_rows(int64_t layer) {
  rows_.clear();
  for (size_t i = 0; i < step_.size();) {
    const Slot& slot = at(step_[i].slot);
    const Stored* const* const pages = slot.self[static_cast<size_t>(layer)].first.data();
    for (size_t r = 0; r < slot.live; ++r, ++i) {
      const std::vector<int32_t>& index = slot.ancestors[r];
      rows_.push_back({nullptr, nullptr, index.data(), static_cast<int64_t>(index.size()), pages, self_.key});
    }
  }
  return rows_;
}

template <class Stored>
std::span<const kernels::CachedRows<Stored>> KvCache<Stored>::memory_rows(int64_t layer) {
  rows_.clear();
  for (const Extension& row : step_) {
    const Tensor<Stored>& memory = at(row.slot).memory[static_cast<size_t>(layer)];
    require(!memory.empty(), "slot {} of the key/value cache has no source in layer {}", row.slot, layer);
    rows_.push_back({memory.data(), memory.data() + memory_.key, nullptr, memory.rows()});
  }
  return rows_;
}

template <class Stored>
typename KvCache<Stored>::Size KvCache<Stored>::size() const {
  Size size;
  constexpr auto element = static_cast<int64_t>(sizeof(Stored));
  for (const Slot& slot : slots_) {
    if (!slot.open) continue;
    size.self_bytes += layers_ * slot.used * self_.row() * element;
    const int64_t pages = slot.self.empty() ? 0 : static_cast<int64_t>(slot.self.front().held.size());
    size.spare_bytes += layers_ * (pages * kernels::kCachePage - slot.used) * self_.row() * element;
    for (const Tensor<Stored>& memory : slot.memory) size.memory_bytes += memory.size() * element;
    for (size_t r = 0; r < slot.live; ++r) {
      size.table_bytes += static_cast<int64_t>(slot.ancestors[r].size() * sizeof(int32_t));
    }
  }
  return size;
}

template class KvCache<float>;
template class KvCache<double>;
template class KvCache<kernels::Bfloat16>;

}  // namespace gloss::attention
