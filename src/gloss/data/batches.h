// Token batches for training and validation: sentence pairs as numbers, without padding.
#pragma once

#include <atomic>
#include <compare>
#include <cstdint>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gloss/data/corpus.h"
#include "gloss/data/word_links.h"
#include "gloss/tensor/ragged.h"
#include "gloss/text/tokenizer.h"

namespace gloss::data {

// Both sides end with </s>; the decoder's input, shifted to the right, is the model's business.
struct TokenBatch {
  Tokens source;
  Tokens target;
  int64_t pairs = 0;
  std::vector<int64_t> line_numbers;  // in the corpus, from 1; one a pair
  std::vector<RowLink> links;         // of pieces, where the corpus has word links; ascending
};

// Pairs that an epoch left out, by reason.
struct SkipCounts {
  int64_t empty = 0;     // a side without text
  int64_t too_long = 0;  // a side above max_length
  int64_t uneven = 0;    // lengths too different to be translations
  int64_t total() const { return empty + too_long + uneven; }
  bool operator==(const SkipCounts&) const = default;
  SkipCounts& operator+=(const SkipCounts& other);
};

struct BatchOptions {
  int64_t target_tokens = 4096;  // at most, in a batch
  int64_t source_tokens = 0;     // at most, in a batch; 0: twice target_tokens
  int64_t max_length = 256;      // pieces with </s> of either side; never more than a batch holds
  // A pair is uneven when its longer side has more than max_ratio times the pieces of the shorter one, and
  // ratio_slack more: a word can well become a phrase.
  double max_ratio = 9;
  int64_t ratio_slack = 10;
  int64_t window = 100'000;  // pairs that are sorted together, and held in memory
  uint64_t seed = 1;
  bool prefetch = true;  // prepare the next window on a thread of its own
};

// Where a stream stands: everything that decides which batches come next, given corpus, tokenizer and
// options.
struct StreamPosition {
  int64_t epoch = 0;         // from 0
  int64_t batch = 0;         // batches of this epoch that were taken
  int64_t window = 0;        // the window being taken
  int64_t window_batch = 0;  // batches of it that were taken
  SkipCounts skipped;        // in the windows before it
  bool operator==(const StreamPosition&) const = default;

  // For checkpoints: "3 117 0 117 0 2 0".
  std::string text() const;
  // Throws Error for any other text.
  static StreamPosition parse(std::string_view text);
};

// Endless epochs of batches. In each, every usable pair comes exactly once: the lines in an order drawn from
// (seed, epoch) are taken in windows, sorted by target and source length within a window, cut into batches
// that are as even as the limits allow, and these are shuffled. The batches depend on the seed and the epoch
// alone, so a stream that is put back to a position goes on with the same bits.
//
// With `prefetch` the next window is read and tokenised while this one is trained on. A corpus that fits into
// one window is tokenised once only.
class BatchStream {
 public:
  // The corpus and its links, if it has any, must outlive the stream.
  BatchStream(const ParallelCorpus& corpus, text::Tokenizer tokenizer, const BatchOptions& options,
              const WordLinks* links = nullptr);
  ~BatchStream();
  BatchStream(const BatchStream&) = delete;
  BatchStream& operator=(const BatchStream&) = delete;

  // The next batch; nothing once at the end of each epoch. Throws Error when reading fails, or when an epoch
  // has no usable pair.
  std::optional<TokenBatch> next();

  // Behind the batch that next() gave last.
  const StreamPosition& position() const { return position_; }
  // Throws Error for a position that this stream never has.
  void seek(const StreamPosition& position);

  // Of the last whole epoch.
  const SkipCounts& skipped_last_epoch() const { return skipped_last_epoch_; }

 private:
  struct EncodedPairs;
  struct Window;
  using WindowPointer = std::unique_ptr<const Window>;

  WindowPointer make_window(int64_t epoch, int64_t window);
  const Window& current_window();
  void prepare(int64_t epoch, int64_t window);
  void stop_preparing();

  const ParallelCorpus& corpus_;
  const text::Tokenizer tokenizer_;
  const BatchOptions options_;
  const WordLinks* const links_;
  const int64_t windows_;  // an epoch
  StreamPosition position_;
  SkipCounts skipped_last_epoch_;
  WindowPointer window_;                              // the one that position_ names, when it is there
  std::shared_ptr<const EncodedPairs> whole_corpus_;  // when it is one window
  std::future<WindowPointer> ahead_;
  std::pair<int64_t, int64_t> ahead_of_;  // the epoch and window that ahead_ will give
  std::atomic<bool> stop_{false};
};

struct ValidationBatches {
  std::vector<TokenBatch> batches;
  SkipCounts skipped;  // pairs with an empty side
};

// All pairs of a validation corpus but the empty ones, sorted by target and source length (equal ones in the
// order of the file), in batches of at most `tokens` target tokens; a longer pair is a batch of its own.
ValidationBatches validation_batches(const ParallelCorpus& corpus, const text::Tokenizer& tokenizer,
                                     int64_t tokens);

}  // namespace gloss::data
