// What it costs to record attention, and that it costs nothing where nobody asks: tokens a second of a
// teacher-forced pass of `tiny` and of rnn-small, one thread. "no record": no place to file anything;
// "asked for nothing": a record that wants no layer, which every training pass has; then one layer, then all
// of every kind with the matrices in between.
#include <benchmark/benchmark.h>

#include <memory>
#include <vector>

#include "gloss/base/random.h"
#include "gloss/models/rnn_search.h"
#include "gloss/models/teacher_forcing.h"
#include "gloss/models/transformer.h"

namespace gloss::bench {
namespace {

using models::AttentionKind;
using models::AttentionRecord;

constexpr int64_t kVocabulary = 8000, kSentences = 64, kLength = 14;

Tokens sentences(uint64_t seed) {
  Tokens tokens;
  for (int64_t i = 0; i < kSentences * kLength; ++i)
    tokens.rows.push_back(
        static_cast<int32_t>(1 + RandomKey(seed).below(static_cast<uint64_t>(i), kVocabulary - 2)));
  tokens.offsets =
      Offsets::of_lengths(std::vector<int64_t>(static_cast<size_t>(kSentences), int64_t{kLength}));
  return tokens;
}

template <class Config>
Config with_vocabulary(Config config) {
  config.source_vocabulary = config.target_vocabulary = kVocabulary;
  config.symbols = {0, kVocabulary - 1, kVocabulary - 1};
  return config;
}

enum class Asked { no_record, nothing, one_layer, everything };

template <class Network, class Config>
void forced_pass(benchmark::State& state, const Config& config, Asked asked) {
  Context context(1);
  Network network(with_vocabulary(config), context.arena);
  network.parameters().initialise(1);
  const Tokens source = sentences(1), input = models::decoder_input(sentences(2), kVocabulary - 1);
  for (auto _ : state) {
    autograd::Tape<float> tape(context);
    AttentionRecord<float> record;
    if (asked == Asked::one_layer) record.request = {{AttentionKind::cross}, 0, false};
    if (asked == Asked::everything)
      record.request = {{AttentionKind::cross, AttentionKind::encoder, AttentionKind::decoder}, {}, true};
    AttentionRecord<float>* const to = asked == Asked::no_record ? nullptr : &record;
    const auto memory = network.encode(tape, source);
    benchmark::DoNotOptimize(network.decode(tape, input, memory, to).rows.value().data());
  }
  state.SetItemsProcessed(state.iterations() * kSentences * kLength);
}

template <class Network, class Config>
void add(const char* name, const Config& config) {
  for (const auto& [asked, text] :
       {std::pair{Asked::no_record, "no record"}, std::pair{Asked::nothing, "asked for nothing"},
        std::pair{Asked::one_layer, "one layer"}, std::pair{Asked::everything, "everything"}}) {
    benchmark::RegisterBenchmark((std::string(name) + "/" + text).c_str(), [config,
                                                                            asked](benchmark::State& state) {
      forced_pass<Network>(state, config, asked);
    })->Unit(benchmark::kMillisecond);
  }
}

}  // namespace
}  // namespace gloss::bench

int main(int argc, char** argv) {
  using namespace gloss;
  models::TransformerConfig tiny = models::transformer_preset("tiny");
  tiny.dropout = 0;
  bench::add<models::Transformer<float>>("tiny", tiny);
  bench::add<models::RnnSearch<float>>("rnn-small", models::rnn_search_preset("rnn-small"));
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
