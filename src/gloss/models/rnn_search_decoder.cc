#include "gloss/models/rnn_search_decoder.h"

#include <algorithm>

#include "gloss/nn/linear.h"

namespace gloss::models {

using autograd::Tape;
using autograd::Var;
using kernels::matrix;

namespace {

Tensor<float> copy_of(Arena& arena, const Tensor<float>& rows) {
  return Tensor<float>::from(arena, rows.shape(), rows.values());
}

}  // namespace

RnnSearchDecoder::RnnSearchDecoder(const RnnSearch<float>& network, Context& context)
    : network_(network), context_(context), forbidden_(never_produced(network.config().symbols)) {}

void RnnSearchDecoder::add(std::span<const int> slots, const Tokens& sources) {
  Tape<float> tape(context_);
  const auto memory = network_.encode(tape, sources);
  for (size_t i = 0; i < slots.size(); ++i) {
    const auto slot = static_cast<size_t>(slots[i]);
    if (slot >= sentences_.size()) sentences_.resize(slot + 1);
    // Copies of its own: views would keep those of all the others as long as one is there.
    const auto one = one_sentence(memory, static_cast<int64_t>(i));
    sentences_[slot] = {copy_of(context_.arena, one.keys.value()),
                        copy_of(context_.arena, one.h.rows.value()),
                        copy_of(context_.arena, one.s_0.value())};
  }
}

Tensor<float> RnnSearchDecoder::advance(std::span<const Step> steps) {
  const int64_t hidden = network_.config().hidden;
  const Tensor<float> s_prev(context_.arena, {static_cast<int64_t>(steps.size()), hidden});
  ids_.clear();
  sources_.clear();
  for (size_t i = 0; i < steps.size(); ++i) {
    const Sentence& sentence = sentences_.at(static_cast<size_t>(steps[i].slot));
    require(steps[i].parent >= 0 && steps[i].parent < sentence.s.rows(), "a step extends hypothesis {} of {}",
            steps[i].parent, sentence.s.rows());
    std::copy_n(sentence.s.row(steps[i].parent), hidden, s_prev.row(static_cast<int64_t>(i)));
    ids_.push_back(steps[i].token);
    sources_.push_back({matrix(sentence.keys), matrix(sentence.h)});
  }
  Tape<float> tape(context_);
  const auto next = network_.step(tape, ids_, Var<float>(s_prev), sources_);
  for (size_t begin = 0, end = 0; begin < steps.size(); begin = end) {
    while (end < steps.size() && steps[end].slot == steps[begin].slot) ++end;
    const Tensor<float> own =
        next.s.value().slice_rows(static_cast<int64_t>(begin), static_cast<int64_t>(end - begin));
    sentences_[static_cast<size_t>(steps[begin].slot)].s = copy_of(context_.arena, own);
  }
  return next.output.value();
}

Tensor<float> RnnSearchDecoder::logits(const Tensor<float>& states) {
  Tape<float> tape(context_);
  return network_.logits(tape, Var<float>(states)).value();
}

void RnnSearchDecoder::logits_in_parts(const Tensor<float>& states, kernels::ColumnParts parts,
                                       const kernels::SeePart& see) {
  if (limited_) return limited_.logits_in_parts(context_.pool, states, parts, see);
  Tape<float> tape(context_);
  nn::multiply_parts(tape, Var<float>(states), tape.use(network_.output_weight()),
                     tape.use(network_.output_bias()), parts, see);
}

RnnSearch<float>::Memory one_sentence(const RnnSearch<float>::Memory& memory, int64_t i) {
  RnnSearch<float>::Memory one;
  one.h = one_sentence(memory.h, i);
  one.keys = one_sentence(MemoryRows{memory.keys, memory.h.offsets}, i).rows;
  one.s_0 = Var<float>(memory.s_0.value().slice_rows(i, 1));
  return one;
}

RnnSearch<float>::Memory all_sentences(Tape<float>& tape,
                                       std::span<const RnnSearch<float>::Memory* const> memories) {
  std::vector<const MemoryRows*> h;
  std::vector<Var<float>> keys, s_0;
  for (const auto* memory : memories) {
    h.push_back(&memory->h);
    keys.push_back(memory->keys);
    s_0.push_back(memory->s_0);
  }
  return {all_sentences(tape, std::span<const MemoryRows* const>(h)),
          nn::stack_rows(tape, std::span<const Var<float>>(keys)),
          nn::stack_rows(tape, std::span<const Var<float>>(s_0))};
}

}  // namespace gloss::models
