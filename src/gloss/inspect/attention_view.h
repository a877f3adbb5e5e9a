// One table out of what attention did: the weights of a head or a mean of weights, with labels, ready to be
// drawn.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "gloss/inspect/attended_pair.h"

namespace gloss::inspect {

enum class Merge { none, words };

struct AttentionView {
  std::string title;                       // "cross-attention, layer 2, head 0"
  std::vector<std::string> rows, columns;  // labels of queries and keys
  std::vector<float> values;               // [rows, columns]
  std::vector<char> hidden;                // of each value: the mask keeps the query from looking there
};

struct ViewOptions {
  std::optional<int64_t> head;  // none: the mean of all heads
  Merge merge = Merge::none;
  int64_t pad_to = 0;  // keys in all, padded ones behind the real ones; 0: no padding
};

// Of `maps` of the pair, which are layers of one kind, one or more: the mean of several. Merging sums the
// weights of a word's pieces as keys and takes their mean as queries, so that rows still sum to 1; end
// symbols stay apart. Throws UsageError where the head does not exist or there are more keys than `pad_to`.
AttentionView view(const AttendedPair& pair, std::span<const models::AttentionMap> maps,
                   const ViewOptions& options);

// What a view is of, in words: "cross-attention", "encoder self-attention"; "layer 2", "mean of 6 layers";
// "head 0", "mean of 8 heads", "its only head".
std::string kind_text(models::AttentionKind kind);
std::string layers_text(std::span<const models::AttentionMap> maps);
std::string heads_text(const models::AttentionMap& map, std::optional<int64_t> head);

}  // namespace gloss::inspect
