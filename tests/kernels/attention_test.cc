#include "gloss/kernels/attention.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <type_traits>

#include "gloss/kernels/attention_reference.h"
#include "support/framed.h"
#include "support/isas.h"

namespace gloss::kernels {
namespace {

using tests::Framed;

template <class T>
constexpr double kNear = sizeof(T) == 4 ? 5e-5 : 1e-11;

struct Shape {
  int64_t heads, d_k, d_v;
  std::vector<int64_t> n_q, n_k;
  bool limited = false;  // by visible keys
  double dropout = 0;
  bool biased = false;  // by distance
};

constexpr int64_t kFirstQuery = 3;  // where queries stand, for the bias

template <class T>
std::vector<T> pick(const std::vector<double>& from) {
  return {from.begin(), from.end()};
}

// Ragged sequences in hostile memory, and what attention and its reference make of them.
template <class T>
struct Case {
  explicit Case(const Shape& of)
      : shape(of), queries(Offsets::of_lengths(of.n_q)), keys(Offsets::of_lengths(of.n_k)) {
    q = std::make_unique<Framed<T>>(Framed<T>::random(queries.total(), of.heads * of.d_k, 3, 5, 1));
    k = std::make_unique<Framed<T>>(Framed<T>::random(keys.total(), of.heads * of.d_k, 1, 2, 2));
    v = std::make_unique<Framed<T>>(Framed<T>::random(keys.total(), of.heads * of.d_v, 7, 1, 3));
    up = std::make_unique<Framed<T>>(Framed<T>::random(queries.total(), of.heads * of.d_v, 2, 3, 4));
    for (int64_t s = 0; s < queries.count(); ++s) {
      for (int64_t i = 0; i < queries.length(s); ++i) {
        const auto bound = static_cast<uint64_t>(keys.length(s)) + 2;
        visible.push_back(of.limited ? static_cast<int64_t>(RandomKey(5).below(visible.size(), bound))
                                     : keys.length(s));
      }
    }
    in = {q->view(),
          k->view(),
          v->view(),
          queries,
          keys,
          of.heads,
          of.d_k,
          of.d_v,
          static_cast<T>(1 / std::sqrt(static_cast<double>(of.d_k))),
          of.limited ? visible.data() : nullptr,
          Dropout(of.dropout, RandomKey(6)),
          {},
          kFirstQuery};
    zero = kFirstQuery + queries.longest() + 1;
    distances = zero + keys.longest() + 2;
    bias = std::make_unique<Framed<T>>(Framed<T>::random(of.heads, distances, 3, 2, 8, 2));
    if (of.biased) in.bias = {bias->view(), zero};
    up_weights = tests::random_values<T>(weight_offsets(in).back(), 7, 0.3);
    find_mask();
  }

  // The factors of dropout [weights], found by looking at equal weights with unit values.
  void find_mask() {
    ThreadPool pool(1);
    const int64_t widest = std::max<int64_t>(keys.longest(), 1);
    std::vector<double> zeros(
        static_cast<size_t>(std::max(queries.total(), keys.total()) * shape.heads * shape.d_k + 1));
    std::vector<double> units(static_cast<size_t>(keys.total() * shape.heads * widest + 1));
    std::vector<double> output(static_cast<size_t>(queries.total() * shape.heads * widest + 1));
    for (int64_t s = 0; s < keys.count(); ++s) {
      for (int64_t j = 0; j < keys.length(s); ++j) {
        for (int64_t h = 0; h < shape.heads; ++h) {
          units[static_cast<size_t>(((keys.begin(s) + j) * shape.heads + h) * widest + j)] = 1;
        }
      }
    }
    const int64_t w_k = shape.heads * shape.d_k, w_v = shape.heads * widest;
    const Attention<double> probe{{zeros.data(), queries.total(), w_k, w_k},
                                  {zeros.data(), keys.total(), w_k, w_k},
                                  {units.data(), keys.total(), w_v, w_v},
                                  queries,
                                  keys,
                                  shape.heads,
                                  shape.d_k,
                                  widest,
                                  1,
                                  nullptr,
                                  in.dropout,
                                  {},
                                  0};
    attention_forward<double>(pool, probe, {output.data(), queries.total(), w_v, w_v}, nullptr, nullptr,
                              nullptr);
    for (int64_t s = 0; s < queries.count(); ++s) {
      for (int64_t h = 0; h < shape.heads; ++h) {
        for (int64_t i = 0; i < queries.length(s); ++i) {
          for (int64_t j = 0; j < keys.length(s); ++j) {
            mask.push_back(output[static_cast<size_t>((queries.begin(s) + i) * w_v + h * widest + j)] *
                           static_cast<double>(keys.length(s)));
          }
        }
      }
    }
  }

  std::vector<T> run_forward(ThreadPool& pool) const {
    Framed<T> output(queries.total(), shape.heads * shape.d_v, 5, 2),
        scores(1, weight_offsets(in).back(), 1, 0), weights(1, weight_offsets(in).back(), 2, 0),
        quiet = output;
    attention_forward<T>(pool, in, output.view(), nullptr, scores.view().data, weights.view().data);
    attention_forward<T>(pool, in, quiet.view(), nullptr, nullptr, nullptr);
    EXPECT_TRUE(output.frame_intact() && scores.frame_intact() && weights.frame_intact());
    EXPECT_TRUE(tests::same_bits(output.values(), quiet.values()));
    std::vector<T> all = output.values();
    for (const T x : scores.values()) all.push_back(x);
    for (const T x : weights.values()) all.push_back(x);
    return all;
  }

  enum class Upstream { output, weights, both };
  std::vector<T> run_backward(ThreadPool& pool, Upstream upstream, Accumulate accumulate) const {
    Framed<T> output(queries.total(), shape.heads * shape.d_v, 5, 2);
    std::vector<T> statistics(static_cast<size_t>(queries.total() * shape.heads * 2 + 1));
    attention_forward<T>(pool, in, output.view(), statistics.data(), nullptr, nullptr);
    Framed<T> dq(queries.total(), shape.heads * shape.d_k, 1, 3),
        dk(keys.total(), shape.heads * shape.d_k, 2, 1), dv(keys.total(), shape.heads * shape.d_v, 3, 4);
    Framed<T> dbias(shape.biased ? shape.heads : 0, distances, 1, 2);
    if (accumulate == Accumulate::yes) {
      for (Framed<T>* x : {&dq, &dk, &dv, &dbias}) x->set(std::vector<T>(x->values().size(), T{1}));
    }
    AttentionGradient<T> gradient;
    gradient.output = output.view();
    if (upstream != Upstream::weights) gradient.doutput = up->view();
    gradient.statistics = statistics.data();
    if (upstream != Upstream::output) gradient.dweights = up_weights.data();
    gradient.dquery = dq.view();
    gradient.dkey = dk.view();
    gradient.dvalue = dv.view();
    gradient.accumulate_query = gradient.accumulate_key = gradient.accumulate_value = accumulate;
    if (shape.biased) gradient.dbias = dbias.view();
    gradient.accumulate_bias = accumulate;
    attention_backward(pool, in, gradient);
    std::vector<T> all;
    for (const Framed<T>* x : {&dq, &dk, &dv, &dbias}) {
      EXPECT_TRUE(x->frame_intact());
      for (const T g : x->values()) all.push_back(g);
    }
    return all;
  }

  // Where the bias of query i and key j of a sequence stands.
  int64_t column(int64_t i, int64_t j) const { return zero + j - (kFirstQuery + i); }

  // Calls visit(sequence, head, reference head, mine) with the numbers of one head, dense in double.
  template <class Visit>
  void each_head(Visit visit) const {
    const auto block = [](const Framed<T>& from, int64_t row, int64_t rows, int64_t col, int64_t cols) {
      std::vector<double> dense;
      for (int64_t i = 0; i < rows; ++i) {
        for (int64_t c = 0; c < cols; ++c)
          dense.push_back(static_cast<double>(from.view().row(row + i)[col + c]));
      }
      return dense;
    };
    int64_t at = 0;
    for (int64_t s = 0; s < queries.count(); ++s) {
      const int64_t q0 = queries.begin(s), n_q = queries.length(s), k0 = keys.begin(s), n_k = keys.length(s);
      for (int64_t h = 0; h < shape.heads; ++h) {
        const std::vector<double> hq = block(*q, q0, n_q, h * shape.d_k, shape.d_k),
                                  hk = block(*k, k0, n_k, h * shape.d_k, shape.d_k),
                                  hv = block(*v, k0, n_k, h * shape.d_v, shape.d_v),
                                  hup = block(*up, q0, n_q, h * shape.d_v, shape.d_v);
        reference::AttentionHead head{
            {hq.data(), n_q, shape.d_k, shape.d_k},
            {hk.data(), n_k, shape.d_k, shape.d_k},
            {hv.data(), n_k, shape.d_v, shape.d_v},
            static_cast<double>(in.scale),
            [&](int64_t i, int64_t j) { return j < visible[static_cast<size_t>(q0 + i)]; },
            [&, at, n_k](int64_t i, int64_t j) { return mask[static_cast<size_t>(at + i * n_k + j)]; },
            [&, h](int64_t i, int64_t j) {
              return shape.biased ? static_cast<double>(bias->view().row(h)[column(i, j)]) : 0;
            }};
        visit(s, h, head, Matrix<const double>{hup.data(), n_q, shape.d_v, shape.d_v}, at);
        at += n_q * n_k;
      }
    }
  }

  std::vector<double> want_forward() const {
    const int64_t width = shape.heads * shape.d_v;
    std::vector<double> output(static_cast<size_t>(queries.total() * width)), scores, weights;
    each_head([&](int64_t s, int64_t h, const reference::AttentionHead& head, Matrix<const double>, int64_t) {
      const auto r = reference::attention(head);
      for (int64_t i = 0; i < head.query.rows; ++i) {
        for (int64_t c = 0; c < shape.d_v; ++c) {
          output[static_cast<size_t>((queries.begin(s) + i) * width + h * shape.d_v + c)] =
              r.output[static_cast<size_t>(i * shape.d_v + c)];
        }
      }
      scores.insert(scores.end(), r.scores.begin(), r.scores.end());
      weights.insert(weights.end(), r.weights.begin(), r.weights.end());
    });
    output.insert(output.end(), scores.begin(), scores.end());
    output.insert(output.end(), weights.begin(), weights.end());
    return output;
  }

  std::vector<double> want_backward(Upstream upstream, double start) const {
    const int64_t w_k = shape.heads * shape.d_k, w_v = shape.heads * shape.d_v;
    std::vector<double> dq(static_cast<size_t>(queries.total() * w_k), start),
        dk(static_cast<size_t>(keys.total() * w_k), start),
        dv(static_cast<size_t>(keys.total() * w_v), start),
        dbias(static_cast<size_t>(shape.biased ? shape.heads * distances : 0), start);
    each_head(
        [&](int64_t s, int64_t h, const reference::AttentionHead& head, Matrix<const double> d, int64_t at) {
          const int64_t n_q = head.query.rows, n_k = head.key.rows;
          std::vector<double> none(static_cast<size_t>(n_q * shape.d_v), 0.0), dw;
          if (upstream == Upstream::weights) d.data = none.data();
          if (upstream != Upstream::output)
            dw = tests::doubles(
                std::span(up_weights).subspan(static_cast<size_t>(at), static_cast<size_t>(n_q * n_k)));
          const auto g = reference::attention_gradients(head, d, dw);
          const auto put = [&](std::vector<double>& to, const std::vector<double>& from, int64_t row,
                               int64_t rows, int64_t width, int64_t d_head) {
            for (int64_t i = 0; i < rows; ++i) {
              for (int64_t c = 0; c < d_head; ++c) {
                to[static_cast<size_t>((row + i) * width + h * d_head + c)] +=
                    from[static_cast<size_t>(i * d_head + c)];
              }
            }
          };
          put(dq, g.query, queries.begin(s), n_q, w_k, shape.d_k);
          put(dk, g.key, keys.begin(s), n_k, w_k, shape.d_k);
          put(dv, g.value, keys.begin(s), n_k, w_v, shape.d_v);
          for (int64_t i = 0; shape.biased && i < n_q; ++i) {
            for (int64_t j = 0; j < n_k; ++j) {
              dbias[static_cast<size_t>(h * distances + column(i, j))] +=
                  g.scores[static_cast<size_t>(i * n_k + j)];
            }
          }
        });
    for (const auto* part : {&dk, &dv, &dbias}) dq.insert(dq.end(), part->begin(), part->end());
    return dq;
  }

  Shape shape;
  Offsets queries, keys;
  std::unique_ptr<Framed<T>> q, k, v, up, bias;
  int64_t zero = 0, distances = 0;  // of the bias
  std::vector<int64_t> visible;
  Attention<T> in;
  std::vector<T> up_weights;
  std::vector<double> mask;
};

std::vector<Shape> shapes() {
  std::vector<Shape> all;
  for (const bool limited : {false, true}) {
    for (const double dropout : {0.0, 0.3}) {
      for (const int64_t width : tests::kWidths) {
        all.push_back({2, width, 17, {3, 0, 1, 4, 2}, {5, 2, 0, 17, 1}, limited, dropout});
        all.push_back({2, 8, width, {1, 5}, {33, 16}, limited, dropout});
      }
      // Over the borders of tiles of 32 queries and 128 keys.
      all.push_back({1, 5, 3, {31, 32, 33}, {127, 128, 129}, limited, dropout});
      all.push_back({1, 16, 16, {70}, {300}, limited, dropout});
      for (const int64_t width : {1, 17})
        all.push_back({3, width, 5, {3, 0, 1, 4, 2, 16}, {5, 2, 0, 17, 1, 16}, limited, dropout, true});
      all.push_back({2, 5, 3, {31, 32, 33}, {127, 128, 129}, limited, dropout, true});
      all.push_back({1, 16, 16, {70}, {300}, limited, dropout, true});
    }
  }
  return all;
}

template <class T>
class AttentionKernel : public ::testing::Test {};
using Numbers = ::testing::Types<float, double>;
TYPED_TEST_SUITE(AttentionKernel, Numbers);

TYPED_TEST(AttentionKernel, EqualsTheReference) {
  using T = TypeParam;
  for (const Shape& shape : shapes()) {
    SCOPED_TRACE(testing::Message() << "d_k " << shape.d_k << " d_v " << shape.d_v << " first n_q "
                                    << shape.n_q[0] << " limited " << shape.limited << " dropout "
                                    << shape.dropout << " biased " << shape.biased);
    const Case<T> c(shape);
    const std::vector<double> want = c.want_forward();
    tests::same_everywhere<T>([&](ThreadPool& pool) { return c.run_forward(pool); },
                              [&](const auto& got) { EXPECT_TRUE(tests::close(got, want, kNear<T>)); });
    for (const auto upstream :
         {Case<T>::Upstream::output, Case<T>::Upstream::weights, Case<T>::Upstream::both}) {
      for (const Accumulate accumulate : {Accumulate::no, Accumulate::yes}) {
        const std::vector<double> gradients =
            c.want_backward(upstream, accumulate == Accumulate::yes ? 1 : 0);
        tests::same_everywhere<T>(
            [&](ThreadPool& pool) { return c.run_backward(pool, upstream, accumulate); },
            [&](const auto& got) { EXPECT_TRUE(tests::close(got, gradients, kNear<T>)); });
      }
    }
  }
}

RC_GTEST_PROP(AttentionKernelProperty, AnyRaggedBatchEqualsTheReference, ()) {
  Shape shape;
  shape.heads = *rc::gen::inRange<int64_t>(1, 4);
  shape.d_k = *rc::gen::inRange<int64_t>(1, 40);
  shape.d_v = *rc::gen::inRange<int64_t>(1, 40);
  shape.limited = *rc::gen::arbitrary<bool>();
  shape.biased = *rc::gen::arbitrary<bool>();
  for (int64_t s = *rc::gen::inRange<int64_t>(0, 5); s > 0; --s) {
    shape.n_q.push_back(*rc::gen::inRange<int64_t>(0, 12));
    shape.n_k.push_back(*rc::gen::inRange<int64_t>(0, 150));
  }
  ThreadPool pool(2);
  const Case<float> c(shape);
  const auto both = Case<float>::Upstream::both;
  RC_ASSERT(bool(tests::close(c.run_forward(pool), c.want_forward(), kNear<float>)));
  RC_ASSERT(
      bool(tests::close(c.run_backward(pool, both, Accumulate::no), c.want_backward(both, 0), kNear<float>)));
}

TEST(AttentionKernelDropout, DropsTheShareItSaysRowByRow) {
  const Case<double> c({4, 2, 2, {60, 60}, {100, 100}, false, 0.25});
  std::vector<double> rows;
  for (size_t i = 0; i < c.mask.size(); i += 100) {
    rows.push_back(static_cast<double>(std::count(c.mask.begin() + static_cast<int64_t>(i),
                                                  c.mask.begin() + static_cast<int64_t>(i) + 100, 0.0)));
  }
  const double mean = std::accumulate(rows.begin(), rows.end(), 0.0) / static_cast<double>(rows.size());
  EXPECT_NEAR(mean, 25, 1);
  // Binomial: the deviation of a row is sqrt(100 * 0.25 * 0.75) = 4.3.
  double squares = 0;
  for (const double r : rows) squares += (r - mean) * (r - mean) / static_cast<double>(rows.size());
  EXPECT_NEAR(std::sqrt(squares), 4.33, 0.6);
  // Neighbouring rows agree about a key as often as chance says: p^2 + (1 - p)^2.
  double same = 0;
  for (size_t i = 100; i < c.mask.size(); ++i) same += (c.mask[i] == 0) == (c.mask[i - 100] == 0);
  EXPECT_NEAR(same / static_cast<double>(c.mask.size() - 100), 0.625, 0.01);
}

// A cached step over rows of one cache, and what it should give.
struct CachedShape {
  int64_t heads, d_k, d_v;
  bool table = false;   // rows are found by indices
  bool biased = false;  // by distance
  std::vector<int64_t> counts{1, 0, 16, 17, 33, 5, 130};
};

template <class Stored>
Stored not_a_number() {
  if constexpr (std::is_same_v<Stored, Bfloat16>) {
    return {0x7fc0};
  } else {
    return std::numeric_limits<Stored>::quiet_NaN();
  }
}

// The cache keeps its numbers as they are, or what store_numbers makes of them; what is not its own is NaN.
template <class Stored>
struct CachedCase {
  using T = Widened<Stored>;
  static constexpr int64_t kCacheRows = 140, kZero = 130;

  explicit CachedCase(const CachedShape& of, uint64_t seed = 1)
      : shape(of),
        queries(std::ssize(of.counts)),
        width(of.heads * (of.d_k + of.d_v)),
        query(Framed<T>::random(queries, of.heads * of.d_k, 3, 2, seed)),
        bias(Framed<T>::random(of.heads, kZero + 1, 1, 3, seed + 2, 2)),
        kept(static_cast<size_t>(kStart + kCacheRows * (width + 1)), not_a_number<Stored>()) {
    const auto cache = Framed<T>::random(kCacheRows, width, 5, 1, seed + 1);
    for (int64_t r = 0; r < kCacheRows; ++r) store_numbers(cache.view().row(r), width, row(r));
    for (const int64_t count : of.counts)
      index.push_back(tests::random_ids(count, kCacheRows, seed + index.size()));
    for (size_t i = 0; i < of.counts.size(); ++i)
      rows.push_back(
          {row(0), row(0) + of.heads * of.d_k, of.table ? index[i].data() : nullptr, of.counts[i]});
    in = {query.view(), rows, width + 1, width + 1, of.heads, of.d_k, of.d_v, static_cast<T>(0.3), {}};
    if (of.biased) in.bias = {bias.view(), kZero};
  }
  Stored* row(int64_t r) { return kept.data() + kStart + r * (width + 1); }

  std::vector<double> wanted(std::vector<T> (*numbers)(const Stored*, int64_t)) {
    std::vector<double> want;
    for (int64_t i = 0; i < queries; ++i) {
      const int64_t count = shape.counts[static_cast<size_t>(i)];
      for (int64_t h = 0; h < shape.heads; ++h) {
        std::vector<double> q, k, v;
        for (int64_t c = 0; c < shape.d_k; ++c)
          q.push_back(static_cast<double>(query.view().row(i)[h * shape.d_k + c]));
        for (int64_t t = 0; t < count; ++t) {
          const auto at = static_cast<size_t>(t);
          const std::vector<T> all = numbers(row(shape.table ? index[static_cast<size_t>(i)][at] : t), width);
          const auto key = all.begin() + h * shape.d_k,
                     value = all.begin() + shape.heads * shape.d_k + h * shape.d_v;
          k.insert(k.end(), key, key + shape.d_k);
          v.insert(v.end(), value, value + shape.d_v);
        }
        const auto r = reference::attention(
            {{q.data(), 1, shape.d_k, shape.d_k},
             {k.data(), count, shape.d_k, shape.d_k},
             {v.data(), count, shape.d_v, shape.d_v},
             static_cast<double>(in.scale),
             [](int64_t, int64_t) { return true; },
             {},
             [&](int64_t, int64_t j) {
               const T* distances = bias.view().row(h);
               return shape.biased ? static_cast<double>(distances[kZero + j - (count - 1)]) : 0;
             }});
        want.insert(want.end(), r.output.begin(), r.output.end());
      }
    }
    return want;
  }
  std::vector<T> run(ThreadPool& pool) const {
    Framed<T> output(queries, shape.heads * shape.d_v, 4, 3);
    cached_attention(pool, in, output.view());
    EXPECT_TRUE(output.frame_intact());
    return output.values();
  }

  static constexpr int64_t kStart = 5;
  CachedShape shape;
  int64_t queries, width;
  Framed<T> query, bias;
  std::vector<Stored> kept;
  std::vector<std::vector<int32_t>> index;
  std::vector<CachedRows<Stored>> rows;
  CachedAttention<Stored> in;
};

template <class T>
std::vector<T> as_they_are(const T* row, int64_t width) {
  return {row, row + width};
}
std::vector<float> widened(const Bfloat16* row, int64_t width) {
  std::vector<float> numbers;
  for (int64_t c = 0; c < width; ++c)
    numbers.push_back(std::bit_cast<float>(static_cast<uint32_t>(row[c].bits) << 16));
  return numbers;
}

// Widths around the sixteen numbers of a step, those of common heads among them.
std::vector<CachedShape> cached_shapes() {
  std::vector<CachedShape> shapes;
  for (const bool table : {false, true}) {
    for (const int64_t width : tests::kWidths) {
      shapes.push_back({2, width, 5, table, false});
      shapes.push_back({3, 7, width, table, false});
      shapes.push_back({3, width, 5, table, true});
    }
    shapes.push_back({2, 32, 32, table, false});
    shapes.push_back({5, 64, 64, table, true});
  }
  return shapes;
}

TYPED_TEST(AttentionKernel, CachedEqualsTheReference) {
  for (const CachedShape& shape : cached_shapes()) {
    SCOPED_TRACE(fmt::format("{} heads, {} and {}", shape.heads, shape.d_k, shape.d_v));
    CachedCase<TypeParam> step(shape);
    const std::vector<double> want = step.wanted(as_they_are<TypeParam>);
    tests::same_everywhere<TypeParam>(
        [&](ThreadPool& pool) { return step.run(pool); },
        [&](const auto& got) { EXPECT_TRUE(tests::close(got, want, kNear<TypeParam>)); });
  }
}

// Rounded keys and values: the reference over the widened numbers, and the bits of a cache that holds these.
void check_rounded(const CachedShape& shape, uint64_t seed) {
  CachedCase<Bfloat16> step(shape, seed);
  CachedCase<float> whole(shape, seed);
  const std::vector<float> unrounded = whole.kept;
  for (int64_t r = 0; r < step.kCacheRows; ++r)
    std::ranges::copy(widened(step.row(r), step.width), whole.row(r));
  EXPECT_FALSE(tests::same_bits(whole.kept, unrounded));  // it does round
  const std::vector<double> want = step.wanted(widened);
  tests::same_everywhere<float>([&](ThreadPool& pool) { return step.run(pool); },
                                [&](const std::vector<float>& got) {
                                  EXPECT_TRUE(tests::close(got, want, kNear<float>));
                                  ThreadPool one(1);
                                  EXPECT_TRUE(tests::same_bits(got, whole.run(one)));
                                });
}

TEST(CachedBfloat16, EqualsTheReferenceThatRounds) {
  for (const CachedShape& shape : cached_shapes()) {
    SCOPED_TRACE(fmt::format("{} heads, {} and {}", shape.heads, shape.d_k, shape.d_v));
    check_rounded(shape, 1);
  }
}

RC_GTEST_PROP(CachedBfloat16Property, AnyShapeEqualsTheReferenceThatRounds, (uint64_t seed)) {
  CachedShape shape{*rc::gen::inRange<int64_t>(1, 6),  *rc::gen::inRange<int64_t>(1, 70),
                    *rc::gen::inRange<int64_t>(1, 70), *rc::gen::arbitrary<bool>(),
                    *rc::gen::arbitrary<bool>(),       {}};
  shape.counts = *rc::gen::container<std::vector<int64_t>>(rc::gen::inRange<int64_t>(0, 131));
  if (shape.counts.size() > 20) shape.counts.resize(20);
  check_rounded(shape, seed % 1000);
  RC_ASSERT(!::testing::Test::HasFailure());
}

}  // namespace
}  // namespace gloss::kernels
