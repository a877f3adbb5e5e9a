// What experiments are made of: drawn matrices and sentences, and small Transformers.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>

#include "gloss/autograd/parameter.h"
#include "gloss/base/random.h"
#include "gloss/models/config.h"
#include "gloss/tensor/ragged.h"
#include "gloss/tensor/tensor.h"

namespace gloss::lab {

// Independent normal numbers of mean 0.
inline Tensor<double> drawn(Arena& arena, Shape shape, const RandomKey& key, double deviation = 1) {
  const Tensor<double> tensor(arena, shape);
  for (int64_t i = 0; i < tensor.size(); ++i)
    tensor.data()[i] = deviation * key.normal(static_cast<uint64_t>(i));
  return tensor;
}

// Glorot and Bengio 2010, as layers begin: a weight [out, in] of variance 2 / (in + out).
inline Tensor<double> drawn_weight(Arena& arena, int64_t out, int64_t in, const RandomKey& key) {
  return drawn(arena, {out, in}, key, std::sqrt(2.0 / static_cast<double>(in + out)));
}

// Token 0 is </s> and token 1 the start symbol; words are those from kFirstWord on.
inline constexpr int32_t kFirstWord = 2;

inline models::TransformerConfig small_config(int64_t vocabulary, int64_t d_model, int64_t layers,
                                              int64_t heads) {
  models::TransformerConfig config;
  config.source_vocabulary = config.target_vocabulary = vocabulary;
  config.d_model = d_model;
  config.encoder = config.decoder = {layers, heads, 2 * d_model};
  config.positions = nn::PositionLayout::interleaved;
  config.dropout = 0;
  config.symbols = {0, -1, 1};
  return config;
}

// One sentence of `length` tokens, the last of them </s>.
inline Tokens drawn_sentence(const RandomKey& key, int64_t length, int64_t vocabulary) {
  Tokens tokens;
  for (int64_t i = 0; i + 1 < length; ++i) {
    const auto words = static_cast<uint64_t>(vocabulary - kFirstWord);
    tokens.rows.push_back(kFirstWord + static_cast<int32_t>(key.below(static_cast<uint64_t>(i), words)));
  }
  tokens.rows.push_back(0);
  tokens.offsets = Offsets({0, length});
  return tokens;
}

// Another word in the place of a token.
inline int32_t other_word(int32_t token, int64_t vocabulary) {
  return token + 1 < static_cast<int32_t>(vocabulary) && token >= kFirstWord ? token + 1 : kFirstWord;
}

// A tensor of a model by its name; throws Error if there is none.
template <class T>
Tensor<T> part_named(const autograd::ParameterSet<T>& parameters, const std::string& name) {
  Tensor<T> found;
  parameters.each_part([&](const std::string& part, const Tensor<T>& value) {
    if (part == name) found = value;
  });
  require(!found.empty(), "the model has no tensor {}", name);
  return found;
}

}  // namespace gloss::lab
