#include "gloss/data/batches.h"

#include <algorithm>
#include <numeric>
#include <sstream>
#include <system_error>
#include <utility>

#include "gloss/base/error.h"
#include "gloss/base/random.h"
#include "gloss/data/permutation.h"

namespace gloss::data {
namespace {

// A pair as numbers, without links where there are none.
struct Encoded {
  std::vector<int32_t> source, target;
  std::vector<PieceLink> links;
};

// Pairs as numbers, one after another in `ids`, source in front of target.
struct EncodedPair {
  size_t begin = 0;
  size_t first_link = 0, links = 0;
  int32_t source_length = 0;
  int32_t target_length = 0;
  int64_t line = 0;  // from 0
};

struct PairStore {
  std::vector<int32_t> ids;
  std::vector<PieceLink> links;
  std::vector<EncodedPair> pairs;

  void add(const Encoded& pair, int64_t line) {
    pairs.push_back({ids.size(), links.size(), pair.links.size(), static_cast<int32_t>(pair.source.size()),
                     static_cast<int32_t>(pair.target.size()), line});
    ids.insert(ids.end(), pair.source.begin(), pair.source.end());
    ids.insert(ids.end(), pair.target.begin(), pair.target.end());
    links.insert(links.end(), pair.links.begin(), pair.links.end());
  }
};

// Limits of a batch, in tokens.
struct Limits {
  int64_t source = 0;
  int64_t target = 0;
};

struct Range {  // of an order of pairs
  size_t begin = 0;
  size_t end = 0;
};

using Order = std::vector<uint32_t>;  // indices of pairs

// Equal lengths keep the order they come in.
void sort_by_length(const PairStore& store, Order& order) {
  std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    const EncodedPair &x = store.pairs[a], &y = store.pairs[b];
    return std::pair(x.target_length, x.source_length) < std::pair(y.target_length, y.source_length);
  });
}

// Takes pairs as long as the limits allow, at least one a batch.
std::vector<Range> cut(const PairStore& store, const Order& order, Limits limits) {
  std::vector<Range> batches;
  int64_t source = 0, target = 0;
  for (size_t i = 0; i < order.size(); ++i) {
    const EncodedPair& pair = store.pairs[order[i]];
    source += pair.source_length;
    target += pair.target_length;
    if (batches.empty() || source > limits.source || target > limits.target) {
      batches.push_back({i, i});
      source = pair.source_length;
      target = pair.target_length;
    }
    batches.back().end = i + 1;
  }
  return batches;
}

// No more batches than `cut` makes, but without a small one left over at the end (it would be the longest
// sentences, and count as much as a full one in training): the smallest target limit that needs no more.
std::vector<Range> cut_evenly(const PairStore& store, const Order& order, Limits limits) {
  const size_t count = cut(store, order, limits).size();
  int64_t low = 1, high = limits.target;
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    if (cut(store, order, {limits.source, middle}).size() <= count) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return cut(store, order, {limits.source, high});
}

TokenBatch gather(const PairStore& store, const Order& order, Range range) {
  TokenBatch batch;
  batch.pairs = static_cast<int64_t>(range.end - range.begin);
  std::vector<int64_t> source_lengths, target_lengths;
  for (size_t i = range.begin; i < range.end; ++i) {
    const EncodedPair& pair = store.pairs[order[i]];
    const auto source = store.ids.begin() + static_cast<std::ptrdiff_t>(pair.begin);
    const auto target = source + pair.source_length;
    const std::span links(store.links.data() + pair.first_link, pair.links);
    for (const PieceLink& link : links) {
      batch.links.push_back(
          {std::ssize(batch.target.rows) + link.target, std::ssize(batch.source.rows) + link.source});
    }
    batch.source.rows.insert(batch.source.rows.end(), source, target);
    batch.target.rows.insert(batch.target.rows.end(), target, target + pair.target_length);
    source_lengths.push_back(pair.source_length);
    target_lengths.push_back(pair.target_length);
    batch.line_numbers.push_back(pair.line + 1);
  }
  batch.source.offsets = Offsets::of_lengths(source_lengths);
  batch.target.offsets = Offsets::of_lengths(target_lengths);
  return batch;
}

constexpr size_t kOnlyEnd = 1;  // the length of a side without text

Limits limits_of(const BatchOptions& options) {
  return {options.source_tokens > 0 ? options.source_tokens : 2 * options.target_tokens,
          options.target_tokens};
}

BatchOptions checked(const BatchOptions& options) {
  require(options.target_tokens >= 2, "a batch of {} target tokens holds no sentence: ask for thousands",
          options.target_tokens);
  require(options.source_tokens == 0 || options.source_tokens >= 2,
          "a batch of {} source tokens holds no sentence: ask for thousands, or 0 for twice the target's",
          options.source_tokens);
  require(options.max_length >= 2, "a length limit of {} leaves no sentence: </s> counts as one",
          options.max_length);
  require(options.max_ratio >= 1, "the ratio limit is {}, but must be at least 1", options.max_ratio);
  require(options.ratio_slack >= 0, "the ratio slack is {}, but must not be negative", options.ratio_slack);
  require(options.window >= 1 && options.window <= INT32_MAX,
          "the sorting window is {} pairs, but must be between 1 and {}", options.window, INT32_MAX);
  BatchOptions result = options;
  const Limits limits = limits_of(options);
  result.source_tokens = limits.source;
  result.max_length = std::min({options.max_length, limits.source, limits.target});
  return result;
}

// Adds the pair, or counts why not.
void add_usable(const Encoded& pair, int64_t line, const BatchOptions& options, PairStore& store,
                SkipCounts& skipped) {
  const auto source_length = static_cast<int64_t>(pair.source.size()),
             target_length = static_cast<int64_t>(pair.target.size());
  const auto [shorter, longer] = std::minmax(source_length, target_length);
  if (pair.source.size() <= kOnlyEnd || pair.target.size() <= kOnlyEnd) {
    ++skipped.empty;
  } else if (longer > options.max_length) {
    ++skipped.too_long;
  } else if (static_cast<double>(longer - 1 - options.ratio_slack) >
             options.max_ratio * static_cast<double>(shorter - 1)) {  // without </s>
    ++skipped.uneven;
  } else {
    store.add(pair, line);
  }
}

// Line `index` of the corpus as pieces, and with links as pieces that look at each other.
Encoded encoded(const ParallelCorpus& corpus, int64_t index, const text::Tokenizer& tokenizer,
                const WordLinks* links) {
  const std::string source = corpus.source_line(index), target = corpus.target_line(index);
  if (!links) return {tokenizer.encode_source_ids(source), tokenizer.encode_target_ids(target), {}};
  const text::EncodedLine from = tokenizer.encode_source(source), to = tokenizer.encode_target(target);
  return {from.ids, to.ids, links->of_pieces(index, {source, from}, {target, to})};
}

}  // namespace

SkipCounts& SkipCounts::operator+=(const SkipCounts& other) {
  empty += other.empty;
  too_long += other.too_long;
  uneven += other.uneven;
  return *this;
}

std::string StreamPosition::text() const {
  return fmt::format("{} {} {} {} {} {} {}", epoch, batch, window, window_batch, skipped.empty,
                     skipped.too_long, skipped.uneven);
}

StreamPosition StreamPosition::parse(std::string_view text) {
  StreamPosition p;
  std::istringstream stream{std::string(text)};
  for (int64_t* number : {&p.epoch, &p.batch, &p.window, &p.window_batch, &p.skipped.empty,
                          &p.skipped.too_long, &p.skipped.uneven})
    if (!(stream >> *number) || *number < 0) stream.setstate(std::ios::failbit);
  require(!stream.fail() && (stream >> std::ws).eof(),
          "\"{}\" is no position in the training data: seven numbers from 0 up are expected", text);
  return p;
}

// Those lines of a window that can be used; in the order of the file when the window is the whole corpus, in
// that of the epoch otherwise.
struct BatchStream::EncodedPairs {
  PairStore store;
  SkipCounts skipped;
};

struct BatchStream::Window {
  std::shared_ptr<const EncodedPairs> pairs;
  Order order;
  std::vector<Range> batches;
};

BatchStream::BatchStream(const ParallelCorpus& corpus, text::Tokenizer tokenizer, const BatchOptions& options,
                         const WordLinks* links)
    : corpus_(corpus),
      tokenizer_(std::move(tokenizer)),
      options_(checked(options)),
      links_(links),
      windows_((corpus.pairs() + options.window - 1) / options.window) {
  if (options_.prefetch) prepare(0, 0);
}

BatchStream::~BatchStream() {
  stop_preparing();
}

std::optional<TokenBatch> BatchStream::next() {
  for (;;) {
    const Window& window = current_window();
    if (position_.window_batch < static_cast<int64_t>(window.batches.size())) {
      const Range range = window.batches[static_cast<size_t>(position_.window_batch)];
      TokenBatch batch = gather(window.pairs->store, window.order, range);
      ++position_.batch;
      ++position_.window_batch;
      return batch;
    }
    SkipCounts skipped = position_.skipped;
    skipped += window.pairs->skipped;
    if (position_.window + 1 == windows_) {
      require(
          position_.batch > 0,
          "no pair of {} and {} can be trained on: {} have an empty side, {} are longer than {} pieces, {} "
          "differ too much in length",
          corpus_.source_path().string(), corpus_.target_path().string(), skipped.empty, skipped.too_long,
          options_.max_length, skipped.uneven);
      skipped_last_epoch_ = skipped;
      StreamPosition following;
      following.epoch = position_.epoch + 1;
      position_ = following;
      window_.reset();
      return std::nullopt;
    }
    ++position_.window;
    position_.window_batch = 0;
    position_.skipped = skipped;
    window_.reset();
  }
}

void BatchStream::seek(const StreamPosition& position) {
  require(position.window < windows_,
          "the training data have {} windows, not {}: the corpus or its options changed", windows_,
          position.window + 1);
  const bool elsewhere = position.epoch != position_.epoch || position.window != position_.window;
  if (elsewhere) {
    stop_preparing();
    window_.reset();
  }
  position_ = position;
  const auto batches = static_cast<int64_t>(current_window().batches.size());
  require(position.window_batch <= batches && position.batch >= position.window_batch,
          "the training data have {} batches in window {}, not {}: the corpus or its options changed",
          batches, position.window + 1, position.window_batch);
}

const BatchStream::Window& BatchStream::current_window() {
  if (window_) return *window_;
  const std::pair wanted(position_.epoch, position_.window);
  if (ahead_.valid() && ahead_of_ == wanted) {
    window_ = ahead_.get();  // or throws what the thread threw
  } else {
    stop_preparing();
    window_ = make_window(wanted.first, wanted.second);
  }
  if (options_.prefetch) {
    const bool last = position_.window + 1 == windows_;
    prepare(last ? position_.epoch + 1 : position_.epoch, last ? 0 : position_.window + 1);
  }
  return *window_;
}

void BatchStream::prepare(int64_t epoch, int64_t window) {
  ahead_of_ = {epoch, window};
  try {
    ahead_ = std::async(std::launch::async, [this, epoch, window] { return make_window(epoch, window); });
  } catch (const std::system_error&) {
    ahead_ = {};  // the system starts no more threads: the window is made when it is needed
  }
}

void BatchStream::stop_preparing() {
  if (!ahead_.valid()) return;
  stop_ = true;
  ahead_.wait();
  ahead_ = {};
  stop_ = false;
}

// Runs on one thread at a time: whoever starts it has waited for the one before.
BatchStream::WindowPointer BatchStream::make_window(int64_t epoch, int64_t index) {
  const RandomKey key = RandomKey(options_.seed).with("batches").with(static_cast<uint64_t>(epoch));
  const Permutation shuffled(key.with("lines"), static_cast<uint64_t>(corpus_.pairs()));
  const bool whole = windows_ == 1;
  const int64_t begin = index * options_.window, end = std::min(begin + options_.window, corpus_.pairs());
  const auto line_at = [&](int64_t i) { return static_cast<int64_t>(shuffled(static_cast<uint64_t>(i))); };

  auto window = std::make_unique<Window>();
  window->pairs = whole_corpus_;
  if (!window->pairs) {
    auto pairs = std::make_shared<EncodedPairs>();
    for (int64_t i = begin; i < end; ++i) {
      if (stop_) return nullptr;
      const int64_t line = whole ? i : line_at(i);
      add_usable(encoded(corpus_, line, tokenizer_, links_), line, options_, pairs->store, pairs->skipped);
    }
    window->pairs = std::move(pairs);
    if (whole) whole_corpus_ = window->pairs;
  }

  const PairStore& store = window->pairs->store;
  Order& order = window->order;
  if (whole) {
    constexpr uint32_t kNone = UINT32_MAX;
    std::vector<uint32_t> pair_of_line(static_cast<size_t>(corpus_.pairs()), kNone);
    for (size_t i = 0; i < store.pairs.size(); ++i)
      pair_of_line[static_cast<size_t>(store.pairs[i].line)] = static_cast<uint32_t>(i);
    for (int64_t i = begin; i < end; ++i) {
      const uint32_t pair = pair_of_line[static_cast<size_t>(line_at(i))];
      if (pair != kNone) order.push_back(pair);
    }
  } else {
    order.resize(store.pairs.size());
    std::iota(order.begin(), order.end(), 0u);
  }
  sort_by_length(store, order);
  window->batches = cut_evenly(store, order, limits_of(options_));
  const RandomKey batch_key = key.with("order").with(static_cast<uint64_t>(index));
  for (size_t i = window->batches.size(); i > 1; --i)  // Fisher and Yates
    std::swap(window->batches[i - 1], window->batches[batch_key.below(i, i)]);
  return window;
}

ValidationBatches validation_batches(const ParallelCorpus& corpus, const text::Tokenizer& tokenizer,
                                     int64_t tokens) {
  require(tokens >= 1, "a batch of {} target tokens holds no sentence", tokens);
  ValidationBatches result;
  PairStore store;
  for (int64_t line = 0; line < corpus.pairs(); ++line) {
    const Encoded pair = encoded(corpus, line, tokenizer, nullptr);
    if (pair.source.size() <= kOnlyEnd || pair.target.size() <= kOnlyEnd) {
      ++result.skipped.empty;
    } else {
      store.add(pair, line);
    }
  }
  require(!store.pairs.empty(),
          "every pair of {} and {} has an empty side: there is nothing to validate with",
          corpus.source_path().string(), corpus.target_path().string());
  Order order(store.pairs.size());
  std::iota(order.begin(), order.end(), 0u);
  sort_by_length(store, order);
  for (const Range range : cut(store, order, {2 * tokens, tokens}))
    result.batches.push_back(gather(store, order, range));
  return result;
}

}  // namespace gloss::data
