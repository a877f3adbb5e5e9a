#include "gloss/models/attention_record.h"

#include <utility>

namespace gloss::models {

AttentionMap map_of(AttentionRecord<float>::Entry entry, int64_t heads, const char* output) {
  AttentionMap map;
  map.kind = entry.kind;
  map.layer = entry.layer;
  map.heads = heads;
  map.scores = entry.attended.scores;
  map.weights = entry.attended.weights.value();
  map.offsets = std::move(entry.attended.offsets);
  map.tensors = std::move(entry.attended.tensors);
  if (!map.tensors.empty()) map.tensors.emplace_back(output, entry.attended.output.value());
  return map;
}

}  // namespace gloss::models
