// Where the networks file what attention did in one pass.
#pragma once

#include <vector>

#include "gloss/attention/scaled_dot_product.h"
#include "gloss/models/attention_map.h"

namespace gloss::models {

// Filled as asked for. Asking changes no number.
template <class T>
struct AttentionRecord {
  AttentionRequest request;
  struct Entry {
    AttentionKind kind;
    int64_t layer;
    attention::Attended<T> attended;
  };
  std::vector<Entry> entries;
};

// What was filed, as models answer it. `output` names the entry's own result among its tensors.
AttentionMap map_of(AttentionRecord<float>::Entry entry, int64_t heads, const char* output);

}  // namespace gloss::models
