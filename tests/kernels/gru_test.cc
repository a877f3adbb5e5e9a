#include "gloss/kernels/gru.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "gloss/kernels/gru_reference.h"
#include "gloss/kernels/layer_norm_reference.h"
#include "support/framed.h"
#include "support/isas.h"

namespace gloss::kernels {
namespace {

using tests::Framed;

template <class T>
constexpr double kNear = sizeof(T) == 4 ? 2e-5 : 1e-11;
constexpr double kEpsilon = 0.1;  // large, so that rows of two numbers keep a gradient
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

template <class T>
class GruKernel : public ::testing::Test {};
using Numbers = ::testing::Types<float, double>;
TYPED_TEST_SUITE(GruKernel, Numbers);

// How a step may be asked for.
struct Form {
  ResetGate reset = ResetGate::after;
  bool norm = false;
  bool in_place =
      false;  // as a run does it: rows have places, the state and the gates take the place of others
  bool accumulate = false;
  std::string text() const {
    return std::string(reset == ResetGate::after ? "after" : "before") + (norm ? " norm" : "") +
           (in_place ? " in place" : "") + (accumulate ? " accumulate" : "");
  }
};
std::vector<Form> forms() {
  std::vector<Form> all;
  for (const ResetGate reset : {ResetGate::after, ResetGate::before}) {
    for (const bool norm : {false, true}) {
      for (const bool in_place : {false, true}) {
        for (const bool accumulate : {false, true}) all.push_back({reset, norm, in_place, accumulate});
      }
    }
  }
  return all;
}

template <class T>
struct Case {
  Case(int64_t rows_, int64_t d_, const Form& form_)
      : rows(rows_),
        d(d_),
        tokens(form_.in_place ? rows_ + 3 : rows_),
        form(form_),
        input(Framed<T>::random(tokens, 3 * d, 3, 2, 1)),
        sums(Framed<T>::random(rows, 3 * d, 1, 5, 2)),
        previous(Framed<T>::random(rows, d, 2, 1, 3)),
        dstates(Framed<T>::random(tokens, d, 5, 3, 4)),
        dstate(Framed<T>::random(rows, d, 0, 1, 5)),
        dreset(Framed<T>::random(rows, d, 7, 0, 6)),
        gain(Framed<T>::random(1, 3 * d, 3, 0, 7)),
        bias(Framed<T>::random(1, 3 * d, 1, 0, 8)) {
    // Every second place from the end, then the others.
    for (int64_t i = tokens - 1; i >= 0; i -= 2) place.push_back(i);
    for (int64_t i = tokens - 2; i >= 0; i -= 2) place.push_back(i);
    place.resize(static_cast<size_t>(rows));
    if (!form.in_place) std::iota(place.begin(), place.end(), 0);
  }

  // Everything a step and its backward pass write.
  std::vector<T> run(ThreadPool& pool) const {
    Framed<T> in = input, s = sums, h = previous, states(tokens, d, 1, 2), next(rows, d, 4, 1);
    Framed<T> gates(tokens, 3 * d, 2, 3), product(tokens, d, 5, 1), reset(rows, d, 3, 2);
    Framed<T> kept(tokens, 3 * d, 1, 1), gate_statistics(tokens, 2, 3, 0),
        candidate_statistics(tokens, 2, 1, 0);
    GruStep<T> step;
    step.rows = rows;
    step.d_h = d;
    step.input = in.view();
    step.sums = s.view();
    step.previous = h.view();
    step.states = states.view();
    step.gates = gates.view();
    step.product = product.view();
    step.norm = norm_of(kept, gate_statistics, candidate_statistics);
    if (form.in_place) {
      step.place = place.data();
      step.gates = in.view();
      step.state = h.view();
    } else {
      step.state = next.view();
    }
    std::vector<T> all;
    const auto take = [&](const Framed<T>& part) {
      EXPECT_TRUE(part.frame_intact());
      for (const T v : part.values()) all.push_back(v);
    };
    if (form.reset == ResetGate::after) {
      gru_forward(pool, step);
    } else {
      step.reset = reset.view();
      gru_reset(pool, step);
      take(reset);
      gru_candidate(pool, step);
    }
    Framed<T>& r_z_n = form.in_place ? in : gates;
    for (const Framed<T>* part : {&states, form.in_place ? &h : &next, &r_z_n, &product}) take(*part);

    // h of all tokens
    Framed<T> before(tokens, d, 3, 1), dinput(tokens, 3 * d, 1, 4), up = dstate, dsums(rows, 3 * d, 2, 2);
    for (int64_t i = 0; i < rows; ++i) {
      std::copy_n(previous.view().row(i), d, before.view().row(place[static_cast<size_t>(i)]));
    }
    if (form.accumulate) dinput.set(std::vector<T>(static_cast<size_t>(tokens * 3 * d), T{3}));
    GruStepGradient<T> gradient;
    gradient.rows = rows;
    gradient.d_h = d;
    gradient.previous = before.view();
    gradient.product = product.view();
    gradient.gates = r_z_n.view();
    gradient.dinput = dinput.view();
    gradient.accumulate = form.accumulate ? Accumulate::yes : Accumulate::no;
    gradient.dstate = up.view();
    gradient.dsums = dsums.view();
    gradient.norm = step.norm;
    if (form.in_place) {
      gradient.place = place.data();
      gradient.dstates = dstates.view();
    } else if (!form.norm) {
      gradient.dsums = gates.view();
    }
    Framed<T> from_product = dreset;
    if (form.reset == ResetGate::after) {
      gru_backward(pool, gradient);
    } else {
      gru_candidate_backward(pool, gradient);
      gradient.dreset = from_product.view();
      gru_reset_backward(pool, gradient);
    }
    for (const Framed<T>* part : {&r_z_n, &dinput, &up}) take(*part);
    if (form.in_place || form.norm) take(dsums);
    return all;
  }

  std::vector<double> want() const {
    const std::vector<double> g = tests::doubles(gain.values()), b = tests::doubles(bias.values());
    const auto size = [this](int64_t count) { return static_cast<size_t>(count * d); };
    std::vector<double> reset(size(rows)), states(size(tokens), kNan), next(size(rows)),
        gates(size(3 * tokens), kNan), product(size(tokens), kNan), dgates(size(3 * tokens), kNan),
        dinput(size(3 * tokens), form.accumulate ? 3 : kNan), up(size(rows)), dsums(size(3 * rows));
    if (form.in_place) gates = dgates = tests::doubles(input.values());  // rows without a place stay
    for (int64_t i = 0; i < rows; ++i) {
      const int64_t token = place[static_cast<size_t>(i)];
      const Row row = norm_of_row(i, g, b);
      std::vector<double> ds(size(3));
      for (int64_t c = 0; c < d; ++c) {
        const reference::GruInputs x = inputs(i, token, c, row.s);
        const reference::GruUnit unit = reference::gru_unit(form.reset, x);
        const auto at = [this, c](int64_t of, int64_t part, int64_t parts) {
          return static_cast<size_t>((of * parts + part) * d + c);
        };
        reset[at(i, 0, 1)] = unit.reset.value;
        states[at(token, 0, 1)] = next[at(i, 0, 1)] = unit.next.value;
        product[at(token, 0, 1)] = form.reset == ResetGate::after ? x[5] : unit.reset.value;
        gates[at(token, 0, 3)] = unit.r.value;
        gates[at(token, 1, 3)] = unit.z.value;
        gates[at(token, 2, 3)] = unit.n.value;
        double dnext = static_cast<double>(dstate.view().row(i)[c]);
        if (form.in_place) dnext += static_cast<double>(dstates.view().row(token)[c]);
        const double from_product =
            form.reset == ResetGate::before ? static_cast<double>(dreset.view().row(i)[c]) : 0;
        const reference::GruInputs dx = reference::gru_unit_gradient(form.reset, x, dnext, from_product);
        for (int64_t part = 0; part < 3; ++part) {
          const auto k = static_cast<size_t>(part);
          dinput[at(token, part, 3)] = dx[k] + (form.accumulate ? 3 : 0);
          dgates[at(token, part, 3)] = ds[static_cast<size_t>(part * d + c)] = dx[3 + k];
        }
        up[at(i, 0, 1)] = dx[6];
      }
      const std::vector<double> back = norm_backward(row, g, ds);
      std::copy(back.begin(), back.end(), dsums.begin() + i * 3 * d);
    }
    std::vector<double> all;
    const auto take = [&](const std::vector<double>& part) {
      all.insert(all.end(), part.begin(), part.end());
    };
    if (form.reset == ResetGate::before) take(reset);
    for (const auto* part : {&states, &next, &gates, &product, &dgates, &dinput, &up}) take(*part);
    if (form.in_place || form.norm) take(dsums);
    return all;
  }

 private:
  struct Row {
    std::vector<double> s;  // normalised, if it is
    reference::NormalisedRow parts[2];
  };
  std::vector<double> cut(const std::vector<double>& v, int part) const {
    return {v.begin() + (part == 0 ? 0 : 2 * d), v.begin() + (part == 0 ? 2 * d : 3 * d)};
  }
  Row norm_of_row(int64_t i, const std::vector<double>& g, const std::vector<double>& b) const {
    Row row;
    row.s.assign(sums.view().row(i), sums.view().row(i) + 3 * d);
    if (!form.norm) return row;
    std::vector<double> y;
    for (int part = 0; part < 2; ++part) {
      row.parts[part] = reference::layer_norm(cut(row.s, part), cut(g, part), cut(b, part), kEpsilon);
      y.insert(y.end(), row.parts[part].y.begin(), row.parts[part].y.end());
    }
    row.s = y;
    return row;
  }
  std::vector<double> norm_backward(const Row& row, const std::vector<double>& g,
                                    const std::vector<double>& ds) const {
    if (!form.norm) return ds;
    std::vector<double> all;
    for (int part = 0; part < 2; ++part) {
      const std::vector<double> dx =
          reference::layer_norm_gradient(row.parts[part], cut(g, part), cut(ds, part));
      all.insert(all.end(), dx.begin(), dx.end());
    }
    return all;
  }
  reference::GruInputs inputs(int64_t i, int64_t token, int64_t c, const std::vector<double>& s) const {
    const T* in = input.view().row(token);
    const auto at = [&](int64_t part) { return s[static_cast<size_t>(part * d + c)]; };
    return {static_cast<double>(in[c]),
            static_cast<double>(in[d + c]),
            static_cast<double>(in[2 * d + c]),
            at(0),
            at(1),
            at(2),
            static_cast<double>(previous.view().row(i)[c])};
  }
  GruNorm<T> norm_of(Framed<T>& kept, Framed<T>& gate_statistics, Framed<T>& candidate_statistics) const {
    if (!form.norm) return {};
    return {gain.view().data,
            bias.view().data,
            static_cast<T>(kEpsilon),
            kept.view(),
            gate_statistics.view().data,
            candidate_statistics.view().data};
  }

  int64_t rows, d, tokens;
  Form form;
  Framed<T> input, sums, previous, dstates, dstate, dreset, gain, bias;
  std::vector<int64_t> place;
};

TYPED_TEST(GruKernel, EqualsTheReference) {
  for (const int64_t rows : tests::kRowCounts) {
    for (const int64_t d : tests::kWidths) {
      for (const Form& form : forms()) {
        SCOPED_TRACE(testing::Message() << rows << " x " << d << " " << form.text());
        const Case<TypeParam> c(rows, d, form);
        const std::vector<double> want = c.want();
        tests::same_everywhere<TypeParam>(
            [&](ThreadPool& pool) { return c.run(pool); },
            [&](const auto& got) { EXPECT_TRUE(tests::close(got, want, kNear<TypeParam>)); });
      }
    }
  }
}

// Nothing but the states is written where nothing is kept, and they are the same.
TYPED_TEST(GruKernel, KeepsNothingUnasked) {
  using T = TypeParam;
  const int64_t rows = 5, d = 33;
  ThreadPool pool(1);
  tests::on_every_isa([&](Isa) {
    for (const ResetGate reset : {ResetGate::after, ResetGate::before}) {
      const auto run = [&](bool keep) {
        const auto input = Framed<T>::random(rows, 3 * d, 3, 2, 1),
                   previous = Framed<T>::random(rows, d, 2, 1, 3);
        Framed<T> sums = Framed<T>::random(rows, 3 * d, 1, 5, 2), reset_state(rows, d, 0, 0);
        Framed<T> states(rows, d, 1, 2), gates(rows, 3 * d, 0, 0), product(rows, d, 0, 0);
        GruStep<T> step;
        step.rows = rows;
        step.d_h = d;
        step.input = input.view();
        step.sums = sums.view();
        step.previous = previous.view();
        step.reset = reset_state.view();
        step.states = states.view();
        if (keep) {
          step.gates = gates.view();
          step.product = product.view();
        }
        if (reset == ResetGate::after) {
          gru_forward(pool, step);
        } else {
          gru_reset(pool, step);
          gru_candidate(pool, step);
        }
        EXPECT_TRUE(states.frame_intact());
        return states.values();
      };
      EXPECT_TRUE(tests::same_bits(run(true), run(false)));
    }
  });
}

// Gates that are wide open or shut give no NaN, and their gradients vanish.
TEST(GruRows, SurviveHugeSums) {
  ThreadPool pool(1);
  tests::on_every_isa([&](Isa) {
    const int64_t d = 4;
    std::vector<float> input(3 * d, 0),
        sums{1e4f, -1e4f, 1e4f, -1e4f, 1e4f, 1e4f, -1e4f, -1e4f, 1e4f, 1e4f, -1e4f, -1e4f};
    std::vector<float> h{0.5f, 0.5f, 0.5f, 0.5f}, out(d), gates(3 * d), product(d), dinput(3 * d), up(d, 1);
    GruStep<float> step;
    step.rows = 1;
    step.d_h = d;
    step.input = {input.data(), 1, 3 * d, 3 * d};
    step.sums = {sums.data(), 1, 3 * d, 3 * d};
    step.previous = {h.data(), 1, d, d};
    step.states = {out.data(), 1, d, d};
    step.gates = {gates.data(), 1, 3 * d, 3 * d};
    step.product = {product.data(), 1, d, d};
    gru_forward(pool, step);
    EXPECT_EQ(out, (std::vector<float>{0.5f, 0.5f, -1, 0}));
    GruStepGradient<float> gradient;
    gradient.rows = 1;
    gradient.d_h = d;
    gradient.previous = step.previous;
    gradient.product = step.product;
    gradient.gates = gradient.dsums = step.gates;
    gradient.dinput = {dinput.data(), 1, 3 * d, 3 * d};
    gradient.dstate = {up.data(), 1, d, d};
    gru_backward(pool, gradient);
    EXPECT_EQ(up, (std::vector<float>{1, 1, 0, 0}));
    EXPECT_EQ(dinput[2 * d + 3], 1);  // n of the last unit, whose reset gate is shut
    dinput[2 * d + 3] = 0;
    for (const float v : dinput) EXPECT_EQ(v, 0);
  });
}

}  // namespace
}  // namespace gloss::kernels
