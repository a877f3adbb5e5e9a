// The bidirectional GRU encoder, forward and backward, on batches of given lengths: prints tokens a second.
//   gru_bench BATCHES D_IN D_H THREADS
// A line of BATCHES holds the lengths of one batch. Three batches go before the clock starts. bench/run runs
// it in turns with PyTorch (gru_torch.py).
#include <fmt/core.h>

#include <chrono>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "gloss/base/random.h"
#include "gloss/nn/gru.h"

namespace gloss::bench {
namespace {

using autograd::Tape;
using autograd::Var;

std::vector<Offsets> read_batches(const std::string& path) {
  std::ifstream in(path);
  require(in.is_open(), "{} cannot be read", path);
  std::vector<Offsets> batches;
  for (std::string line; std::getline(in, line);) {
    std::istringstream numbers(line);
    std::vector<int64_t> lengths;
    for (int64_t length = 0; numbers >> length;) lengths.push_back(length);
    batches.push_back(Offsets::of_lengths(lengths));
  }
  require(batches.size() > 3, "{} has {} batches: more than 3 are needed", path, batches.size());
  return batches;
}

Tensor<float> numbers(Arena& arena, Shape shape, uint64_t seed) {
  const Tensor<float> tensor(arena, shape);
  for (int64_t i = 0; i < tensor.size(); ++i) {
    tensor.data()[i] = static_cast<float>(2 * RandomKey(seed).uniform(static_cast<uint64_t>(i)) - 1);
  }
  return tensor;
}

double tokens_a_second(const std::vector<Offsets>& batches, int64_t d_in, int64_t d_h, int threads) {
  Context context(threads);
  autograd::ParameterSet<float> parameters;
  const nn::Gru<float> forward(parameters, "forward.", {d_in, d_h}),
      backward(parameters, "backward.", {d_in, d_h});
  parameters.allocate(context.arena);
  parameters.initialise(1);
  parameters.allocate_gradients(context.arena);
  int64_t most = 0, tokens = 0;
  for (const Offsets& batch : batches) most = std::max(most, batch.total());
  const Tensor<float> x = numbers(context.arena, {most, d_in}, 1),
                      up = numbers(context.arena, {most, 2 * d_h}, 2);
  double seconds = 0;
  for (size_t i = 0; i < batches.size(); ++i) {
    const int64_t rows = batches[i].total();
    // The upstream gradient belongs to the tape, which may write into it.
    const Tensor<float> upstream =
        Tensor<float>::from(context.arena, {rows, 2 * d_h}, up.slice_rows(0, rows).values());
    const auto start = std::chrono::steady_clock::now();
    {
      Tape<float> tape(context, Tape<float>::Mode::train);
      const Var<float> leaf = tape.leaf(x.slice_rows(0, rows));
      const auto states = bidirectional(tape, forward, backward, {leaf, batches[i]});
      tape.backward(states.rows, upstream);
    }
    if (i < 3) continue;
    seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    tokens += rows;
  }
  return static_cast<double>(tokens) / seconds;
}

}  // namespace
}  // namespace gloss::bench

int main(int argc, char** argv) {
  try {
    gloss::require(argc == 5, "usage: gru_bench BATCHES D_IN D_H THREADS");
    gloss::kernels::limit_isa_from_environment();
    fmt::print("{:.0f}\n",
               gloss::bench::tokens_a_second(gloss::bench::read_batches(argv[1]), std::stoll(argv[2]),
                                             std::stoll(argv[3]), std::stoi(argv[4])));
  } catch (const std::exception& error) {
    fmt::print(stderr, "gru_bench: {}\n", error.what());
    return 1;
  }
}
