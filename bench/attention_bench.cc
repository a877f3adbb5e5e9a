// Tokens a second through the kernels of self-attention, forward and backward, and one cached step, over keys
// and values in float and in bfloat16, with a bias by distance (relative positions) and without it. One
// thread: heads and sentences share nothing.
//
//   attention_bench --lengths FILE [--threads N]
//
// measures one ragged batch instead, forward alone and forward with backward, as attention_torch.py does in
// PyTorch: FILE holds the lengths of its sentences. bench/run runs both in turns.
#include <benchmark/benchmark.h>

#include <cmath>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include "arguments.h"
#include "gloss/base/random.h"
#include "gloss/kernels/attention.h"
#include "gloss/kernels/isa.h"
#include "gloss/tensor/arena.h"

namespace gloss::bench {
namespace {

enum class Pass { forward, backward, both, cached_step, cached_step_bfloat16 };

struct Heads {
  int64_t count, d_k;
};
constexpr Heads kHeads[] = {{4, 32}, {8, 64}};  // of tiny and base

// A batch of 4,000 tokens in sentences as long as Multi30k's, and one of long sentences.
struct Even {
  int64_t length, sentences;
};
constexpr Even kEven[] = {{14, 286}, {512, 8}};

struct Problem {
  Problem(Heads of, const std::vector<int64_t>& lengths, bool biased)
      : offsets(Offsets::of_lengths(lengths)), sentences(offsets.count()) {
    const int64_t rows = offsets.total(), width = of.count * of.d_k, longest = offsets.longest();
    for (Tensor<float>* x : {&query, &key, &value, &doutput, &output, &dquery, &dkey, &dvalue})
      *x = random({rows, width});
    statistics = random({rows, of.count, 2});
    bias = random({of.count, 2 * longest - 1});
    dbias = random(bias.shape());
    in.query = kernels::matrix(query);
    in.key = kernels::matrix(key);
    in.value = kernels::matrix(value);
    in.query_offsets = in.key_offsets = offsets;
    in.heads = of.count;
    in.d_k = in.d_v = of.d_k;
    in.scale = static_cast<float>(1 / std::sqrt(static_cast<double>(of.d_k)));
    gradient.output = kernels::matrix(output);
    gradient.doutput = kernels::matrix(doutput);
    gradient.statistics = statistics.data();
    gradient.dquery = kernels::matrix(dquery);
    gradient.dkey = kernels::matrix(dkey);
    gradient.dvalue = kernels::matrix(dvalue);
    if (biased) {
      in.bias = {kernels::matrix(bias), longest - 1};
      gradient.dbias = kernels::matrix(dbias);
    }
    rounded_key = rounded(key);
    rounded_value = rounded(value);
    // A step in which every sentence has come to its end: its keys and values stand one after another.
    for (int64_t s = 0; s < sentences; ++s) {
      const int64_t row = offsets.begin(s);
      cached_rows.push_back({key.row(row), value.row(row), nullptr, offsets.length(s)});
      rounded_rows.push_back({rounded_key.row(row), rounded_value.row(row), nullptr, offsets.length(s)});
    }
    step = {{query.data(), sentences, width, width},
            cached_rows,
            width,
            width,
            of.count,
            of.d_k,
            of.d_k,
            in.scale,
            in.bias};
    rounded_step = {step.query, rounded_rows, width, width, of.count, of.d_k, of.d_k, in.scale, in.bias};
  }
  Tensor<float> random(gloss::Shape of) {
    const Tensor<float> x(arena, of);
    for (int64_t i = 0; i < x.size(); ++i)
      x.data()[i] =
          static_cast<float>(RandomKey(static_cast<uint64_t>(seed)).normal(static_cast<uint64_t>(i)));
    ++seed;
    return x;
  }
  Tensor<kernels::Bfloat16> rounded(const Tensor<float>& x) {
    const Tensor<kernels::Bfloat16> kept(arena, x.shape());
    kernels::store_numbers(x.data(), x.size(), kept.data());
    return kept;
  }
  void run(ThreadPool& pool, Pass pass) {
    if (pass == Pass::forward || pass == Pass::both) {
      kernels::attention_forward<float>(pool, in, kernels::matrix(output), statistics.data(), nullptr,
                                        nullptr);
    }
    if (pass == Pass::backward || pass == Pass::both) kernels::attention_backward(pool, in, gradient);
    const kernels::Matrix<float> last{output.data(), sentences, output.cols(), output.cols()};
    if (pass == Pass::cached_step) kernels::cached_attention(pool, step, last);
    if (pass == Pass::cached_step_bfloat16) kernels::cached_attention(pool, rounded_step, last);
  }
  int64_t tokens(Pass pass) const {
    return pass == Pass::cached_step || pass == Pass::cached_step_bfloat16 ? sentences : offsets.total();
  }

  Offsets offsets;
  int64_t sentences;
  Arena arena;
  int seed = 1;
  Tensor<float> query, key, value, doutput, output, dquery, dkey, dvalue, statistics, bias, dbias;
  kernels::Attention<float> in;
  kernels::AttentionGradient<float> gradient;
  std::vector<kernels::CachedRows<float>> cached_rows;
  kernels::CachedAttention<float> step;
  Tensor<kernels::Bfloat16> rounded_key, rounded_value;
  std::vector<kernels::CachedRows<kernels::Bfloat16>> rounded_rows;
  kernels::CachedAttention<kernels::Bfloat16> rounded_step;
};

void run(benchmark::State& state, Problem& problem, int threads, Pass pass) {
  ThreadPool pool(threads);
  problem.run(pool, Pass::forward);  // for the statistics, and to be warm
  for (auto _ : state) problem.run(pool, pass);
  state.counters["tokens/s"] = benchmark::Counter(
      static_cast<double>(state.iterations() * problem.tokens(pass)), benchmark::Counter::kIsRate);
}

std::string name(const char* what, Heads heads) {
  return std::string(what) + "/heads:" + std::to_string(heads.count) + "/d_k:" + std::to_string(heads.d_k);
}

void register_even() {
  for (const Heads heads : kHeads) {
    for (const Even& even : kEven) {
      for (const auto& [pass, what] : {std::pair{Pass::forward, "forward"},
                                       {Pass::backward, "backward"},
                                       {Pass::cached_step, "cached_step"},
                                       {Pass::cached_step_bfloat16, "cached_step_bfloat16"}}) {
        for (const bool biased : {false, true}) {
          const std::string full =
              name(what, heads) + "/n:" + std::to_string(even.length) + (biased ? "/relative" : "/plain");
          benchmark::RegisterBenchmark(
              full.c_str(), [heads, even, biased, pass = pass](benchmark::State& state) {
                Problem problem(heads, std::vector<int64_t>(static_cast<size_t>(even.sentences), even.length),
                                biased);
                run(state, problem, 1, pass);
              });
        }
      }
    }
  }
}

std::vector<int64_t> read_lengths(const std::string& path) {
  std::ifstream file(path);
  std::vector<int64_t> lengths;
  for (int64_t length = 0; file >> length;) {
    require(length > 0, "a length in '{}' is not above 0", path);
    lengths.push_back(length);
  }
  require(file.eof() && !lengths.empty(), "--lengths names a file of numbers; '{}' holds none", path);
  return lengths;
}

void register_ragged(const std::vector<int64_t>& lengths, int threads) {
  for (const Heads heads : kHeads) {
    for (const auto& [pass, what] :
         {std::pair{Pass::forward, "ragged_forward"}, {Pass::both, "ragged_both"}}) {
      auto* registered = benchmark::RegisterBenchmark(
          name(what, heads).c_str(), [heads, lengths, threads, pass = pass](benchmark::State& state) {
            Problem problem(heads, lengths, false);
            run(state, problem, threads, pass);
          });
      registered->UseRealTime();
    }
  }
}

}  // namespace
}  // namespace gloss::bench

int main(int argc, char** argv) {
  using namespace gloss::bench;
  try {
    gloss::kernels::limit_isa_from_environment();
    const Arguments arguments(argc, argv, {"--lengths", "--threads"});
    if (const std::string file = arguments.text("--lengths"); !file.empty()) {
      register_ragged(read_lengths(file), static_cast<int>(arguments.number("--threads", 1)));
    } else {
      register_even();
    }
    benchmark::Initialize(&argc, argv);
    if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
    benchmark::RunSpecifiedBenchmarks();
    benchmark::Shutdown();
  } catch (const gloss::Error& error) {
    std::cerr << "attention_bench: " << error.what() << '\n';
    return 2;
  }
}
