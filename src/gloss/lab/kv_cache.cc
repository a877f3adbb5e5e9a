#include "gloss/lab/kv_cache.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <numeric>
#include <vector>

#include "gloss/inspect/chart.h"
#include "gloss/lab/drawn.h"
#include "gloss/models/transformer_decoder.h"
#include "gloss/models/transformer_model.h"

namespace gloss::lab {
namespace {

constexpr int64_t kVocabulary = 64;

// What one decoder did: its text, and what each step cost.
struct Decoded {
  std::vector<std::vector<int32_t>> text;  // of each hypothesis
  std::vector<int64_t> rows;               // target keys and values projected so far, a layer
  std::vector<double> milliseconds;
  attention::KvCacheSize size;  // zeros without a cache
};

// The first step takes the `beam` best words, and each hypothesis then its best word, so that all of them
// stay.
Decoded decode(const models::TransformerModel& model, const Tokens& source, const KvCache::Options& options,
               models::Caching caching) {
  Context context(1);
  const std::unique_ptr<models::DecoderState> state = model.decoder_state(context, caching);
  const std::array<int, 1> slots{0};
  state->add(slots, source);
  Decoded result;
  result.text.resize(static_cast<size_t>(options.beam));
  std::vector<models::Step> steps{{0, 0, state->start_token()}};
  for (int64_t t = 0; t < options.target; ++t) {
    const auto before = std::chrono::steady_clock::now();
    const Tensor<float> logits = state->logits(state->advance(steps));
    const std::chrono::duration<double, std::milli> taken = std::chrono::steady_clock::now() - before;
    result.milliseconds.push_back(taken.count());
    result.rows.push_back(state->key_value_rows());
    steps.clear();
    for (size_t h = 0; h < result.text.size(); ++h) {
      const auto hypothesis = static_cast<int64_t>(h);
      const std::span<const float> row = logits.slice_rows(t == 0 ? 0 : hypothesis, 1).values();
      std::vector<int32_t> best(row.size());
      std::iota(best.begin(), best.end(), 0);
      std::ranges::stable_sort(best, [&](int32_t a, int32_t b) {
        return row[static_cast<size_t>(a)] > row[static_cast<size_t>(b)];
      });
      const int32_t token = best[t == 0 ? h : 0];
      result.text[h].push_back(token);
      steps.push_back({0, t == 0 ? 0 : static_cast<int>(h), token});
    }
  }
  if (const auto* cached = dynamic_cast<const models::TransformerDecoder<float>*>(state.get()))
    result.size = cached->cache_size();
  return result;
}

double mean(std::span<const double> x) {
  return std::accumulate(x.begin(), x.end(), 0.0) / static_cast<double>(x.size());
}

void steps_table(Report& report, const Decoded& with, const Decoded& without, int64_t n) {
  Table table{"rows of keys and values a layer up to step t; mean time of a step since the line above",
              {"t", "with the cache", "without", "ms a step", "without"},
              {}};
  int64_t last = 0;
  for (int64_t t = 1; last < n; t = std::min(2 * t, n)) {
    const auto at = static_cast<size_t>(t - 1), from = static_cast<size_t>(last),
               count = static_cast<size_t>(t - last);
    const std::span<const double> a(with.milliseconds), b(without.milliseconds);
    table.rows.push_back({fmt::format("{}", t), fmt::format("{}", with.rows[at]),
                          fmt::format("{}", without.rows[at]), cell(mean(a.subspan(from, count))),
                          cell(mean(b.subspan(from, count)))});
    last = t;
  }
  report.tables.push_back(std::move(table));
}

void bytes(Report& report, const KvCache::Options& options, const attention::KvCacheSize& size) {
  const int64_t element = sizeof(float), n = options.target, m = options.source, d = options.d_model;
  // Written out from the formula; the first token's row is one for all hypotheses.
  const int64_t self = options.layers * element * 2 * d * (n * options.beam - (options.beam - 1));
  const int64_t cross = options.layers * element * 2 * d * m;
  Context context(1);
  const models::TransformerModel model(small_config(kVocabulary, d, options.layers, options.heads),
                                       context.arena);
  const models::CacheMemory told = models::cache_memory(model.cache_cost(), {m, n, 1, options.beam});
  Table table{fmt::format("bytes held: layers x bytes an element x 2 d_model x rows = {} x {} x {} x rows",
                          options.layers, element, 2 * d),
              {"module", "rows", "formula", "held"},
              {}};
  table.rows.push_back({"self-attention, n", fmt::format("{}", n * options.beam - (options.beam - 1)),
                        fmt::format("{}", self), fmt::format("{}", size.self_bytes)});
  table.rows.push_back({"cross-attention, m", fmt::format("{}", m), fmt::format("{}", cross),
                        fmt::format("{}", size.memory_bytes)});
  report.tables.push_back(std::move(table));
  report.claim(size.self_bytes == self,
               "self-attention holds n rows a hypothesis and decoder layer, the first one shared",
               fmt::format("{} bytes", size.self_bytes));
  report.claim(size.memory_bytes == cross,
               "cross-attention holds m rows a sentence and layer, whatever the beam",
               fmt::format("{} bytes", size.memory_bytes));
  report.claim(
      told.self_bytes - told.shared_bytes == size.self_bytes && told.memory_bytes == size.memory_bytes,
      "so its size is known before it is taken",
      fmt::format("{} bytes told", told.payload_bytes - told.shared_bytes));
}

}  // namespace

Report KvCache::run(const Options& options, Ingredient ingredient) {
  Report report;
  Context context(1);
  models::TransformerModel model(small_config(kVocabulary, options.d_model, options.layers, options.heads),
                                 context.arena);
  const RandomKey key(static_cast<uint64_t>(options.seed));
  model.parameters().initialise(key.state());
  const Tokens source = drawn_sentence(key.with("source"), options.source, kVocabulary);
  const Decoded with = decode(model, source, options,
                              ingredient == Ingredient::kept ? models::Caching::on : models::Caching::off),
                without = decode(model, source, options, models::Caching::off);
  const int64_t n = options.target, beam = options.beam;
  steps_table(report, with, without, n);
  report.claim(with.text == without.text, "the text is the same with the cache and without",
               fmt::format("{} hypotheses of {} tokens", beam, n));
  report.claim(with.rows.back() == 1 + beam * (n - 1),
               "with it each token is projected once: 1 row, then one a hypothesis and step",
               fmt::format("{} rows", with.rows.back()));
  report.claim(without.rows.back() == 1 + beam * (n * (n + 1) / 2 - 1),
               "without it each step projects its whole prefix: n (n + 1) / 2 a hypothesis",
               fmt::format("{} rows", without.rows.back()));
  bytes(report, options, with.size);

  report.figure = [with, without](inspect::PictureFormat format, inspect::Theme theme) {
    inspect::Series a{.name = "with the cache"}, b{.name = "without"};
    for (size_t t = 0; t < with.rows.size(); ++t) {
      a.x.push_back(static_cast<double>(t + 1));
      a.y.push_back(static_cast<double>(with.rows[t]));
      b.y.push_back(static_cast<double>(without.rows[t]));
    }
    b.x = a.x;
    b.style = 1;
    a.marks = b.marks = true;
    const inspect::Chart chart{
        "Keys and values projected", "step", {{.name = "rows a layer", .series = {a, b}, .from_zero = true}}};
    return inspect::draw(chart, format, theme);
  };
  return report;
}

}  // namespace gloss::lab
