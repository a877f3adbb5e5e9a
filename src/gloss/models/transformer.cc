#include "gloss/models/transformer.h"

#include <algorithm>
#include <cmath>

#include "gloss/models/alignment_guide.h"
#include "gloss/models/teacher_forcing.h"
#include "gloss/nn/add_norm.h"
#include "gloss/nn/embedding.h"
#include "gloss/nn/feed_forward.h"
#include "gloss/nn/linear.h"

namespace gloss::models {

using attention::Causal;
using attention::DistanceBias;
using attention::Mask;
using attention::MultiHeadShape;
using attention::Request;
using attention::Stacking;
using autograd::Init;
using autograd::Parameter;
using autograd::Tape;
using autograd::Var;

namespace {

constexpr int64_t kPositions = 512;

// 0, 1, ... within each sequence.
std::vector<int64_t> positions_of(const Offsets& offsets) {
  std::vector<int64_t> positions;
  positions.reserve(static_cast<size_t>(offsets.total()));
  for (int64_t s = 0; s < offsets.count(); ++s) {
    for (int64_t i = 0; i < offsets.length(s); ++i) positions.push_back(i);
  }
  return positions;
}

// What a stack adds to its scores in a pass over sequences of up to `longest` tokens.
template <class T>
DistanceBias<T> bias_of(const std::optional<attention::RelativeBias<T>>& relative, Tape<T>& tape,
                        int64_t longest) {
  return relative ? (*relative)(tape, longest) : DistanceBias<T>{};
}

// Runs attention and files what it did if somebody records it.
template <class T, class F>
Var<T> recorded(AttentionRecord<T>* record, AttentionKind kind, int64_t layer, F attend) {
  if (!record || !record->request.wants(kind, layer)) return attend(Request{}).output;
  record->entries.push_back({kind, layer, attend(Request{true, true, record->request.tensors})});
  return record->entries.back().attended.output;
}

}  // namespace

template <class T>
Transformer<T>::Transformer(const TransformerConfig& config, Arena& arena, autograd::Holding holding)
    : config_(config) {
  validate(config);
  const int64_t d = config.d_model;
  const Init embedding = Init::normal(1 / std::sqrt(static_cast<double>(d)));
  const auto table = [&](const char* name, int64_t rows) {
    return &parameters_.matrix(name, rows, d, embedding);
  };
  if (config.share_embeddings) {
    source_table_ = target_table_ = table("model.shared.weight", config.target_vocabulary);
  } else {
    source_table_ = table("model.encoder.embed_tokens.weight", config.source_vocabulary);
    target_table_ = table("model.decoder.embed_tokens.weight", config.target_vocabulary);
  }
  output_ = config.tie_output ? target_table_ : table("lm_head.weight", config.target_vocabulary);
  output_bias_ = &parameters_.vector("final_logits_bias", config.target_vocabulary, Init::zeros());
  if (config.zero_start_embedding) target_table_->frozen_row = config.symbols.start;

  const auto shape = [&](const StackConfig& stack) {
    MultiHeadShape s;
    s.d_model = d;
    s.heads = stack.heads;
    return s;
  };
  const auto relative = [&](const char* prefix, const StackConfig& stack, Causal causal) {
    std::optional<attention::RelativeBias<T>> bias;
    if (has_relative_bias(config, stack))
      bias.emplace(parameters_, prefix, stack.heads, d, causal, config.relative);
    return bias;
  };
  encoder_bias_ = relative("model.encoder.", config.encoder, Causal::no);
  decoder_bias_ = relative("model.decoder.", config.decoder, Causal::yes);
  for (int64_t i = 0; i < config.encoder.layers; ++i) {
    const std::string prefix = fmt::format("model.encoder.layers.{}.", i);
    encoder_.push_back({attention::MultiHeadAttention<T>(parameters_, prefix + "self_attn.",
                                                         shape(config.encoder), Stacking::query_key_value),
                        declare_norm(prefix + "self_attn_layer_norm."),
                        declare_feed_forward(prefix, config.encoder.d_ff),
                        declare_norm(prefix + "final_layer_norm.")});
  }
  for (int64_t i = 0; i < config.decoder.layers; ++i) {
    const std::string prefix = fmt::format("model.decoder.layers.{}.", i);
    decoder_.push_back({attention::MultiHeadAttention<T>(parameters_, prefix + "self_attn.",
                                                         shape(config.decoder), Stacking::query_key_value),
                        declare_norm(prefix + "self_attn_layer_norm."),
                        attention::MultiHeadAttention<T>(parameters_, prefix + "encoder_attn.",
                                                         shape(config.decoder), Stacking::key_value),
                        declare_norm(prefix + "encoder_attn_layer_norm."),
                        declare_feed_forward(prefix, config.decoder.d_ff),
                        declare_norm(prefix + "final_layer_norm.")});
  }
  if (config.pre_norm) {
    encoder_norm_ = declare_norm("model.encoder.layer_norm.");
    decoder_norm_ = declare_norm("model.decoder.layer_norm.");
  }
  parameters_.allocate(arena, holding);
  if (nn::is_sinusoidal(config.positions))
    positions_ = nn::sinusoidal_positions<T>(arena, 0, kPositions, d, config.positions);
}

template <class T>
typename Transformer<T>::Norm Transformer<T>::declare_norm(const std::string& prefix) {
  return {&parameters_.vector(prefix + "weight", config_.d_model, Init::ones()),
          &parameters_.vector(prefix + "bias", config_.d_model, Init::zeros())};
}

template <class T>
typename Transformer<T>::FeedForward Transformer<T>::declare_feed_forward(const std::string& prefix,
                                                                          int64_t d_ff) {
  const int64_t d = config_.d_model;
  return {&parameters_.matrix(prefix + "fc1.weight", d_ff, d, Init::xavier(d_ff, d)),
          &parameters_.vector(prefix + "fc1.bias", d_ff, Init::zeros()),
          &parameters_.matrix(prefix + "fc2.weight", d, d_ff, Init::xavier(d, d_ff)),
          &parameters_.vector(prefix + "fc2.bias", d, Init::zeros())};
}

template <class T>
Var<T> Transformer<T>::embed(Tape<T>& tape, const Parameter<T>& table, std::span<const int32_t> ids,
                             std::vector<int64_t> positions) const {
  const double scale = config_.scale_embedding ? std::sqrt(static_cast<double>(config_.d_model)) : 1;
  if (!nn::is_sinusoidal(config_.positions))
    return nn::embed(tape, tape.use(table), ids, scale, {}, config_.dropout, table.frozen_row);
  Tensor<T> table_of_positions = positions_;
  if (const auto [low, high] = std::ranges::minmax_element(positions);
      high != positions.end() && *high >= kPositions) {
    // Far out they stand in a table of just the range that occurs.
    const int64_t first = *low;
    table_of_positions = nn::sinusoidal_positions<T>(tape.context().arena, first, *high - first + 1,
                                                     config_.d_model, config_.positions);
    for (int64_t& position : positions) position -= first;
  }
  nn::PositionRows<T> rows{table_of_positions, std::move(positions)};
  return nn::embed(tape, tape.use(table), ids, scale, std::move(rows), config_.dropout, table.frozen_row);
}

template <class T>
Var<T> Transformer<T>::normalise(Tape<T>& tape, const Var<T>& x, const Norm& norm) const {
  return nn::layer_norm(tape, x, tape.use(*norm.gamma), tape.use(*norm.beta), config_.layer_norm_epsilon);
}

// Post-norm: LayerNorm(x + dropout(run(x))). Pre-norm: x + dropout(run(LayerNorm(x))).
template <class T>
template <class F>
Var<T> Transformer<T>::sublayer(Tape<T>& tape, const Var<T>& x, const Norm& norm, F run) const {
  if (config_.pre_norm) return nn::add_dropout(tape, x, run(normalise(tape, x, norm)), config_.dropout);
  const Var<T> branch = run(x);
  return nn::add_norm(tape, x, branch, config_.dropout, tape.use(*norm.gamma), tape.use(*norm.beta),
                      config_.layer_norm_epsilon);
}

template <class T>
Var<T> Transformer<T>::feed_forward(Tape<T>& tape, const Var<T>& x, const FeedForward& ff) const {
  return nn::feed_forward(tape, x, tape.use(*ff.W_1), tape.use(*ff.b_1), tape.use(*ff.W_2), tape.use(*ff.b_2),
                          config_.activation, config_.activation_dropout);
}

template <class T>
typename Transformer<T>::Rows Transformer<T>::encode(Tape<T>& tape, const Tokens& source,
                                                     AttentionRecord<T>* record) const {
  Var<T> x = embed(tape, *source_table_, source.rows, positions_of(source.offsets));
  const DistanceBias<T> bias = bias_of(encoder_bias_, tape, source.offsets.longest());
  for (size_t i = 0; i < encoder_.size(); ++i) {
    const EncoderLayer& layer = encoder_[i];
    x = sublayer(tape, x, layer.self_norm, [&](const Var<T>& y) {
      return recorded(record, AttentionKind::encoder, static_cast<int64_t>(i), [&](Request request) {
        return layer.self(tape, {y, source.offsets}, Mask{}, config_.attention_dropout, request, bias);
      });
    });
    x = sublayer(tape, x, layer.final_norm,
                 [&](const Var<T>& y) { return feed_forward(tape, y, layer.feed_forward); });
  }
  if (config_.pre_norm) x = normalise(tape, x, encoder_norm_);
  return {x, source.offsets};
}

// A decoder layer is the same whether it sees a whole sequence or one token and a cache: `self` and `cross`
// know where keys and values are.
template <class T>
template <class Self, class Cross>
Var<T> Transformer<T>::decoder_layer(Tape<T>& tape, const DecoderLayer& layer, Var<T> x, Self self,
                                     Cross cross) const {
  x = sublayer(tape, x, layer.self_norm, self);
  x = sublayer(tape, x, layer.cross_norm, cross);
  return sublayer(tape, x, layer.final_norm,
                  [&](const Var<T>& y) { return feed_forward(tape, y, layer.feed_forward); });
}

template <class T>
typename Transformer<T>::Rows Transformer<T>::decode(Tape<T>& tape, const Tokens& input, const Rows& memory,
                                                     AttentionRecord<T>* record) const {
  require(input.offsets.count() == memory.offsets.count(), "{} target sequences for {} source sequences",
          input.offsets.count(), memory.offsets.count());
  Var<T> x = embed(tape, *target_table_, input.rows, positions_of(input.offsets));
  const DistanceBias<T> bias = bias_of(decoder_bias_, tape, input.offsets.longest());
  for (size_t i = 0; i < decoder_.size(); ++i) {
    const DecoderLayer& layer = decoder_[i];
    const auto index = static_cast<int64_t>(i);
    const auto self = [&](const Var<T>& y) {
      return recorded(record, AttentionKind::decoder, index, [&](Request request) {
        return layer.self(tape, {y, input.offsets}, Mask{Causal::yes, {}}, config_.attention_dropout, request,
                          bias);
      });
    };
    const auto cross = [&](const Var<T>& y) {
      return recorded(record, AttentionKind::cross, index, [&](Request request) {
        return layer.cross(tape, {y, input.offsets}, memory, Mask{}, config_.attention_dropout, request);
      });
    };
    x = decoder_layer(tape, layer, x, self, cross);
  }
  if (config_.pre_norm) x = normalise(tape, x, decoder_norm_);
  return {x, input.offsets};
}

template <class T>
Var<T> Transformer<T>::logits(Tape<T>& tape, const Var<T>& states) const {
  return nn::linear(tape, states, tape.use(*output_), tape.use(*output_bias_));
}

template <class T>
Tokens Transformer<T>::decoder_input(const Tokens& target) const {
  return models::decoder_input(target, config_.symbols.start);
}

template <class T>
TrainingLoss<T> Transformer<T>::loss(Tape<T>& tape, const Tokens& source, const Tokens& target,
                                     const Objective& objective) const {
  AttentionRecord<T> record = guided_record<T>(objective);
  const Rows states = decode(tape, decoder_input(target), encode(tape, source), &record);
  const auto loss =
      nn::projection_cross_entropy(tape, states.rows, tape.use(*output_), tape.use(*output_bias_),
                                   target.rows, {objective.smoothing, config_.symbols.pad}, objective.scale);
  if (!objective.guide) return {loss};
  return guided(tape, loss, record, config_.decoder.heads, source, target, objective, kAlignmentStep);
}

template <class T>
std::vector<T> Transformer<T>::log_probabilities(Tape<T>& tape, const Tokens& source,
                                                 const Tokens& target) const {
  const Rows states = decode(tape, decoder_input(target), encode(tape, source));
  return nn::projection_log_probabilities(tape, states.rows, tape.use(*output_), tape.use(*output_bias_),
                                          target.rows);
}

template <class T>
template <class Stored>
void Transformer<T>::remember(Tape<T>& tape, const Rows& memory, std::span<const int> slots,
                              attention::KvCache<Stored>& cache) const {
  for (size_t l = 0; l < decoder_.size(); ++l) {
    const Tensor<T> rows = decoder_[l].cross.project_memory(tape, memory.rows);
    for (size_t s = 0; s < slots.size(); ++s) {
      const auto i = static_cast<int64_t>(s);
      cache.set_memory(slots[s], static_cast<int64_t>(l), rows.row(memory.offsets.begin(i)),
                       memory.offsets.length(i));
    }
  }
}

template <class T>
template <class Stored>
Var<T> Transformer<T>::step(Tape<T>& tape, std::span<const int32_t> ids,
                            attention::KvCache<Stored>& cache) const {
  const auto positions = cache.positions();
  require(ids.size() == positions.size(), "{} tokens for {} hypotheses", ids.size(), positions.size());
  Var<T> x = embed(tape, *target_table_, ids, {positions.begin(), positions.end()});
  DistanceBias<T> bias;
  if (decoder_bias_ && !positions.empty())
    bias = (*decoder_bias_)(tape, *std::ranges::max_element(positions), 0);
  for (size_t l = 0; l < decoder_.size(); ++l) {
    const DecoderLayer& layer = decoder_[l];
    const auto index = static_cast<int64_t>(l);
    x = decoder_layer(
        tape, layer, x, [&](const Var<T>& y) { return layer.self.self_step(tape, y, cache, index, bias); },
        [&](const Var<T>& y) { return layer.cross.memory_step(tape, y, cache, index); });
  }
  return config_.pre_norm ? normalise(tape, x, decoder_norm_) : x;
}

template <class T>
template <class Stored>
typename Transformer<T>::Rows Transformer<T>::decode_rounded(Tape<T>& tape, const Tokens& input,
                                                             const Rows& memory) const {
  Var<T> x = embed(tape, *target_table_, input.rows, positions_of(input.offsets));
  const DistanceBias<T> bias = bias_of(decoder_bias_, tape, input.offsets.longest());
  for (const DecoderLayer& layer : decoder_) {
    x = decoder_layer(
        tape, layer, x,
        [&](const Var<T>& y) {
          return layer.self.template self_whole<Stored>(tape, {y, input.offsets}, bias);
        },
        [&](const Var<T>& y) {
          return layer.cross.template memory_whole<Stored>(tape, {y, input.offsets}, memory);
        });
  }
  if (config_.pre_norm) x = normalise(tape, x, decoder_norm_);
  return {x, input.offsets};
}

template <class T>
attention::KvWidths Transformer<T>::cache_widths() const {
  return {config_.d_model, config_.d_model};
}

template class Transformer<float>;
template class Transformer<double>;

template void Transformer<float>::remember(Tape<float>&, const Rows&, std::span<const int>,
                                           attention::KvCache<float>&) const;
template void Transformer<float>::remember(Tape<float>&, const Rows&, std::span<const int>,
                                           attention::KvCache<kernels::Bfloat16>&) const;
template void Transformer<double>::remember(Tape<double>&, const Rows&, std::span<const int>,
                                            attention::KvCache<double>&) const;
template Var<float> Transformer<float>::step(Tape<float>&, std::span<const int32_t>,
                                             attention::KvCache<float>&) const;
template Var<float> Transformer<float>::step(Tape<float>&, std::span<const int32_t>,
                                             attention::KvCache<kernels::Bfloat16>&) const;
template Var<double> Transformer<double>::step(Tape<double>&, std::span<const int32_t>,
                                               attention::KvCache<double>&) const;
template Transformer<float>::Rows Transformer<float>::decode_rounded<kernels::Bfloat16>(Tape<float>&,
                                                                                        const Tokens&,
                                                                                        const Rows&) const;

}  // namespace gloss::models
