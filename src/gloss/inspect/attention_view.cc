#include "gloss/inspect/attention_view.h"

#include <algorithm>
#include <functional>
#include <utility>

namespace gloss::inspect {
namespace {

using models::AttentionKind;
using models::AttentionMap;

// One axis of a table: a label for each group of tokens, and the group of each token.
struct Axis {
  std::vector<std::string> labels;
  std::vector<size_t> group_of;
};

// The tokens that a side's rows or columns stand for. What the decoder looks from and at is its input: the
// start symbol, and the target without its last token.
Axis axis_of(const AttendedPair& pair, bool source, bool decoder_input, Merge merge) {
  const Side& side = source ? pair.source : pair.target;
  std::vector<std::string> pieces = side.pieces;
  std::vector<int32_t> word_of = side.words.word_of;
  if (decoder_input) {
    // Marian models start with <pad>, which would be taken for padding.
    pieces.insert(pieces.begin(), pair.start_piece == text::kPadPiece ? "<start>" : pair.start_piece);
    pieces.pop_back();
    word_of.insert(word_of.begin(), -1);
    word_of.pop_back();
  }
  Axis axis;
  for (size_t i = 0; i < pieces.size(); ++i) {
    const bool goes_on = merge == Merge::words && i > 0 && word_of[i] >= 0 && word_of[i] == word_of[i - 1];
    if (!goes_on) {
      const bool word = merge == Merge::words && word_of[i] >= 0;
      axis.labels.push_back(word ? side.words.texts[static_cast<size_t>(word_of[i])] : pieces[i]);
    }
    axis.group_of.push_back(axis.labels.size() - 1);
  }
  return axis;
}

void require_head(const AttentionMap& map, std::optional<int64_t> head) {
  if (!head || (*head >= 0 && *head < map.heads)) return;
  throw UsageError(
      fmt::format("there is no head {}: this attention has {}, 0 to {}", *head, map.heads, map.heads - 1));
}

// [n_q, n_k]: the mean over the layers.
std::vector<float> mean_weights(std::span<const AttentionMap> maps, std::optional<int64_t> head, int64_t n_q,
                                int64_t n_k) {
  std::vector<float> mean = maps.front().weights_of(0, head, n_q, n_k);
  for (const AttentionMap& map : maps.subspan(1)) {
    const std::vector<float> more = map.weights_of(0, head, n_q, n_k);
    std::ranges::transform(mean, more, mean.begin(), std::plus<>());
  }
  for (float& weight : mean) weight /= static_cast<float>(maps.size());
  return mean;
}

void pad(AttentionView& view, int64_t pad_to) {
  const size_t keys = view.columns.size(), wanted = static_cast<size_t>(pad_to);
  if (keys > wanted) {
    throw UsageError(
        fmt::format("{} keys cannot be padded to {}: ask for a number from {} on", keys, pad_to, keys));
  }
  AttentionView padded = view;
  padded.columns.resize(wanted, "<pad>");
  padded.values.assign(view.rows.size() * wanted, 0);
  padded.hidden.assign(view.rows.size() * wanted, 1);
  for (size_t row = 0; row < view.rows.size(); ++row) {
    std::copy_n(view.values.begin() + static_cast<std::ptrdiff_t>(row * keys), keys,
                padded.values.begin() + static_cast<std::ptrdiff_t>(row * wanted));
    std::copy_n(view.hidden.begin() + static_cast<std::ptrdiff_t>(row * keys), keys,
                padded.hidden.begin() + static_cast<std::ptrdiff_t>(row * wanted));
  }
  view = std::move(padded);
}

}  // namespace

std::string kind_text(AttentionKind kind) {
  return fmt::format("{}{}", kind_name(kind),
                     kind == AttentionKind::cross ? "-attention" : " self-attention");
}

std::string layers_text(std::span<const AttentionMap> maps) {
  return maps.size() == 1 ? fmt::format("layer {}", maps[0].layer)
                          : fmt::format("mean of {} layers", maps.size());
}

std::string heads_text(const AttentionMap& map, std::optional<int64_t> head) {
  if (map.heads == 1) return "its only head";
  return head ? fmt::format("head {}", *head) : fmt::format("mean of {} heads", map.heads);
}

AttentionView view(const AttendedPair& pair, std::span<const AttentionMap> maps, const ViewOptions& options) {
  require(!maps.empty(), "there is no attention to look at: a view takes one layer or more");
  for (const AttentionMap& map : maps) require_head(map, options.head);
  const AttentionKind kind = maps.front().kind;
  Axis rows = axis_of(pair, kind == AttentionKind::encoder, kind == AttentionKind::decoder, options.merge);
  Axis columns = kind == AttentionKind::cross ? axis_of(pair, true, false, options.merge) : rows;
  const auto n_q = static_cast<int64_t>(rows.group_of.size()),
             n_k = static_cast<int64_t>(columns.group_of.size());
  const std::vector<float> weights = mean_weights(maps, options.head, n_q, n_k);

  AttentionView view;
  view.title =
      fmt::format("{}, {}, {}", kind_text(kind), layers_text(maps), heads_text(maps.front(), options.head));
  const size_t width = columns.labels.size();
  view.values.assign(rows.labels.size() * width, 0);
  view.hidden.assign(rows.labels.size() * width, 0);
  std::vector<float> tokens_in_row(rows.labels.size(), 0);
  for (const size_t row : rows.group_of) ++tokens_in_row[row];
  for (size_t i = 0; i < rows.group_of.size(); ++i) {
    for (size_t j = 0; j < columns.group_of.size(); ++j) {
      view.values[rows.group_of[i] * width + columns.group_of[j]] +=
          weights[i * columns.group_of.size() + j] / tokens_in_row[rows.group_of[i]];
    }
  }
  if (kind == AttentionKind::decoder) {
    for (size_t row = 0; row < rows.labels.size(); ++row) {
      for (size_t column = row + 1; column < width; ++column) view.hidden[row * width + column] = 1;
    }
  }
  view.rows = std::move(rows.labels);
  view.columns = std::move(columns.labels);
  if (options.pad_to > 0) pad(view, options.pad_to);
  return view;
}

}  // namespace gloss::inspect
