// A sentence and its attention as JSON.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "gloss/inspect/attended_pair.h"
#include "gloss/io/json_writer.h"

namespace gloss::inspect {

// Throws UsageError listing what exists for a name that no map has: to be called before anything is written.
// Names are scores, weights, heads, and those of models::AttentionMap, which must have been asked for.
void check_tensors(const AttendedPair& pair, std::span<const std::string> tensors);

// Writes the keys of the documented form, docs/attend.md, into an object that is open: attention as
// [layer][head][query][key]. `tensors` names matrices in between to add, which check_tensors has let pass.
// Takes no memory that grows with the numbers.
void write_json(const AttendedPair& pair, std::span<const std::string> tensors, io::JsonWriter& json);

}  // namespace gloss::inspect
