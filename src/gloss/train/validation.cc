#include "gloss/train/validation.h"

#include <cmath>

#include "gloss/decode/search.h"
#include "gloss/evaluate/bleu.h"

namespace gloss::train {

std::string text_of(const ValidationScores& scores) {
  std::string text = fmt::format("perplexity {:.3f}", scores.perplexity);
  if (scores.bleu >= 0) text += fmt::format(", BLEU {:.2f}", scores.bleu);
  return text;
}

Validation::Validation(const data::ParallelCorpus& corpus, const text::Tokenizer& tokenizer,
                       int64_t batch_tokens, bool bleu)
    : corpus_(corpus),
      tokenizer_(tokenizer),
      batches_(data::validation_batches(corpus, tokenizer, batch_tokens)),
      bleu_(bleu) {}

std::optional<ValidationScores> Validation::operator()(Context& context, const models::Model& model,
                                                       const std::function<bool()>& stopped) const {
  ValidationScores scores;
  double total = 0;
  int64_t tokens = 0;
  std::vector<std::string> hypotheses, references;
  for (const data::TokenBatch& batch : batches_.batches) {
    if (stopped()) return std::nullopt;
    autograd::Tape<float> tape(context);
    for (const float value : model.log_probabilities(tape, batch.source, batch.target)) total -= value;
    tokens += batch.target.offsets.total();
    if (!bleu_) continue;
    const auto state = model.decoder_state(context, models::Caching::on);
    decode::SearchOptions options;
    options.beam = 1;
    const auto found = decode::search(context, *state, batch.source, options);
    for (size_t i = 0; i < found.size(); ++i) {
      hypotheses.push_back(tokenizer_.decode_target(found[i].at(0).tokens));
      references.push_back(corpus_.target_line(batch.line_numbers[i] - 1));
    }
  }
  scores.perplexity = std::exp(total / static_cast<double>(tokens));
  if (bleu_) scores.bleu = evaluate::bleu(hypotheses, {references}).score;
  return scores;
}

}  // namespace gloss::train
