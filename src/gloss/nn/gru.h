// The gated recurrent unit (Cho et al. 2014), forward and backward: one transition for many independent rows,
// and the whole recurrence over ragged sequences as one operation.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "gloss/autograd/tape.h"
#include "gloss/kernels/gru.h"
#include "gloss/tensor/ragged.h"

namespace gloss::nn {

using kernels::ResetGate;
enum class Direction { forward, backward };  // from the first token to the last, or the other way

struct GruShape {
  int64_t d_in = 0, d_h = 0;           // of an input and of a state
  ResetGate reset = ResetGate::after;  // after the product with W_hn as in PyTorch, or before as in the paper
  // Ba et al. 2016, supplement: W_ih x + b_ih and W_hh h + b_hh are normalised before they are added, each
  // with a gain and a bias; the sums of r and z together, those of n apart.
  bool layer_norm = false;
  double epsilon = 1e-5;  // of the norms
};

// The recurrent weights as one tape uses them: W_hh [3 d_h, d_h], b_hh [3 d_h], gain and bias of the norm [3
// d_h] (empty without). W_hh may be laid out for y = h W_hh^T and for dh = ds W_hh; with reset before, as its
// first 2 d_h rows and the others.
template <class T>
struct GruWeights {
  GruShape shape;
  autograd::Var<T> weight, bias, norm_gain, norm_bias;
  std::array<kernels::PackedMatrix, 2> forward, backward;
  kernels::Precision precision = kernels::Precision::float32;  // of products that are not packed
  bool wants_gradient() const {
    return weight.wants_gradient() || bias.wants_gradient() || norm_gain.wants_gradient() ||
           norm_bias.wants_gradient();
  }
};

// Gates r, z, n stand in this order in every [3 d_h]:
//   r = sigmoid(W_ir x + b_ir + W_hr h + b_hr), z alike, h' = (1 - z) n + z h
//   n = tanh(W_in x + b_in + r (W_hn h + b_hn)), or with reset before n = tanh(W_in x + b_in + W_hn (r h) +
//   b_hn)
template <class T>
class Gru {
 public:
  // Declares <prefix>weight_ih [3 d_h, d_in], weight_hh [3 d_h, d_h], bias_ih [3 d_h], bias_hh [3 d_h], and
  // with layer norm norm_ih.weight, norm_ih.bias, norm_hh.weight, norm_hh.bias [3 d_h]. weight_ih starts as
  // Glorot and Bengio have it for each gate, weight_hh orthogonal for each gate, biases as zeros, gains as
  // ones.
  Gru(autograd::ParameterSet<T>& parameters, const std::string& prefix, const GruShape& shape);

  // W_ih x + b_ih, normalised if asked: x [n, d_in] -> [n, 3 d_h], one product for all rows.
  autograd::Var<T> input_gates(autograd::Tape<T>& tape, const autograd::Var<T>& x) const;

  // One transition of m independent rows: gates [m, 3 d_h] from input_gates, h_prev [m, d_h] -> h [m, d_h].
  // The bits of a row are those that `run` gives.
  autograd::Var<T> step(autograd::Tape<T>& tape, const autograd::Var<T>& gates,
                        const autograd::Var<T>& h_prev) const;
  // The same in a loop over steps, for which `weights` of the tape is made once.
  autograd::Var<T> step(autograd::Tape<T>& tape, const autograd::Var<T>& gates,
                        const autograd::Var<T>& h_prev, const GruWeights<T>& weights) const;
  GruWeights<T> weights(autograd::Tape<T>& tape) const;

  // All states of each sequence, in the order of its tokens: x [tokens, d_in] -> [tokens, d_h]. `first`
  // [sequences, d_h] holds the states before the first transition (with Direction::backward the one of the
  // last token); empty: zeros. A time step computes the sequences that are not finished.
  Ragged<autograd::Var<T>> run(autograd::Tape<T>& tape, const Ragged<autograd::Var<T>>& x,
                               Direction direction, const autograd::Var<T>& first = {}) const;

  const GruShape& shape() const { return shape_; }

 private:
  // A product of the unit: its parameters, and those of its norm or null.
  struct Sums {
    const autograd::Parameter<T>*weight = nullptr, *bias = nullptr;
    const autograd::Parameter<T>*norm_gain = nullptr, *norm_bias = nullptr;
  };
  static Sums declare(autograd::ParameterSet<T>& parameters, const std::string& prefix, const char* name,
                      const GruShape& shape, int64_t d, autograd::Init init, int64_t split);
  GruWeights<T> use_weights(autograd::Tape<T>& tape) const;

  GruShape shape_;
  Sums input_, recurrent_;
};

// States of both directions beside each other: x [tokens, d_in] -> [tokens, 2 d_h], forward before backward,
// from two units of one shape. One operation.
template <class T>
Ragged<autograd::Var<T>> bidirectional(autograd::Tape<T>& tape, const Gru<T>& forward, const Gru<T>& backward,
                                       const Ragged<autograd::Var<T>>& x);

// The state after the last transition of each sequence, [sequences, d_h]: that of its last token, or with
// Direction::backward of its first. Of states of both directions, its own half. Zeros for an empty sequence.
template <class T>
autograd::Var<T> last_states(autograd::Tape<T>& tape, const Ragged<autograd::Var<T>>& states, int64_t d_h,
                             Direction direction);

}  // namespace gloss::nn
