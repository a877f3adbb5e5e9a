// Additive attention, forward and backward, as the recurrent model trains with it. bench/run runs it in turns
// with PyTorch (additive_torch.py).
//
//   additive_bench --batch FILE [--threads N] [--d-a N] [--d-h N] [--benchmark_filter=step|all]
//
// FILE holds a line "source target" of two lengths for each sentence of the batch. `step` calls the operation
// once a time step with one query for each sentence that is still alive, and walks back through all of them;
// `all` gives every query to one call. Gradients for queries, keys, h and v_a.
#include <benchmark/benchmark.h>

#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include "arguments.h"
#include "gloss/attention/additive.h"
#include "gloss/base/random.h"
#include "gloss/kernels/isa.h"

namespace gloss::bench {
namespace {

using autograd::Tape;
using autograd::Var;

struct Options {
  std::vector<int64_t> sources, targets;  // lengths, a sentence each
  int threads = 2;
  int64_t d_a = 256, d_h = 512;
};

Tensor<float> numbers(Arena& arena, Shape shape, uint64_t seed) {
  const RandomKey key(seed);
  const Tensor<float> values(arena, shape);
  for (int64_t i = 0; i < values.size(); ++i) {
    values.data()[i] = static_cast<float>(key.normal(static_cast<uint64_t>(i)));
  }
  return values;
}

// The queries of one call, and what comes back to their contexts.
struct Call {
  Offsets queries;
  Tensor<float> query, dcontext;
};

void run(benchmark::State& state, const Options& options, const std::vector<std::vector<int64_t>>& calls) {
  Context context(options.threads);
  Arena& arena = context.arena;
  const Offsets sources = Offsets::of_lengths(options.sources);
  const Tensor<float> keys = numbers(arena, {sources.total(), options.d_a}, 1),
                      h = numbers(arena, {sources.total(), options.d_h}, 2),
                      v_a = numbers(arena, {options.d_a}, 3);
  std::vector<Call> prepared;
  for (const std::vector<int64_t>& lengths : calls) {
    const Offsets queries = Offsets::of_lengths(lengths);
    prepared.push_back({queries, numbers(arena, {queries.total(), options.d_a}, 4),
                        numbers(arena, {queries.total(), options.d_h}, 5)});
  }
  const auto train = [&] {
    Tape<float> tape(context, Tape<float>::Mode::train);
    const Var<float> k = tape.leaf(keys), values = tape.leaf(h), v = tape.leaf(v_a);
    std::vector<std::pair<Var<float>, Tensor<float>>> results;
    for (const Call& call : prepared) {
      const auto attended =
          attention::additive_attention(tape, tape.leaf(call.query), call.queries, k, values, sources, v);
      results.emplace_back(attended.context, call.dcontext);
    }
    tape.backward(std::move(results));
    benchmark::DoNotOptimize(tape.gradient(k).data());
  };
  train();  // takes the memory
  for (auto _ : state) train();
  int64_t pairs = 0;
  for (const Call& call : prepared) {
    for (int64_t s = 0; s < sources.count(); ++s) pairs += call.queries.length(s) * sources.length(s);
  }
  state.SetItemsProcessed(state.iterations() * pairs);
}

void register_all(const Options& options) {
  int64_t steps = 0;
  for (const int64_t target : options.targets) steps = std::max(steps, target);
  std::vector<std::vector<int64_t>> by_step;
  for (int64_t i = 0; i < steps; ++i) {
    by_step.emplace_back();
    for (const int64_t target : options.targets) by_step.back().push_back(i < target ? 1 : 0);
  }
  const auto add = [&](const char* name, const std::vector<std::vector<int64_t>>& calls) {
    benchmark::RegisterBenchmark(name,
                                 [options, calls](benchmark::State& state) { run(state, options, calls); })
        ->Unit(benchmark::kMillisecond)
        ->UseRealTime();
  };
  add("step", by_step);
  add("all", {options.targets});
}

Options read_options(int& argc, char** argv) {
  const Arguments arguments(argc, argv, {"--batch", "--threads", "--d-a", "--d-h"});
  Options options;
  options.threads = static_cast<int>(arguments.number("--threads", options.threads));
  options.d_a = arguments.number("--d-a", options.d_a);
  options.d_h = arguments.number("--d-h", options.d_h);
  const std::string batch = arguments.text("--batch");
  std::ifstream file(batch);
  require(file.is_open(), "--batch names a file of lines 'source target' of two lengths; '{}' cannot be read",
          batch);
  for (int64_t source = 0, target = 0; file >> source >> target;) {
    require(source >= 0 && target >= 0, "a length in '{}' is below 0", batch);
    options.sources.push_back(source);
    options.targets.push_back(target);
  }
  require(file.eof() && !options.sources.empty(), "'{}' holds no lines 'source target' of two lengths",
          batch);
  return options;
}

}  // namespace
}  // namespace gloss::bench

int main(int argc, char** argv) {
  try {
    gloss::kernels::limit_isa_from_environment();
    const gloss::bench::Options options = gloss::bench::read_options(argc, argv);
    gloss::bench::register_all(options);
    benchmark::Initialize(&argc, argv);
    if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
    benchmark::RunSpecifiedBenchmarks();
    benchmark::Shutdown();
  } catch (const gloss::Error& error) {
    std::cerr << "additive_bench: " << error.what() << '\n';
    return 2;
  }
}
