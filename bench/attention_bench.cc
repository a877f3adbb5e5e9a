// Tokens a second through the kernels of self-attention, forward and backward, and one cached step, with a
// bias by distance (relative positions) and without it. One thread: heads and sentences share nothing.
#include <benchmark/benchmark.h>

#include <cmath>
#include <string>
#include <vector>

#include "gloss/base/random.h"
#include "gloss/kernels/attention.h"
#include "gloss/tensor/arena.h"

namespace gloss::bench {
namespace {

enum class Pass { forward, backward, cached_step };

struct Shape {
  int64_t heads, d_k, length, sentences;
};
// A batch of 4,000 tokens in sentences as long as Multi30k's, and one of long sentences: tiny and base.
constexpr Shape kShapes[] = {{4, 32, 14, 286}, {4, 32, 512, 8}, {8, 64, 14, 286}, {8, 64, 512, 8}};

struct Problem {
  explicit Problem(const Shape& of, bool biased) : shape(of) {
    const int64_t rows = of.length * of.sentences, width = of.heads * of.d_k;
    for (Tensor<float>* x : {&query, &key, &value, &doutput, &output, &dquery, &dkey, &dvalue})
      *x = random({rows, width});
    statistics = random({rows, of.heads, 2});
    bias = random({of.heads, 2 * of.length - 1});
    dbias = random(bias.shape());
    in.query = kernels::matrix(query);
    in.key = kernels::matrix(key);
    in.value = kernels::matrix(value);
    in.query_offsets = in.key_offsets =
        Offsets::of_lengths(std::vector<int64_t>(static_cast<size_t>(of.sentences), of.length));
    in.heads = of.heads;
    in.d_k = in.d_v = of.d_k;
    in.scale = static_cast<float>(1 / std::sqrt(static_cast<double>(of.d_k)));
    gradient.output = kernels::matrix(output);
    gradient.doutput = kernels::matrix(doutput);
    gradient.statistics = statistics.data();
    gradient.dquery = kernels::matrix(dquery);
    gradient.dkey = kernels::matrix(dkey);
    gradient.dvalue = kernels::matrix(dvalue);
    if (biased) {
      in.bias = {kernels::matrix(bias), of.length - 1};
      gradient.dbias = kernels::matrix(dbias);
    }
    // A step in which every sentence has come to its end: its keys and values stand one after another.
    for (int64_t s = 0; s < of.sentences; ++s)
      cached_rows.push_back({key.row(s * of.length), value.row(s * of.length), nullptr, of.length});
    step = {{query.data(), of.sentences, width, width},
            cached_rows,
            width,
            width,
            of.heads,
            of.d_k,
            of.d_k,
            in.scale,
            in.bias};
  }
  Tensor<float> random(gloss::Shape of) {
    const Tensor<float> x(arena, of);
    for (int64_t i = 0; i < x.size(); ++i)
      x.data()[i] =
          static_cast<float>(RandomKey(static_cast<uint64_t>(seed)).normal(static_cast<uint64_t>(i)));
    ++seed;
    return x;
  }
  void run(ThreadPool& pool, Pass pass) {
    if (pass == Pass::forward) {
      kernels::attention_forward<float>(pool, in, kernels::matrix(output), statistics.data(), nullptr,
                                        nullptr);
    } else if (pass == Pass::backward) {
      kernels::attention_backward(pool, in, gradient);
    } else {
      kernels::cached_attention<float>(pool, step,
                                       {output.data(), shape.sentences, output.cols(), output.cols()});
    }
  }
  int64_t tokens(Pass pass) const { return shape.sentences * (pass == Pass::cached_step ? 1 : shape.length); }

  Shape shape;
  Arena arena;
  int seed = 1;
  Tensor<float> query, key, value, doutput, output, dquery, dkey, dvalue, statistics, bias, dbias;
  kernels::Attention<float> in;
  kernels::AttentionGradient<float> gradient;
  std::vector<kernels::CachedRows<float>> cached_rows;
  kernels::CachedAttention<float> step;
};

void run(benchmark::State& state, const Shape& shape, bool biased, Pass pass) {
  Problem problem(shape, biased);
  ThreadPool pool(1);
  problem.run(pool, Pass::forward);  // for the statistics, and to be warm
  for (auto _ : state) problem.run(pool, pass);
  state.counters["tokens/s"] = benchmark::Counter(
      static_cast<double>(state.iterations() * problem.tokens(pass)), benchmark::Counter::kIsRate);
}

}  // namespace
}  // namespace gloss::bench

int main(int argc, char** argv) {
  using namespace gloss::bench;
  for (const Shape& shape : kShapes) {
    for (const auto& [pass, name] : {std::pair{Pass::forward, "forward"},
                                     {Pass::backward, "backward"},
                                     {Pass::cached_step, "cached_step"}}) {
      for (const bool biased : {false, true}) {
        const std::string full = std::string(name) + "/heads:" + std::to_string(shape.heads) +
                                 "/d_k:" + std::to_string(shape.d_k) + "/n:" + std::to_string(shape.length) +
                                 (biased ? "/relative" : "/plain");
        benchmark::RegisterBenchmark(full.c_str(), [&shape, biased, pass = pass](benchmark::State& state) {
          run(state, shape, biased, pass);
        });
      }
    }
  }
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
}
