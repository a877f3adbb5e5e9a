#include "gloss/models/cache_memory.h"

#include <initializer_list>

#include "gloss/base/error.h"
#include "gloss/kernels/attention.h"

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
  // Pages of a slot that are filled: one row at the first token, `beam` at each one after it.
  constexpr int64_t kPage = kernels::kCachePage;
  int64_t rows = product(use, {use.target_length - 1, use.beam});
  if (__builtin_add_overflow(rows, 1, &rows)) too_much(use);
  memory.spare_bytes = product(use, {cost.self_bytes, use.batch, (kPage - rows % kPage) % kPage});
  return memory;
}

}  // namespace gloss::models
