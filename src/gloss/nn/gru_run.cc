// The recurrence over ragged sequences: time steps over the sequences that are not finished, sequences dealt
// to threads once.
#include <algorithm>
#include <numeric>
#include <span>
#include <vector>

#include "gloss/kernels/scratch.h"
#include "gloss/nn/gru.h"
#include "gloss/nn/gru_transition.h"
#include "gloss/nn/rows.h"

namespace gloss::nn {

using autograd::Slot;
using autograd::Tape;
using autograd::Var;
using kernels::Accumulate;
using kernels::columns;
using kernels::Matrix;
using kernels::matrix;
using kernels::Scratch;

namespace {

// Sequences that go through time together, the longest first: those alive at a step are the first `live`
// ones.
struct Group {
  std::vector<int64_t> sequences;
  std::vector<int64_t> live;  // at each step
};

// Rows are independent, so how they are dealt changes no bit and may depend on threads.
std::vector<Group> deal(const Offsets& offsets, int64_t groups) {
  std::vector<int64_t> order;
  for (int64_t i = 0; i < offsets.count(); ++i) {
    if (offsets.length(i) > 0) order.push_back(i);
  }
  std::ranges::stable_sort(order, std::greater<>(), [&](int64_t i) { return offsets.length(i); });
  std::vector<Group> dealt(static_cast<size_t>(groups));
  for (size_t i = 0; i < order.size(); ++i) dealt[i % dealt.size()].sequences.push_back(order[i]);
  std::erase_if(dealt, [](const Group& group) { return group.sequences.empty(); });
  for (Group& group : dealt) {
    auto alive = group.sequences.size();
    for (int64_t t = 0; t < offsets.length(group.sequences.front()); ++t) {
      while (offsets.length(group.sequences[alive - 1]) <= t) --alive;
      group.live.push_back(static_cast<int64_t>(alive));
    }
  }
  return dealt;
}

// Two tasks a thread, so that a slow one holds nobody up for long, if they are of 32 sequences at least:
// smaller products read the weights for too little.
int64_t groups_for(int threads, int64_t directions, int64_t sequences) {
  if (threads == 1) return 1;
  const int64_t wanted = (2 * threads + directions - 1) / directions;
  return std::clamp<int64_t>(sequences / 32, 1, wanted);
}

// The recurrence in one direction.
template <class T>
struct Recurrence {
  GruWeights<T> weights;
  Direction direction = Direction::forward;
  Var<T> gates;  // [tokens, 3 d_h]
  Var<T> first;  // [sequences, d_h], or empty
  GruKept<T> kept;

  bool given() const { return weights.shape.d_h > 0; }
  bool wants_gradient() const {
    return given() && (gates.wants_gradient() || first.wants_gradient() || weights.wants_gradient());
  }
  From comes_from(int64_t t) const {
    if (t > 0) return From::states;
    return !first ? From::zeros : first.wants_gradient() ? From::states : From::constants;
  }
  // The token of a sequence at step t; its state before is that of step t - 1.
  int64_t token(const Offsets& offsets, int64_t sequence, int64_t t) const {
    return direction == Direction::forward ? offsets.begin(sequence) + t : offsets.end(sequence) - 1 - t;
  }
  void places(const Offsets& offsets, const Group& group, int64_t t, int64_t* place) const {
    const int64_t live = group.live[static_cast<size_t>(t)];
    for (int64_t i = 0; i < live; ++i) {
      place[i] = token(offsets, group.sequences[static_cast<size_t>(i)], t);
    }
  }
};

template <class T>
Matrix<T> dense(const Scratch<T>& scratch, int64_t rows, int64_t cols) {
  return {scratch.data(), rows, cols, cols};
}

template <class T>
void run_group(ThreadPool& pool, const Recurrence<T>& r, const Offsets& offsets, const Group& group,
               Matrix<T> states) {
  const int64_t d = r.weights.shape.d_h, most = group.live.front();
  const bool before = r.weights.shape.reset == ResetGate::before;
  const Scratch<T> state(most * d), sums(most * 3 * d), reset(before ? most * d : 0);
  const Scratch<int64_t> place(most);
  for (int64_t i = 0; i < most; ++i) {
    T* to = state.data() + i * d;
    if (r.first) {
      std::copy_n(r.first.value().row(group.sequences[static_cast<size_t>(i)]), d, to);
    } else {
      std::fill_n(to, d, T{0});
    }
  }
  for (size_t t = 0; t < group.live.size(); ++t) {
    const int64_t live = group.live[t];
    r.places(offsets, group, static_cast<int64_t>(t), place.data());
    kernels::GruStep<T> step = make_step(r.weights, r.kept, live);
    step.place = place.data();
    step.input = matrix(r.gates.value());
    step.sums = dense(sums, live, 3 * d);
    step.reset = dense(reset, live, d);
    step.state = dense(state, live, d);
    step.previous = step.state;
    step.states = states;
    transition(pool, r.weights, step, r.comes_from(static_cast<int64_t>(t)));
  }
}

// What backward writes of one direction.
template <class T>
struct RecurrenceGradient {
  Matrix<const T> dstates;  // [tokens, d_h]
  Tensor<T> previous;       // [tokens, d_h]: the state before each
  Slot<T> dgates, dfirst;
};

template <class T>
void run_group_backward(ThreadPool& pool, const Recurrence<T>& r, const Offsets& offsets, const Group& group,
                        const RecurrenceGradient<T>& gradient) {
  const int64_t d = r.weights.shape.d_h, most = group.live.front();
  const bool before = r.weights.shape.reset == ResetGate::before;
  const Scratch<T> dstate(most * d), dsums(most * 3 * d), dreset(before ? most * d : 0);
  const Scratch<int64_t> place(most);
  std::fill_n(dstate.data(), most * d, T{0});  // nothing comes back from behind the end
  for (size_t t = group.live.size(); t-- > 0;) {
    const int64_t live = group.live[t];
    r.places(offsets, group, static_cast<int64_t>(t), place.data());
    kernels::GruStepGradient<T> step = make_step_gradient(r.weights, r.kept, live);
    step.place = place.data();
    step.dstates = gradient.dstates;
    step.previous = matrix(gradient.previous);
    step.dinput = gradient.dgates.matrix();
    step.accumulate = gradient.dgates.accumulate;
    step.dstate = dense(dstate, live, d);
    step.dsums = dense(dsums, live, 3 * d);
    step.dreset = dense(dreset, live, d);
    transition_backward(pool, r.weights, step, r.comes_from(static_cast<int64_t>(t)));
  }
  if (!gradient.dfirst) return;
  for (int64_t i = 0; i < most; ++i) {
    T* to = gradient.dfirst.tensor.row(group.sequences[static_cast<size_t>(i)]);
    for (int64_t c = 0; c < d; ++c) to[c] += dstate[i * d + c];
  }
}

// The state before each token, in the order of tokens.
template <class T>
Tensor<T> states_before(Tape<T>& tape, const Recurrence<T>& r, const Offsets& offsets,
                        Matrix<const T> states) {
  const Tensor<T> previous = tape.allocate({states.rows, states.cols});
  tape.pool().parallel_ranges(offsets.count(), 32, [&](int64_t begin, int64_t end) {
    for (int64_t s = begin; s < end; ++s) {
      for (int64_t t = 0; t < offsets.length(s); ++t) {
        T* to = previous.row(r.token(offsets, s, t));
        const T* from = t > 0     ? states.row(r.token(offsets, s, t - 1))
                        : r.first ? r.first.value().row(s)
                                  : nullptr;
        if (from) {
          std::copy_n(from, states.cols, to);
        } else {
          std::fill_n(to, states.cols, T{0});
        }
      }
    }
  });
  return previous;
}

// One or two directions as one operation: states [tokens, d_h each]. The second may be absent.
template <class T>
Var<T> record_recurrence(Tape<T>& tape, const Offsets& offsets, std::array<Recurrence<T>, 2> directions) {
  const int64_t count = directions[1].given() ? 2 : 1, d = directions[0].weights.shape.d_h;
  for (Recurrence<T>& r : directions) {
    // The gates were made for this run and nobody else sees them: r, z and n take their place.
    if (r.wants_gradient()) r.kept = GruKept<T>(tape, r.weights.shape, offsets.total(), r.gates.value());
  }
  const Tensor<T> states = tape.allocate({offsets.total(), count * d});
  const std::vector<Group> groups = deal(offsets, groups_for(tape.pool().threads(), count, offsets.count()));
  const auto of = [d](const Tensor<T>& all, int64_t i) { return columns(matrix(all), i * d, d); };
  tape.pool().parallel_for(count * static_cast<int64_t>(groups.size()), [&](int64_t task) {
    const int64_t i = task % count;
    run_group(tape.pool(), directions[static_cast<size_t>(i)], offsets,
              groups[static_cast<size_t>(task / count)], of(states, i));
  });
  const auto& [a, b] = directions;
  const GruWeights<T>&v = a.weights, &w = b.weights;
  return tape.record(
      states,
      {&a.gates, &a.first, &v.weight, &v.bias, &v.norm_gain, &v.norm_bias,  //
       &b.gates, &b.first, &w.weight, &w.bias, &w.norm_gain, &w.norm_bias},
      [&] {
        return [directions, offsets, groups, states, of, count](Tape<T>& t, const Tensor<T>& dstates) {
          std::array<RecurrenceGradient<T>, 2> gradients;
          for (int64_t i = 0; i < count; ++i) {
            const Recurrence<T>& r = directions[static_cast<size_t>(i)];
            RecurrenceGradient<T>& gradient = gradients[static_cast<size_t>(i)];
            if (!r.wants_gradient()) continue;
            gradient.dstates = of(dstates, i);
            gradient.previous = states_before<T>(t, r, offsets, of(states, i));
            gradient.dgates = t.slot(r.gates);
            gradient.dfirst = t.slot(r.first);
            if (gradient.dfirst && gradient.dfirst.accumulate == Accumulate::no) {
              gradient.dfirst.tensor.fill(0);
            }
          }
          t.pool().parallel_for(count * static_cast<int64_t>(groups.size()), [&](int64_t task) {
            const auto i = static_cast<size_t>(task % count);
            if (!directions[i].wants_gradient()) return;
            run_group_backward(t.pool(), directions[i], offsets, groups[static_cast<size_t>(task / count)],
                               gradients[i]);
          });
          for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
            if (!directions[i].wants_gradient()) continue;
            weight_gradients<T>(t, directions[i].weights, directions[i].kept, matrix(gradients[i].previous));
          }
        };
      });
}

template <class T>
Recurrence<T> recurrence(Tape<T>& tape, const Gru<T>& unit, const Ragged<Var<T>>& x, Direction direction,
                         const Var<T>& first) {
  require(x.rows.rows() == x.offsets.total(), "a recurrence got {} rows for sequences of {} tokens",
          x.rows.rows(), x.offsets.total());
  Recurrence<T> r;
  r.direction = direction;
  r.weights = unit.weights(tape);
  r.gates = unit.input_gates(tape, x.rows);
  r.first = first;
  return r;
}

}  // namespace

template <class T>
Ragged<Var<T>> Gru<T>::run(Tape<T>& tape, const Ragged<Var<T>>& x, Direction direction,
                           const Var<T>& first) const {
  require(!first || first.shape() == Shape{x.offsets.count(), shape_.d_h},
          "a recurrence over {} sequences starts from states of shape [{}, {}], not {}", x.offsets.count(),
          x.offsets.count(), shape_.d_h, first ? first.shape().text() : "");
  return {record_recurrence<T>(tape, x.offsets, {recurrence(tape, *this, x, direction, first), {}}),
          x.offsets};
}

template <class T>
Ragged<Var<T>> bidirectional(Tape<T>& tape, const Gru<T>& forward, const Gru<T>& backward,
                             const Ragged<Var<T>>& x) {
  const GruShape &a = forward.shape(), &b = backward.shape();
  require(a.d_in == b.d_in && a.d_h == b.d_h,
          "the directions of a recurrence differ: {} and {} inputs, {} and {} units", a.d_in, b.d_in, a.d_h,
          b.d_h);
  return {record_recurrence<T>(tape, x.offsets,
                               {recurrence(tape, forward, x, Direction::forward, {}),
                                recurrence(tape, backward, x, Direction::backward, {})}),
          x.offsets};
}

template <class T>
Var<T> last_states(Tape<T>& tape, const Ragged<Var<T>>& states, int64_t d_h, Direction direction) {
  const int64_t width = states.rows.cols();
  require(d_h > 0 && (width == d_h || width == 2 * d_h),
          "the last of states of {} units were asked for of rows of {} numbers: it takes {} or {}", d_h,
          width, d_h, 2 * d_h);
  const Offsets& offsets = states.offsets;
  const bool forward = direction == Direction::forward;
  std::vector<int64_t> indices;
  for (int64_t s = 0; s < offsets.count(); ++s) {
    const int64_t last = forward ? offsets.end(s) - 1 : offsets.begin(s);
    indices.push_back(offsets.length(s) > 0 ? last : -1);
  }
  return rows<T>(tape, states.rows, indices, {forward ? 0 : width - d_h, d_h});
}

template Ragged<Var<float>> Gru<float>::run(Tape<float>&, const Ragged<Var<float>>&, Direction,
                                            const Var<float>&) const;
template Ragged<Var<double>> Gru<double>::run(Tape<double>&, const Ragged<Var<double>>&, Direction,
                                              const Var<double>&) const;
template Ragged<Var<float>> bidirectional(Tape<float>&, const Gru<float>&, const Gru<float>&,
                                          const Ragged<Var<float>>&);
template Ragged<Var<double>> bidirectional(Tape<double>&, const Gru<double>&, const Gru<double>&,
                                           const Ragged<Var<double>>&);
template Var<float> last_states(Tape<float>&, const Ragged<Var<float>>&, int64_t, Direction);
template Var<double> last_states(Tape<double>&, const Ragged<Var<double>>&, int64_t, Direction);

}  // namespace gloss::nn
