// What `gloss info` says of the cache, against an allocator that knows no formula and counts what it is asked
// for while a real search runs.
#include <gtest/gtest.h>

#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "gloss/decode/search.h"
#include "gloss/models/cache_memory.h"
#include "gloss/models/transformer_decoder.h"
#include "gloss/models/transformer_model.h"
#include "support/random.h"

namespace gloss::decode {
namespace {

constexpr int64_t kLayers = 3, kModel = 16, kVocabulary = 30;

models::TransformerConfig small_config() {
  models::TransformerConfig config;
  config.source_vocabulary = config.target_vocabulary = kVocabulary;
  config.d_model = kModel;
  config.encoder = {1, 2, 24};
  config.decoder = {kLayers, 2, 24};
  config.symbols = {0, kVocabulary - 1, kVocabulary - 1};
  return config;
}

// A decoder that looks at its arena before each call that could change the cache: between two calls nothing
// lives there but the cache.
template <class Stored>
class Watched final : public models::DecoderState {
 public:
  Watched(const models::TransformerModel& model, Context& context)
      : inner_(model.transformer(), context), arena_(context.arena) {}

  int64_t vocabulary_size() const override { return inner_.vocabulary_size(); }
  int32_t start_token() const override { return inner_.start_token(); }
  int32_t end_token() const override { return inner_.end_token(); }
  std::span<const int32_t> forbidden_tokens() const override { return inner_.forbidden_tokens(); }
  void add(std::span<const int> slots, const Tokens& sources) override { inner_.add(slots, sources); }
  void remove(int slot) override {
    look();
    inner_.remove(slot);
  }
  Tensor<float> advance(std::span<const models::Step> steps) override {
    look();
    ++advances;
    return inner_.advance(steps);
  }
  Tensor<float> logits(const Tensor<float>& states) override { return inner_.logits(states); }
  int64_t requested() const { return static_cast<int64_t>(arena_.counters().bytes_requested); }

  int64_t peak = 0;                // bytes that the cache had asked for, at most
  attention::KvCacheSize at_peak;  // what it said of itself then
  int64_t advances = 0;

 private:
  void look() {
    const auto size = inner_.cache_size();
    EXPECT_EQ(requested(), size.self_bytes + size.memory_bytes + size.spare_bytes);
    if (requested() < peak) return;
    peak = requested();
    at_peak = size;
  }

  models::TransformerDecoder<Stored> inner_;
  Arena& arena_;
};

struct Taken {
  int64_t peak = 0;
  attention::KvCacheSize at_peak;
};

// Translates `batch` sentences of m tokens at a time, whose hypotheses all read n tokens: n - 1 and the start
// symbol; the end symbol behind them is forced and not read.
template <class Stored>
Taken run(const models::TransformerModel& model, const models::CacheUse& use) {
  Context context(2);
  Watched<Stored> state(model, context);
  Tokens sources;
  sources.rows = tests::random_ids(use.batch * use.source_length, kVocabulary - 1, 3);
  sources.offsets =
      Offsets::of_lengths(std::vector<int64_t>(static_cast<size_t>(use.batch), use.source_length));
  SearchOptions options;
  options.beam = static_cast<int>(use.beam);
  options.batch = static_cast<int>(use.batch);
  options.min_length = options.max_length = use.target_length + 1;
  for (const auto& hypotheses : search(context, state, sources, options)) {
    EXPECT_EQ(hypotheses.at(0).tokens.size(), static_cast<size_t>(use.target_length + 1));
  }
  EXPECT_EQ(state.advances, use.target_length);
  EXPECT_EQ(state.requested(), 0) << "the cache did not give back what it had";
  return {state.peak, state.at_peak};
}

template <class Stored>
class CacheMemoryOfASearch : public ::testing::Test {
 protected:
  CacheMemoryOfASearch() : model_(small_config(), arena_) { model_.initialise(1); }
  static Taken run(const models::TransformerModel& model, const models::CacheUse& use) {
    return decode::run<Stored>(model, use);
  }
  models::CacheMemory said(const models::CacheUse& use) const {
    return models::cache_memory(
        model_.cache_cost(kElement == 2 ? models::CachePrecision::bfloat16 : models::CachePrecision::float32),
        use);
  }
  static constexpr int64_t kElement = std::is_same_v<Stored, kernels::Bfloat16> ? 2 : 4;
  Arena arena_;
  models::TransformerModel model_;
};

using StoredNumbers = ::testing::Types<float, kernels::Bfloat16>;
TYPED_TEST_SUITE(CacheMemoryOfASearch, StoredNumbers);

// Where the room of a slot is used up, what was asked for is the payload: the formula to the byte.
TYPED_TEST(CacheMemoryOfASearch, IsThePayloadToTheByte) {
  const int64_t m = 7, batch = 4;
  for (const int64_t n : {16, 32, 64}) {  // one row a token
    const int64_t formula = kLayers * this->kElement * (2 * n * kModel * batch * 1 + 2 * m * kModel * batch);
    EXPECT_EQ(this->run(this->model_, {m, n, batch, 1}).peak, formula);
    EXPECT_EQ(this->said({m, n, batch, 1}).payload_bytes, formula);
  }
  // 1 + (n - 1) beam rows: 16, 64 and 256, whole pages. Some hypotheses die, and their rows with them.
  constexpr std::pair<int64_t, int64_t> kFull[] = {{6, 3}, {22, 3}, {52, 5}};
  for (const auto& [n, beam] : kFull) {
    const int64_t formula =
        kLayers * this->kElement * (2 * n * kModel * batch * beam + 2 * m * kModel * batch);
    const int64_t shared = kLayers * this->kElement * 2 * kModel * batch * (beam - 1);
    const Taken found = this->run(this->model_, {m, n, batch, beam});
    EXPECT_LE(found.peak, formula - shared) << n << " tokens, beam " << beam;
    EXPECT_GE(found.peak, (formula - shared) / beam) << n << " tokens, beam " << beam;
    const auto said = this->said({m, n, batch, beam});
    EXPECT_EQ(said.payload_bytes, formula);
    EXPECT_EQ(said.shared_bytes, shared);
    EXPECT_EQ(said.spare_bytes, 0);
  }
}

// Anywhere else: payload, spare capacity and tables each by themselves.
TYPED_TEST(CacheMemoryOfASearch, IsForetoldPartByPart) {
  for (const auto& use : {models::CacheUse{5, 1, 2, 1}, models::CacheUse{1, 2, 3, 4},
                          models::CacheUse{9, 20, 3, 5}, models::CacheUse{3, 41, 1, 2}}) {
    const Taken found = this->run(this->model_, use);
    const auto said = this->said(use);
    const int64_t rows = said.self_bytes - said.shared_bytes;
    EXPECT_EQ(found.at_peak.memory_bytes, said.memory_bytes);
    EXPECT_EQ(found.at_peak.table_bytes, said.table_bytes);
    EXPECT_LE(found.peak, said.payload_bytes - said.shared_bytes + said.spare_bytes);
    EXPECT_LE(found.at_peak.self_bytes, rows);
    if (use.beam > 1 && use.target_length > 10) {
      EXPECT_LT(found.at_peak.self_bytes, rows) << "no dead row gave way";
    } else {
      EXPECT_EQ(found.at_peak.self_bytes, rows);
      EXPECT_EQ(found.at_peak.spare_bytes, said.spare_bytes);
    }
  }
}

}  // namespace
}  // namespace gloss::decode
