#include "gloss/train/validation.h"

#include <algorithm>

#include "gloss/models/transformer_model.h"
#include "gloss/train/setup.h"
#include "train/fixture.h"

namespace gloss::train {
namespace {

// However many batches it has: it asks before each, and leaves at the first yes.
TEST(Validation, AsksBeforeEachBatchWhetherToStop) {
  const Task task;
  const TrainOptions options = resolve(task.options);
  const data::ParallelCorpus corpus(options.valid[0], options.valid[1], text::InvalidUtf8::fail);
  Recorder recorder;
  const text::Tokenizer tokenizer = make_tokenizer(options, corpus.pairs(), recorder);
  Context context(1);
  const auto model = models::make_model(model_config(options, tokenizer), context.arena);
  model->initialise(1);
  constexpr int64_t kTokens = 16;
  const auto batches = static_cast<int>(data::validation_batches(corpus, tokenizer, kTokens).batches.size());
  ASSERT_GT(batches, 3);
  for (const bool bleu : {false, true}) {
    const Validation validation(corpus, tokenizer, kTokens, bleu);
    for (int yes_at = 1; yes_at <= batches + 1; ++yes_at) {
      int asked = 0;
      const auto scores = validation(context, *model, [&] { return ++asked == yes_at; });
      EXPECT_EQ(asked, std::min(yes_at, batches));
      EXPECT_EQ(scores.has_value(), yes_at > batches);
      EXPECT_GT(scores.value_or(ValidationScores{2, -1}).perplexity, 1);
    }
  }
}

}  // namespace
}  // namespace gloss::train
