#include "gloss/lab/two_relations.h"

#include "gloss/attention/multi_head.h"
#include "gloss/kernels/adam.h"
#include "gloss/lab/drawn.h"

namespace gloss::lab {
namespace {

using autograd::Tape;
using autograd::Var;

class Learner {
 public:
  explicit Learner(const TwoRelations& task)
      : task_(task),
        context_(1),
        attention_(parameters_, "",
                   {.d_model = 2 * task.width,
                    .heads = task.heads,
                    .d_query = task.places,
                    .d_key = task.places,
                    .d_value = task.width,
                    .d_k = task.d_k,
                    .d_v = task.d_v,
                    .bias = false},
                   attention::Stacking::none) {
    parameters_.allocate(context_.arena);
    parameters_.initialise(task.seed);
    parameters_.allocate_gradients(context_.arena);
    first_.assign(parameters_.values().size(), 0);
    second_ = first_;
  }

  LearnedRelations run() {
    constexpr int64_t kBatch = 16, kTest = 256;  // circles
    const RandomKey key(task_.seed);
    for (int64_t update = 1; update <= task_.updates; ++update) {
      Tape<double> tape(context_, Tape<double>::Mode::train);
      const Pass pass = forward(tape, kBatch, key.with("training").with(static_cast<uint64_t>(update)), {});
      std::ranges::fill(parameters_.gradients(), 0);
      tape.backward(pass.output, pass.error);
      // The rate falls to zero, so that the end does not wander.
      const double left = static_cast<double>(task_.updates - update) / static_cast<double>(task_.updates);
      kernels::adam<double>(context_.pool, {.learning_rate = 0.1 * left, .step = update},
                            parameters_.values(), parameters_.gradients(), first_, second_);
    }
    Tape<double> tape(context_);
    const Pass pass = forward(tape, kTest, key.with("test"), {.weights = true});
    LearnedRelations learned;
    for (const double e : pass.error.values())
      learned.error += e * e / static_cast<double>(pass.error.size());
    // Weights hang on positions alone, so that the first circle's are everyone's.
    learned.weights.assign(pass.weights.data(),
                           pass.weights.data() + task_.heads * task_.places * task_.places);
    return learned;
  }

 private:
  struct Pass {
    Var<double> output;
    Tensor<double> error;  // output - target, the gradient of half its square: [rows, 2 width]
    Tensor<double> weights;
  };

  Pass forward(Tape<double>& tape, int64_t circles, const RandomKey& key, attention::Request request) const {
    const int64_t n = task_.places, width = task_.width, rows = circles * n;
    const Tensor<double> held = drawn(context_.arena, {rows, width}, key),
                         positions = Tensor<double>::zeros(context_.arena, {rows, n});
    for (int64_t i = 0; i < rows; ++i) positions(i, i % n) = 1;
    const std::vector<int64_t> lengths(static_cast<size_t>(circles), n);
    const Offsets offsets = Offsets::of_lengths(lengths);
    const Ragged<Var<double>> place{Var<double>(positions), offsets};
    const auto attended = attention_(tape, place, place, {Var<double>(held), offsets}, {}, 0, request);
    Pass pass{attended.output, tape.allocate({rows, 2 * width}), attended.weights.value()};
    for (int64_t i = 0; i < rows; ++i) {
      const int64_t begin = i - i % n, before = begin + (i + n - 1) % n, behind = begin + (i + 1) % n;
      for (int64_t c = 0; c < width; ++c) {
        pass.error(i, c) = pass.output.value()(i, c) - held(before, c);
        pass.error(i, width + c) = pass.output.value()(i, width + c) - held(behind, c);
      }
    }
    return pass;
  }

  TwoRelations task_;
  mutable Context context_;
  autograd::ParameterSet<double> parameters_;
  attention::MultiHeadAttention<double> attention_;
  std::vector<double> first_, second_;
};

}  // namespace

LearnedRelations learn(const TwoRelations& task) {
  return Learner(task).run();
}

}  // namespace gloss::lab
