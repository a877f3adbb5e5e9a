// The memory of the key/value cache, told before it is taken.
#pragma once

#include <cstdint>

namespace gloss::models {

// In which numbers keys and values are kept. bfloat16: rounded to 8 bits of mantissa when they are made, in
// half the memory; attention computes in float with them.
enum class CachePrecision : uint8_t { float32, bfloat16 };

// Bytes a token that translating remembers.
struct CacheCost {
  int64_t layers = 0;
  int64_t self_bytes = 0;  // a target token of a hypothesis: layers x bytes an element x 2 d; 0: none is kept
  int64_t memory_bytes = 0;  // a source token of a sentence: the same
};

// What is translated at a time.
struct CacheUse {
  int64_t source_length = 0, target_length = 0;  // tokens, m and n
  int64_t batch = 0, beam = 0;                   // sentences, and hypotheses of each
};

// In bytes, once every hypothesis has read n tokens, and none of those before has died: the most it can be.
// Usually hypotheses share most of their past, and the rows of dead ones are given back.
struct CacheMemory {
  // The payload by the formula: layers x bytes an element x (2 n d x batch x beam + 2 m d x batch).
  int64_t self_bytes = 0, memory_bytes = 0, payload_bytes = 0;
  // Of these, what is not there: the first token's row is one for all hypotheses of a sentence.
  int64_t shared_bytes = 0;
  int64_t table_bytes = 0;  // ancestor indices of the target tokens that are kept
  int64_t spare_bytes = 0;  // room for rows to come, in the last page of a sentence
};

// Throws UsageError when a number does not fit 63 bits.
CacheMemory cache_memory(const CacheCost& cost, const CacheUse& use);

}  // namespace gloss::models
