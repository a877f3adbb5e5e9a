#include "gloss/models/cache_memory.h"

#include <initializer_list>

#include "gloss/attention/kv_cache.h"
#include "gloss/base/error.h"

namespace gloss::models {
namespace {

[[noreturn]] void too_much(const CacheUse& use) {
  throw UsageError(
      fmt::format("a key/value cache of {} sentences with {} hypotheses each, {} source and {} target "
                  "pieces, is beyond any machine: ask for shorter lengths, a smaller batch or beam",
                  use.batch, use.beam, use.source_length, use.target_length));
}

int64_t product(const CacheUse& use, std::initializer_list<int64_t> factors) {
  int64_t result = 1;
  for (const int64_t factor : factors) {
    if (__builtin_mul_overflow(result, factor, &result)) too_much(use);
  }
  return result;
}

}  // namespace

CacheMemory cache_memory(const CacheCost& cost, const CacheUse& use) {
  require(use.source_length > 0 && use.target_length > 0 && use.batch > 0 && use.beam > 0,
          "lengths, batch and beam of a key/value cache are numbers from 1 up, not {}, {}, {} and {}",
          use.source_length, use.target_length, use.batch, use.beam);
  CacheMemory memory;
  memory.self_bytes = product(use, {cost.self_bytes, use.target_length, use.batch, use.beam});
  memory.memory_bytes = product(use, {cost.memory_bytes, use.source_length, use.batch});
  if (__builtin_add_overflow(memory.self_bytes, memory.memory_bytes, &memory.payload_bytes)) too_much(use);
  memory.shared_bytes = product(use, {cost.self_bytes, use.batch, use.beam - 1});
  if (cost.self_bytes == 0) return memory;  // no rows, and no tables to find them by
  memory.table_bytes =
      product(use, {static_cast<int64_t>(sizeof(int32_t)), use.target_length, use.batch, use.beam});
  // A slot grows as its hypotheses do: one row at the first token, `beam` at each one after it.
  int64_t rows = 1, capacity = attention::KvCache<float>::grown(0, rows);
  for (int64_t token = 1; token < use.target_length; ++token) {
    if (__builtin_add_overflow(rows, use.beam, &rows)) too_much(use);
    capacity = attention::KvCache<float>::grown(capacity, rows);
  }
  memory.spare_bytes = product(use, {cost.self_bytes, use.batch, capacity - rows});
  return memory;
}

}  // namespace gloss::models
