#include "gloss/decode/aligner.h"

#include <algorithm>

#include "gloss/text/space.h"

namespace gloss::decode {
namespace {

using models::AttentionKind;
using models::AttentionMap;

constexpr int64_t kTokensABatch = 4096;

int threads_of(int threads) {
  TranslateOptions options;
  options.threads = threads;
  options.workers = 1;
  return crew(options, 1).threads_each;
}

// Pairs that are forced together.
struct Batch {
  std::vector<size_t> pairs;  // their numbers
  std::vector<PieceWords> source_words, target_words;
  Tokens source, target;

  void add(size_t number, const SentencePair& pair, const text::Tokenizer& tokenizer) {
    const text::EncodedLine from = tokenizer.encode_source(pair.first),
                            to = tokenizer.encode_target(pair.second);
    pairs.push_back(number);
    source_words.push_back(words_of_pieces(pair.first, from.spans));
    target_words.push_back(words_of_pieces(pair.second, to.spans));
    source.rows.insert(source.rows.end(), from.ids.begin(), from.ids.end());
    target.rows.insert(target.rows.end(), to.ids.begin(), to.ids.end());
    source_lengths.push_back(static_cast<int64_t>(from.ids.size()));
    target_lengths.push_back(static_cast<int64_t>(to.ids.size()));
  }
  int64_t tokens() const { return static_cast<int64_t>(source.rows.size() + target.rows.size()); }
  void close() {
    source.offsets = Offsets::of_lengths(source_lengths);
    target.offsets = Offsets::of_lengths(target_lengths);
  }

 private:
  std::vector<int64_t> source_lengths, target_lengths;
};

// The row of each target token: its own, or the one of the step that reads it. No step reads the last token,
// the end symbol, which is no word's.
std::vector<float> rows_at(AlignmentStep step, std::vector<float> weights, int64_t n_k) {
  const int64_t before = models::row_of(0, step) * n_k;
  if (before > 0) std::copy(weights.begin() + before, weights.end(), weights.begin());
  return weights;
}

}  // namespace

std::string text_of(const AttentionChoice& choice) {
  return fmt::format("layer {}, {}, {} step", choice.layer,
                     choice.head ? fmt::format("head {}", *choice.head) : "mean of the heads",
                     choice.step == AlignmentStep::reading ? "reading" : "emitting");
}

Aligner::Aligner(const Translator& translator, int threads)
    : translator_(translator), context_(threads_of(threads)) {
  require(translator.model().attention_layers(AttentionKind::cross) > 0,
          "this model has no attention between target and source: there is nothing to align by");
}

AttentionChoice Aligner::usual() const {
  return translator_.model().alignment();
}

std::vector<AttentionChoice> Aligner::all() const {
  std::vector<AttentionChoice> choices;
  const models::Model& model = translator_.model();
  for (int64_t layer = 0; layer < model.attention_layers(AttentionKind::cross); ++layer) {
    for (const AlignmentStep step : {AlignmentStep::emitting, AlignmentStep::reading}) {
      choices.push_back({layer, std::nullopt, step});
      const int64_t heads = model.attention_heads(AttentionKind::cross);
      for (int64_t head = 0; heads > 1 && head < heads; ++head) choices.push_back({layer, head, step});
    }
  }
  return choices;
}

void Aligner::check(const AttentionChoice& choice) const {
  const models::Model& model = translator_.model();
  const int64_t layers = model.attention_layers(AttentionKind::cross),
                heads = model.attention_heads(AttentionKind::cross);
  const auto refuse = [](const char* what, int64_t number, const std::string& owner, int64_t count) {
    throw UsageError(fmt::format("there is no {} {}: {} has {}, {}", what, number, owner, count,
                                 count == 1 ? "number 0" : fmt::format("0 to {}", count - 1)));
  };
  if (choice.layer < 0 || choice.layer >= layers) refuse("layer", choice.layer, "the model", layers);
  if (choice.head && (*choice.head < 0 || *choice.head >= heads))
    refuse("head", *choice.head, "a layer", heads);
}

std::vector<std::vector<evaluate::Alignment>> Aligner::align(std::span<const SentencePair> pairs,
                                                             std::span<const AttentionChoice> choices,
                                                             const WordAlignmentOptions& options) {
  for (const AttentionChoice& choice : choices) check(choice);
  std::vector<std::vector<evaluate::Alignment>> results(choices.size(),
                                                        std::vector<evaluate::Alignment>(pairs.size()));
  models::AttentionRequest request{{AttentionKind::cross}, {}, false};
  const bool one_layer = std::ranges::all_of(
      choices, [&](const AttentionChoice& choice) { return choice.layer == choices[0].layer; });
  if (one_layer && !choices.empty()) request.layer = choices[0].layer;

  const auto link = [&](Batch& batch) {
    batch.close();
    autograd::Tape<float> tape(context_);
    const std::vector<AttentionMap> maps =
        translator_.model().attend(tape, batch.source, batch.target, request);
    for (size_t c = 0; c < choices.size(); ++c) {
      const auto map = std::ranges::find(maps, choices[c].layer, &AttentionMap::layer);
      for (size_t i = 0; i < batch.pairs.size(); ++i) {
        const auto s = static_cast<int64_t>(i);
        const int64_t n_q = batch.target.offsets.length(s), n_k = batch.source.offsets.length(s);
        const std::vector<float> weights =
            rows_at(choices[c].step, map->weights_of(s, choices[c].head, n_q, n_k), n_k);
        results[c][batch.pairs[i]] =
            word_alignment(weights, batch.source_words[i], batch.target_words[i], options);
      }
    }
  };
  Batch batch;
  for (size_t i = 0; i < pairs.size(); ++i) {
    if (text::is_blank(pairs[i].first) || text::is_blank(pairs[i].second)) continue;
    batch.add(i, pairs[i], translator_.tokenizer());
    if (batch.tokens() < kTokensABatch) continue;
    link(batch);
    batch = {};
  }
  if (!batch.pairs.empty()) link(batch);
  return results;
}

}  // namespace gloss::decode
