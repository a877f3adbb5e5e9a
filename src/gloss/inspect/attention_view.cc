#include "gloss/inspect/attention_view.h"

#include <algorithm>
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

AttentionView view(const AttendedPair& pair, const AttentionMap& map, const ViewOptions& options) {
  require_head(map, options.head);
  const bool self = map.kind != AttentionKind::cross;
  Axis rows =
      axis_of(pair, map.kind == AttentionKind::encoder, map.kind == AttentionKind::decoder, options.merge);
  Axis columns = map.kind == AttentionKind::cross ? axis_of(pair, true, false, options.merge) : rows;
  const auto n_q = static_cast<int64_t>(rows.group_of.size()),
             n_k = static_cast<int64_t>(columns.group_of.size());
  const std::vector<float> weights = map.weights_of(0, options.head, n_q, n_k);

  AttentionView view;
  const std::string which = options.head     ? fmt::format("head {}", *options.head)
                            : map.heads == 1 ? "its only head"
                                             : fmt::format("mean of {} heads", map.heads);
  view.title = fmt::format("{}{}, layer {}, {}", kind_name(map.kind), self ? " self-attention" : "-attention",
                           map.layer, which);
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
  if (map.kind == AttentionKind::decoder) {
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
